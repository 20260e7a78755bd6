"""Where a game stands, what happened in it, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from floral_learn.game.arrays import Array, NumpyBackend

_ARRAYS = ("dual", "signs", "mu", "weight_sum", "flip_count")
MARK_BYTES = 64_000_000  # memory for the sums that are kept on the way, see `Marks`


class History:
    """Rows of a game's record, on the game's device until somebody asks.

    ``objective``, ``residual`` (KKT), ``bias`` and ``mu`` have shape (rounds, columns), ``step`` (rounds, R),
    ``projection_iterations`` (rounds,), ``projected`` (rounds,) whether every projection reached its tolerance, and
    ``flips`` (rounds, k, R) holds row numbers, -1 in empty places.
    """

    def __init__(self) -> None:
        names = ("mu", "step", "projection_iterations", "projected", "flips", "objective", "residual", "bias")
        self.rows: dict[str, list[Any]] = {name: [] for name in names}

    def add_round(self, step: np.ndarray, mu: Array, iterations: Any, projected: Any, flips: Array) -> None:
        """What is known once the step is made."""
        self.rows["step"].append(step)
        self.rows["mu"].append(mu)
        self.rows["projection_iterations"].append(iterations)
        self.rows["projected"].append(projected)
        self.rows["flips"].append(flips)

    def close_rounds(self, bias: Array, residual: Array, objective: Array) -> None:
        """What a product with K tells about the oldest rounds that are still open, (rounds, columns) each."""
        self.rows["bias"].extend(bias)
        self.rows["residual"].extend(residual)
        self.rows["objective"].extend(objective)

    def mean_bias(self, first: int, backend: NumpyBackend) -> Array:
        """Mean bias of the rounds after `first`: a difference of running sums, as the mean duals are."""
        sums = backend.stacked(self.rows["bias"]).cumsum(0)
        return (sums[-1] - (sums[first - 1] if first else 0.0)) / (len(sums) - first)

    def __len__(self) -> int:
        return len(self.rows["step"])

    def copy(self) -> History:
        """The same rows, in lists of their own."""
        other = History()
        other.rows = {name: list(rows) for name, rows in self.rows.items()}
        return other

    def to_arrays(self, backend: NumpyBackend) -> dict[str, np.ndarray]:
        """One numpy array per quantity."""
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


@dataclass
class Marks:
    """Sums over the rounds as they stood at some earlier rounds, so that the last half can be averaged whenever a game
    ends.

    A mark is kept for each round of the last half, or for every `stride` of them where that would take more than
    `MARK_BYTES`. Round 0, where every sum is zero, needs no mark.
    """

    stride: int = 1
    rounds: list[int] = field(default_factory=list)
    weights: list[Array] = field(default_factory=list)  # of (n, columns)

    @staticmethod
    def stride_for(numbers: int, rounds: int) -> int:
        """Rounds between two marks of `numbers` float64 each, for a game of at most `rounds` rounds."""
        return max(1, -(-rounds * numbers * 4 // MARK_BYTES))

    def note(self, number: int, weights: Array, middle: int) -> None:
        """Keep the sums after round `number`, if its turn has come (round `middle` is always kept); let go of old
        ones.
        """
        if number % self.stride == 0 or number == middle:
            self.rounds.append(number)
            self.weights.append(weights)
        while len(self.rounds) > 1 and self.rounds[1] <= number // 2 and self.rounds[0] != middle:
            del self.rounds[0], self.weights[0]

    def nearest(self, number: int) -> tuple[int, Array]:
        """The marked round nearest to `number`, and its sums."""
        best = min(range(-1, len(self.rounds)), key=lambda i: abs((self.rounds[i] if i >= 0 else 0) - number))
        return (0, 0.0) if best < 0 else (self.rounds[best], self.weights[best])


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
    weight_sum : array of shape (n, columns)
        Sum of signs * dual over all rounds.
    flip_count : array of shape (n, R)
        How often each label was flipped.
    history : History
        The record.
    marks : Marks
        Earlier sums, for the average over the last half.
    settled : bool
        Whether the game ended because it had settled (`Game.tol`).
    movement : float
        What `Game.tol` is compared with, at the last look; infinite before.
    extra : dict
        What is needed beside this to go on: the averaged decision values at the last look, or the momentum of the
        accelerated solver.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.game import Game, solve
    >>> from floral_learn.game.gram import DenseGram
    >>> game = Game(gram=DenseGram(np.eye(4)), labels=np.array([0, 0, 1, 1]), cap=np.ones(4), steps=np.full(10, 0.5))
    >>> solve(game).state.round
    10
    """

    round: int
    dual: Array
    signs: Array
    mu: Array
    weight_sum: Array
    flip_count: Array
    history: History
    marks: Marks = field(default_factory=Marks)
    settled: bool = False
    movement: float = float("inf")
    extra: dict[str, Array] = field(default_factory=dict)

    @classmethod
    def start(cls, signs: Array, games: int, backend: NumpyBackend, rounds: int = 1) -> GameState:
        """Round 0: all duals are zero."""
        n, columns = signs.shape
        zeros = backend.zeros
        return cls(
            round=0,
            dual=zeros((n, columns), backend.float64),
            signs=signs,
            mu=zeros((columns,), backend.float64),
            weight_sum=zeros((n, columns), backend.float64),
            flip_count=zeros((n, games), backend.int64),
            history=History(),
            marks=Marks(Marks.stride_for(n * columns, rounds)),
        )

    def copy(self, backend: NumpyBackend) -> GameState:
        """A state that can be played on without changing this one."""
        marks = replace(
            self.marks,
            rounds=list(self.marks.rounds),
            weights=list(self.marks.weights),
        )
        flip_count = backend.copy(self.flip_count)
        return replace(self, flip_count=flip_count, history=self.history.copy(), marks=marks, extra=dict(self.extra))

    def averages(self, backend: NumpyBackend) -> tuple[Array, Array]:
        """Mean signed duals and mean bias over the last half of the rounds."""
        first, weights = self.marks.nearest(self.round // 2)
        if first >= self.round:  # nothing was played after it: the last round is all there is
            return self.signs * self.dual, self.history.rows["bias"][-1]
        return (self.weight_sum - weights) / (self.round - first), self.history.mean_bias(first, backend)

    def to_arrays(self, backend: NumpyBackend) -> dict[str, np.ndarray]:
        """The state as plain numpy arrays."""
        arrays = {name: np.array(backend.numpy(getattr(self, name))) for name in _ARRAYS}  # copies: the game goes on
        arrays["signs"] = arrays["signs"].astype(np.int8)
        arrays["counters"] = np.array([self.round, int(self.settled)])
        arrays["movement"] = np.array([self.movement])
        arrays["marks.rounds"] = np.array([self.marks.stride, *self.marks.rounds])
        kept = backend.numpy_rows(self.marks.weights)
        arrays["marks.weights"] = np.array(kept) if kept else np.zeros((0, *arrays["dual"].shape))
        extra = {f"extra.{k}": np.array(backend.numpy(v)) for k, v in self.extra.items()}
        return arrays | extra | {f"history.{k}": v for k, v in self.history.to_arrays(backend).items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], backend: NumpyBackend) -> GameState:
        """The state that `to_arrays` wrote; a ValueError where no game can stand there."""

        def part(prefix: str) -> dict[str, np.ndarray]:
            return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}

        _check_arrays(arrays, part("history."))
        fields: dict[str, Any] = {name: backend.array(arrays[name]) for name in _ARRAYS}
        for name in ("dual", "signs", "weight_sum"):
            fields[name] = backend.columns(fields[name], backend.float64)
        fields["flip_count"] = backend.columns(fields["flip_count"])
        number, settled = (int(i) for i in arrays["counters"])
        stride, *marked = (int(i) for i in arrays["marks.rounds"])
        weights = [backend.columns(w) for w in arrays["marks.weights"]]
        extra = {k: backend.columns(v) if v.ndim == 2 else backend.array(v) for k, v in part("extra.").items()}
        return cls(
            round=number,
            settled=bool(settled),
            movement=float(arrays["movement"][0]),
            history=History.from_arrays(part("history.")),
            marks=Marks(stride, marked, weights),
            extra=extra,
            **fields,
        )

    def check_fits(self, signs: Array, games: int, rounds: int) -> GameState:
        """This state, if it can be one of a game with these signs; else a ValueError."""
        shapes = (tuple(self.dual.shape), tuple(self.flip_count.shape))
        if shapes != (tuple(signs.shape), (signs.shape[0], games)):
            raise ValueError(f"the state is that of {shapes[0][0]} rows and {shapes[0][1]} columns, not of this game")
        if self.round > rounds:
            raise ValueError(f"the state is of round {self.round}, and the game has {rounds}")
        return self


