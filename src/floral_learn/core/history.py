"""What happened in each round of a game, kept on the game's device until somebody asks."""

from __future__ import annotations

from typing import Any

import numpy as np

from floral_learn.core.arrays import Array, NumpyBackend

_CLOSED = ("objective", "residual", "bias")
_OPENED = ("mu", "step", "projection_iterations", "flips")


class History:
    """Rows of a game's record; `to_arrays` gives one array a quantity, first axis the round.

    ``objective``, ``residual`` (KKT), ``bias`` and ``mu`` have shape (rounds, columns), ``step`` (rounds, R),
    ``projection_iterations`` (rounds,), and ``flips`` (rounds, k, R) holds row numbers, -1 in empty places.
    """

    def __init__(self) -> None:
        self.rows: dict[str, list[Any]] = {name: [] for name in (*_OPENED, *_CLOSED)}

    def open_round(self, step: np.ndarray, mu: Array, iterations: Any, flips: Array) -> None:
        """What is known once the step is made."""
        self.rows["step"].append(step)
        self.rows["mu"].append(mu)
        self.rows["projection_iterations"].append(iterations)
        self.rows["flips"].append(flips)

    def close_round(self, bias: Array, residual: Array, objective: Array) -> None:
        """What the next pass over K tells about the step."""
        self.rows["bias"].append(bias)
        self.rows["residual"].append(residual)
        self.rows["objective"].append(objective)

    def __len__(self) -> int:
        return len(self.rows["step"])

    def copy(self) -> History:
        """The same rows, in lists of their own."""
        other = History()
        other.rows = {name: list(rows) for name, rows in self.rows.items()}
        return other

    def to_arrays(self, backend: NumpyBackend) -> dict[str, np.ndarray]:
        """One numpy array a quantity."""
        out = {}
        for name, rows in self.rows.items():
            out[name] = _pad(backend.numpy_rows(rows)) if name == "flips" else np.array(backend.numpy_rows(rows))
        return out

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> History:
        """The history that `to_arrays` gave."""
        history = cls()
        for name in history.rows:
            history.rows[name] = list(arrays[name])
        return history


def _pad(rows: list[np.ndarray]) -> np.ndarray:
    if not rows:
        return np.zeros((0, 0, 0), dtype=np.int32)
    longest = max(len(row) for row in rows)
    out = np.full((len(rows), longest, rows[0].shape[1]), -1, dtype=np.int32)
    for t, row in enumerate(rows):
        out[t, : len(row)] = row
    return out
