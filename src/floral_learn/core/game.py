"""The game of the paper's Algorithm 1 (two classes) and Algorithm 3 (one against all), many games at a time.

In each round an attacker flips k of the given labels and the SVM answers with one projected gradient step on its dual:

    flips = k points among the B largest duals         yt = labels with those flipped
    dual  = project(dual - eta * (yt * K (yt * dual) - 1),  yt'dual = 0, 0 <= dual <= cap)

R games that share the rows (seeds, budgets, steps, label sets) and the M columns of a multi-class game are columns
of the same products. One pass over K a round serves two purposes: its first half closes the round (bias, objective,
KKT residual of the new duals), its second half is the gradient of the next one, under the next flips.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from floral_learn.core.arrays import Array, NumpyBackend, draw
from floral_learn.core.attackers import TIES, Attacker, Flips, NoAttack, View
from floral_learn.core.dual import Optimality, gradient, objective, optimality
from floral_learn.core.gram import Gram
from floral_learn.core.history import History
from floral_learn.core.projections import PROJECTIONS

Callback = Callable[["GameState"], Any]


@dataclass(frozen=True)
class Game:
    """Everything that does not change while the game is played.

    Parameters
    ----------
    gram : Gram
        K for the n rows.
    labels : int ndarray of shape (n,) or (n, R)
        Class numbers 0 .. n_classes - 1, one column a game.
    cap : float ndarray of shape (n,), (n, 1) or (n, columns)
        Upper bound of each dual: C times the sample weight.
    attacker : Attacker
        Who flips labels between steps.
    steps : float ndarray of shape (rounds,) or (rounds, R)
        eta of each round (see `step_schedule`).
    n_classes : int
        Two classes make one column a game; more make one column a class (one against all).
    seeds : int ndarray of shape (R,)
        One random stream a game.
    warm_up : int
        First rounds without flips.
    average_from : int, optional
        Rounds after this one enter the averaged model; by default the second half.
    projection : str
        ``"exact"`` or ``"fixed_point"``.
    eligible : bool ndarray of shape (n,) or (n, R), optional
        Which labels may be flipped; all by default.
    one_vs_rest : bool
        Use one column a class even for two classes (for checking: it must not change the model).
    """

    gram: Gram
    labels: np.ndarray
    cap: np.ndarray
    steps: np.ndarray
    attacker: Attacker = field(default_factory=NoAttack)
    n_classes: int = 2
    seeds: np.ndarray | int = 0
    warm_up: int = 1
    average_from: int | None = None
    projection: str = "exact"
    eligible: np.ndarray | None = None
    one_vs_rest: bool = False

    def __post_init__(self) -> None:
        backend = self.gram.backend
        fix = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731 (the dataclass is frozen)
        labels = np.asarray(self.labels)
        labels = labels[:, None] if labels.ndim == 1 else labels
        seeds = np.atleast_1d(np.asarray(self.seeds, dtype=np.int64))
        games = max(labels.shape[1], len(seeds), np.shape(self.steps)[1] if np.ndim(self.steps) == 2 else 1)
        labels = np.broadcast_to(labels, (len(labels), games))
        fix("seeds", backend.array(np.ascontiguousarray(np.broadcast_to(seeds, (games,)))))
        fix("labels", backend.columns(labels, backend.int64))
        fix("cap", backend.columns(self.cap, backend.float64))
        steps = np.asarray(self.steps, dtype=float)
        fix("steps", np.broadcast_to(steps[:, None] if steps.ndim == 1 else steps, (len(steps), games)))
        if self.eligible is not None:
            eligible = np.asarray(self.eligible, dtype=bool)
            eligible = eligible[:, None] if eligible.ndim == 1 else eligible
            fix("eligible", backend.columns(np.broadcast_to(eligible, labels.shape)))
        if self.average_from is None:
            fix("average_from", len(steps) // 2)

    @property
    def games(self) -> int:
        """R, how many games are played at once."""
        return self.labels.shape[1]

    @property
    def width(self) -> int:
        """M, columns of one game."""
        return 1 if self.n_classes == 2 and not self.one_vs_rest else self.n_classes

    @property
    def rounds(self) -> int:
        """T, rounds to be played in all."""
        return len(self.steps)

    def signs(self, flips: Flips | None = None) -> Array:
        """-1 / +1 labels of every column, (n, R * M), with `flips` applied to the given labels."""
        backend, labels = self.gram.backend, self.labels
        if flips is not None and len(flips.points):
            game = backend.array(np.arange(self.games))[None, :] + flips.points * 0
            valid = flips.points >= 0
            labels = backend.copy(labels)
            labels[flips.points[valid], game[valid]] = flips.labels[valid]
        labels = backend.cast(labels, backend.float64)
        if self.width == 1:
            return 2 * labels - 1
        classes = backend.array(np.arange(self.n_classes, dtype=float))
        # (R, M, n) in memory is (n, R * M) column by column.
        hits = labels.T[:, None, :] == classes[None, :, None]
        return 2 * backend.cast(hits.reshape(-1, hits.shape[-1]), backend.float64).T - 1


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
    def start(cls, game: Game) -> GameState:
        """Round 0: all duals are zero."""
        backend, columns, n = game.gram.backend, game.games * game.width, game.gram.n
        zeros = backend.zeros
        return cls(
            round=0,
            dual=zeros((n, columns), backend.float64),
            signs=game.signs(),
            mu=zeros((columns,), backend.float64),
            weight_sum=zeros((n, columns), backend.float64),
            bias_sum=zeros((columns,), backend.float64),
            averaged=0,
            flip_count=zeros((n, game.games), backend.int64),
            history=History(),
            closed=True,
        )

    def to_arrays(self, backend: NumpyBackend) -> dict[str, np.ndarray]:
        """The state as plain numpy arrays."""
        arrays = {name: backend.numpy(getattr(self, name)) for name in _ARRAYS}
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
            round=rounds, averaged=averaged, closed=bool(closed), history=History.from_arrays(history), **fields
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


def step_schedule(eta: float | np.ndarray, rounds: int, decay: tuple[float, int] | None = None) -> np.ndarray:
    """eta_t for t = 1 .. rounds; ``decay=(factor, every)`` multiplies by `factor` after each `every` rounds."""
    shape = np.ones(rounds) if decay is None else decay[0] ** (np.arange(rounds) // decay[1])
    return np.multiply.outer(shape, np.asarray(eta, dtype=float))


def solve(game: Game, state: GameState | None = None, callback: Callback | None = None) -> GameResult:
    """Play `game` from `state` (or from the start) to its last round.

    `callback` is called with the state each time a round is closed; a true answer ends the game there. A state saved
    by it, given to `solve` with the same game, continues with the same bits.
    """
    gram, backend = game.gram, game.gram.backend
    state = GameState.start(game) if state is None else state
    project = PROJECTIONS[game.projection]
    view = _view_of(game)
    while True:
        flips, signs, now, ahead = _look_ahead(game, view, state)
        if not state.closed:
            _close(game, state, now)
            if callback is not None and callback(state):
                break
        if state.round >= game.rounds:
            break
        eta = backend.array(np.repeat(game.steps[state.round], game.width))
        step = state.dual - eta * gradient(ahead, signs)
        projected = project(step, signs, game.cap, state.mu, backend)
        state = _advance(game, state, flips, signs, projected)
    return _result(game, state, backend.numpy(optimality(now, state.dual, state.signs, game.cap, backend).residual))


def _look_ahead(game: Game, view: dict[str, Any], state: GameState) -> tuple[Flips, Array, Array, Array]:
    """The attacker's next flips, the labels they give, and one pass over K: for this round and for the next."""
    gram, backend = game.gram, game.gram.backend
    weights = state.signs * state.dual
    scores = None
    if state.round > 0 and game.attacker.needs_scores:
        now = gram.matmat(weights)
        scores = now + optimality(now, state.dual, state.signs, game.cap, backend).bias
    attacker = NoAttack() if state.round < game.warm_up else game.attacker
    flips = attacker(View(dual=state.dual, scores=scores, **view), state.round + 1)
    signs = game.signs(flips)
    if state.round == 0:
        return flips, signs, weights, weights  # all zero: K need not be asked
    columns = weights.shape[1]
    both = gram.matmat(backend.side_by_side(weights, signs * state.dual))
    return flips, signs, both[:, :columns], both[:, columns:]


