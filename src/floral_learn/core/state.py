"""Where a game stands, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from floral_learn.core.arrays import Array, NumpyBackend
from floral_learn.core.history import History


@dataclass
class GameState:
    """Where a game stands after a round; `to_arrays` and `from_arrays` carry it through a file unchanged.

    Attributes
    ----------
    round : int
        Rounds played.
    dual, signs : array of shape (n, columns)
        lambda_t, and the labels of this round, flips included.
    mu : array of shape (columns,)
        The projection's root: the next one starts there.
    weight_sum, bias_sum : array
        Sums over the averaged rounds.
    averaged : int
        How many rounds these are.
    flip_count : array of shape (n, R)
        How often each label was flipped.
    history : History
        The record.
    closed : bool
        Whether bias, objective and residual of this round are in the history.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.core.game import Game, solve
    >>> from floral_learn.core.gram import DenseGram
    >>> game = Game(gram=DenseGram(np.eye(4)), labels=np.array([0, 0, 1, 1]), cap=np.ones(4), steps=np.full(10, 0.5))
    >>> solve(game).state.round
    10
    """

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
    """The outcome; arrays are numpy, one column a game (or a class of a game).

    Attributes
    ----------
    dual, weights : ndarray of shape (n, columns)
        The last duals, and these times the labels of the last round.
    bias, residual : ndarray of shape (columns,)
        Of the last round; the residual is that of the KKT conditions.
    mean_weights, mean_bias : ndarray
        The averaged model.
    flip_rate : ndarray of shape (n, R)
        Share of the attacked rounds in which each label was flipped.
    history : dict of ndarray
        One array a quantity, first axis the round.
    state : GameState
        Where the game ended; it can be played on.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.core.game import Game, solve
    >>> from floral_learn.core.gram import DenseGram
    >>> game = Game(gram=DenseGram(np.eye(4)), labels=np.array([0, 0, 1, 1]), cap=np.ones(4), steps=np.full(50, 0.5))
    >>> solve(game).dual[:, 0].round(3).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    dual: np.ndarray  # (n, columns), lambda of the last round
    weights: np.ndarray  # (n, columns), signs * dual of the last round: f = K @ weights + bias
    bias: np.ndarray  # (columns,)
    mean_weights: np.ndarray  # (n, columns), averaged over the rounds after `average_from`
    mean_bias: np.ndarray  # (columns,)
    residual: np.ndarray  # (columns,), KKT residual of the last round, under its labels
    flip_rate: np.ndarray  # (n, R), share of the attacked rounds in which a label was flipped
    history: dict[str, np.ndarray]
    state: GameState
