"""Where a game stands, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from floral_learn.core.arrays import Array, NumpyBackend
from floral_learn.core.history import History


@dataclass
class GameState:
    """Where a game stands after a round; `to_arrays` and `from_arrays` carry it through a file unchanged."""

    round: int
    dual: Array  # (n, columns), lambda_t
    signs: Array  # (n, columns), the labels of this round, flips included
    mu: Array  # (columns,), the projection's root: the next one starts there
    weight_sum: Array  # (n, columns), sum of signs * dual over the averaged rounds
    bias_sum: Array  # (columns,)
    averaged: int
    flip_count: Array  # (n, R), how often each label was flipped
    history: History
    closed: bool = False  # whether bias, objective and residual of this round are in the history

    @classmethod
    def start(cls, signs: Array, games: int, backend: NumpyBackend) -> GameState:
        """Round 0: all duals are zero."""
        n, columns = signs.shape
        zeros = backend.zeros
        return cls(
            round=0,
            dual=zeros((n, columns), backend.float64),
            signs=signs,
            mu=zeros((columns,), backend.float64),
            weight_sum=zeros((n, columns), backend.float64),
            bias_sum=zeros((columns,), backend.float64),
            averaged=0,
            flip_count=zeros((n, games), backend.int64),
            history=History(),
            closed=True,
        )

    def copy(self, backend: NumpyBackend) -> GameState:
        """A state that can be played on without changing this one."""
        return replace(self, flip_count=backend.copy(self.flip_count), history=self.history.copy())

    def to_arrays(self, backend: NumpyBackend) -> dict[str, np.ndarray]:
        """The state as plain numpy arrays."""
        arrays = {name: np.array(backend.numpy(getattr(self, name))) for name in _ARRAYS}  # copies: the game goes on
        arrays["signs"] = arrays["signs"].astype(np.int8)
        arrays["counters"] = np.array([self.round, self.averaged, int(self.closed)])
        history = {f"history.{k}": v for k, v in self.history.to_arrays(backend).items()}
        return arrays | history

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], backend: NumpyBackend) -> GameState:
        """The state that `to_arrays` wrote."""
        fields: dict[str, Any] = {name: backend.array(arrays[name]) for name in _ARRAYS}
        for name in ("dual", "signs", "weight_sum"):
            fields[name] = backend.columns(fields[name], backend.float64)
        fields["flip_count"] = backend.columns(fields["flip_count"])
        rounds, averaged, closed = (int(i) for i in arrays["counters"])
        history = {k.removeprefix("history."): v for k, v in arrays.items() if k.startswith("history.")}
        return cls(
            round=rounds,
            averaged=averaged,
            closed=bool(closed),
            history=History.from_arrays(history),
            **fields,
        )


_ARRAYS = ("dual", "signs", "mu", "weight_sum", "bias_sum", "flip_count")


@dataclass(frozen=True)
class GameResult:
    """The outcome; arrays are numpy, one column a game (or a class of a game)."""

    dual: np.ndarray  # (n, columns), lambda of the last round
    weights: np.ndarray  # (n, columns), signs * dual of the last round: f = K @ weights + bias
    bias: np.ndarray  # (columns,)
    mean_weights: np.ndarray  # (n, columns), averaged over the rounds after `average_from`
    mean_bias: np.ndarray  # (columns,)
    residual: np.ndarray  # (columns,), KKT residual of the last round, under its labels
    flip_rate: np.ndarray  # (n, R), share of the attacked rounds in which a label was flipped
    history: dict[str, np.ndarray]
    state: GameState