@dataclass(frozen=True)
class GameResult:
    """The outcome; arrays are numpy, one column per game (or per class of a game).

    Attributes
    ----------
    dual, weights : ndarray of shape (n, columns)
        The last duals, and these times the labels of the last round: f = K @ weights + bias.
    bias, residual : ndarray of shape (columns,)
        Of the last round; the residual is that of the KKT conditions, under that round's labels.
    mean_weights, mean_bias : ndarray
        The averaged model.
    flip_rate : ndarray of shape (n, R)
        Share of the attacked rounds in which each label was flipped.
    history : dict of ndarray
        One array per quantity, first axis the round.
    state : GameState
        Where the game ended; it can be played on.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.game import Game, solve
    >>> from floral_learn.game.gram import DenseGram
    >>> game = Game(gram=DenseGram(np.eye(4)), labels=np.array([0, 0, 1, 1]), cap=np.ones(4), steps=np.full(50, 0.5))
    >>> solve(game).dual[:, 0].round(3).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    dual: np.ndarray
    weights: np.ndarray
    bias: np.ndarray
    mean_weights: np.ndarray
    mean_bias: np.ndarray
    residual: np.ndarray
    flip_rate: np.ndarray
    history: dict[str, np.ndarray]
    state: GameState


def _check_arrays(arrays: dict[str, np.ndarray], history: dict[str, np.ndarray]) -> None:
    """Raise ValueError where the parts of a state contradict each other."""

    def require(fits: Any, what: str) -> None:
        if not fits:
            raise ValueError(f"the state's {what} cannot be those of a game")

    needed = {*_ARRAYS, "counters", "movement", "marks.rounds", "marks.weights"}
    require(needed <= set(arrays) and set(History().rows) == set(history), "parts")
    require(all(a.dtype.kind in "biuf" for name, a in arrays.items() if name in needed), "numbers")
    shape = arrays["dual"].shape
    require(len(shape) == 2 and arrays["signs"].shape == arrays["weight_sum"].shape == shape, "sizes")
    require(arrays["mu"].shape == shape[1:], "sizes")
    require(arrays["flip_count"].ndim == 2 and len(arrays["flip_count"]) == shape[0], "sizes")
    require(arrays["counters"].shape == (2,) and arrays["movement"].shape == (1,), "counters")
    number, settled = (int(i) for i in arrays["counters"])
    require(number >= 0 and settled in (0, 1), "counters")
    require(all(len(rows) == number for rows in history.values()), "history")
    for name in _ARRAYS:
        require(np.isfinite(arrays[name]).all(), name)
    require((arrays["dual"] >= 0).all() and np.isin(arrays["signs"], (-1, 0, 1)).all(), "dual")
    require(((arrays["flip_count"] >= 0) & (arrays["flip_count"] <= number)).all(), "flip_count")
    stride, *marked = (int(i) for i in arrays["marks.rounds"].ravel())
    require(stride >= 1 and sorted(set(marked)) == marked and all(0 <= m <= number for m in marked), "marks")
    require(arrays["marks.weights"].shape == (len(marked), *shape), "marks")
    require(np.isfinite(arrays["marks.weights"]).all(), "marks")
    for name, values in arrays.items():
        if name.startswith("extra."):
            require(values.dtype.kind in "biuf" and np.isfinite(values).all(), name)


def _pad(rows: list[np.ndarray]) -> np.ndarray:
    if not rows:
        return np.zeros((0, 0, 0), dtype=np.int32)
    longest = max(len(row) for row in rows)
    out = np.full((len(rows), longest, rows[0].shape[1]), -1, dtype=np.int32)
    for t, row in enumerate(rows):
        out[t, : len(row)] = row
    return out