def _advance(game: Game, state: GameState, flips: Flips, signs: Array, projected: Any) -> GameState:
    backend = game.gram.backend
    if len(flips.points):
        game_of = backend.array(np.arange(game.games))[None, :] + flips.points * 0
        valid = flips.points >= 0
        state.flip_count[flips.points[valid], game_of[valid]] += 1
    state.round += 1
    state.dual, state.signs, state.mu, state.closed = projected.dual, signs, projected.mu, False
    state.history.open_round(game.steps[state.round - 1], projected, flips.points)
    return state


def _close(game: Game, state: GameState, product: Array) -> None:
    """Bias, objective and residual of the round just played, and its share in the averaged model."""
    found: Optimality = optimality(product, state.dual, state.signs, game.cap, game.gram.backend)
    state.history.close_round(found, objective(product, state.dual, state.signs))
    if state.round > (game.average_from or 0) or game.average_from == 0:
        state.weight_sum = state.weight_sum + state.signs * state.dual
        state.bias_sum = state.bias_sum + found.bias
        state.averaged += 1
    state.closed = True


def _view_of(game: Game) -> dict[str, Any]:
    backend = game.gram.backend
    rows = backend.array(np.arange(game.gram.n))[:, None]
    order = backend.numpy(draw(game.seeds, 3 * TIES, rows))
    ranks = np.argsort(np.argsort(order, axis=0, kind="stable"), axis=0)
    return {
        "labels": game.labels,
        "n_classes": game.n_classes,
        "eligible": game.eligible,
        "ties": backend.columns(ranks),
        "seeds": game.seeds,
        "exact": game.gram.dtype == "float64",
        "backend": backend,
    }


def _result(game: Game, state: GameState, residual: np.ndarray) -> GameResult:
    backend = game.gram.backend
    history = state.history.to_arrays(backend)
    weights = backend.numpy(state.signs * state.dual)
    columns = weights.shape[1]
    bias = history["bias"][-1] if state.round else np.zeros(columns)
    attacked = max(state.round - game.warm_up, 1)
    averaged = state.averaged > 0
    return GameResult(
        dual=backend.numpy(state.dual),
        weights=weights,
        bias=bias,
        mean_weights=backend.numpy(state.weight_sum) / state.averaged if averaged else weights,
        mean_bias=backend.numpy(state.bias_sum) / state.averaged if averaged else bias,
        residual=residual,
        flip_rate=backend.numpy(state.flip_count) / attacked,
        history=history,
        state=state,
    )
