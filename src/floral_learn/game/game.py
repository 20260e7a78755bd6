"""The game of the paper's Algorithm 1 (two classes) and Algorithm 3 (one against all).

In each round an attacker flips k of the given labels and the SVM answers with one projected gradient step on its dual:

    flips = k points among the B largest duals         yt = labels with those flipped
    dual  = project(dual - eta * (yt * K (yt * dual) - 1),  yt'dual = 0, 0 <= dual <= cap)

`Play.round` is the only place where this is written. Bias, objective and KKT residual of a round take a product with K
of their own, and only the averaged model and the history need them: rounds are closed many at a time, unless a callback
looks at each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from floral_learn.game.arrays import NUMPY, Array, outer
from floral_learn.game.attackers import Attacker, Flips, NoAttack, View
from floral_learn.game.dual import PROJECTIONS, Projection, optimality
from floral_learn.game.gram import Gram

Callback = Callable[["GameState"], Any]
# A game is looked at after these rounds to see whether it has settled: 24, 32, 48, 64, 96, 128, 192, ...
LOOKS = frozenset(first << i for first in (24, 32) for i in range(32))
# before that round it must be so many times as still (docs/results/looked-at.md)
EARLY, SURER = 64, 3.0


@dataclass(frozen=True)
class Game:
    """Everything that does not change while the game is played.

    Parameters
    ----------
    gram : Gram
        K for the n rows.
    labels : int ndarray of shape (n,) or (n, R)
        Class numbers 0 .. n_classes - 1, one column per game.
    cap : float ndarray of shape (n,), (n, 1) or (n, columns)
        Upper bound of each dual: C times the sample weight. A row with a cap of 0 takes no part.
    steps : float ndarray of shape (rounds,) or (rounds, R)
        eta of each round (see `step_schedule`).
    attacker : Attacker
        Who flips labels between steps.
    n_classes : int
        Two classes make one column per game; more make one column per class (one against all).
    seeds : int ndarray of shape (R,)
        One random stream per game.
    warm_up : int
        First rounds without flips.
    projection : {"exact", "fixed_point"} or callable
        See `PROJECTIONS`; a callable is used in their place.
    eligible : bool ndarray of shape (n,) or (n, R), optional
        Which labels may be flipped; all by default.
    weight : float ndarray of shape (n,) or (n, R), optional
        Sample weights, above 0: a row of weight 2 plays as two equal rows (`cap` must hold C * weight).
    tol : float, optional
        End the game once the averaged decision values on the rows have settled: their mean squared change per round,
        from one look to the next (after 24, 32, 48, 64, 96, ... rounds), is at most `tol` on the mean over columns
        (a third of it before round 64). None plays all rounds.
    row_ids : int ndarray of shape (n, R), optional
        What the random streams call each row, where games have rows of their own; 0 .. n - 1 by default.
    keep_flips : bool
        Whether the history holds the flipped rows of every round.

    Examples
    --------
    Three games on the same rows, each with its own random stream, are three columns of the same products:

    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.game.attackers import RandomizedTopK
    >>> from floral_learn.game.game import Game, solve, step_schedule
    >>> from floral_learn.game.gram import DenseGram
    >>> from floral_learn.game.kernels import Kernel
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> gram = DenseGram.from_rows(X, Kernel("rbf", gamma=1.0))
    >>> steps = step_schedule(1 / gram.lambda_max(centred=True), rounds=50)
    >>> game = Game(gram, y, np.full(100, 10.0), steps, RandomizedTopK(budget=10, flips=5), seeds=np.arange(3))
    >>> solve(game).dual.shape
    (100, 3)
    """

    gram: Gram
    labels: np.ndarray
    cap: np.ndarray
    steps: np.ndarray
    attacker: Attacker = field(default_factory=NoAttack)
    n_classes: int = 2
    seeds: np.ndarray | int = 0
    warm_up: int = 1
    projection: str | Callable[..., Projection] = "exact"
    eligible: np.ndarray | None = None
    weight: np.ndarray | None = None
    tol: float | None = None
    row_ids: np.ndarray | None = None
    keep_flips: bool = True

    @property
    def rounds(self) -> int:
        """T, the most rounds to be played."""
        return len(self.steps)


def step_schedule(eta: float | np.ndarray, rounds: int, decay: tuple[float, int] | None = None) -> np.ndarray:
    """eta_t for t = 1 .. rounds; ``decay=(factor, every)`` multiplies by `factor` after each `every` rounds.

    Parameters
    ----------
    eta : float or ndarray of shape (R,)
        The first step, of each game.
    rounds : int
        T.
    decay : (float, int), optional
        Factor and how often.

    Returns
    -------
    ndarray of shape (rounds,) or (rounds, R)
        For `Game`.

    Examples
    --------
    >>> from floral_learn.game.game import step_schedule
    >>> step_schedule(1.0, rounds=4, decay=(0.5, 2)).tolist()
    [1.0, 1.0, 0.5, 0.5]
    """
    shape = np.ones(rounds) if decay is None else decay[0] ** (np.arange(rounds) // decay[1])
    return np.multiply.outer(shape, np.asarray(eta, dtype=float))


@dataclass
class GameState:
    """Where a game stands after a round.

    Attributes
    ----------
    dual, signs : array of shape (n, columns)
        lambda_t, and the labels of this round, flips included.
    mu : array of shape (columns,)
        The projection's root: the next one starts there.
    weight_sum : array of shape (n, columns)
        Sum of signs * dual over all rounds.
    flip_count : array of shape (n, R)
        How often each label was flipped.
    round : int
        Rounds played.
    history : dict of list
        The record, one row per round, on the game's device. ``objective``, ``residual`` (KKT), ``bias`` and ``mu`` have
        one entry per column, ``step`` one per game, ``projected`` says whether every projection reached its tolerance
        after ``projection_iterations`` passes, and ``flips`` (k, R) are row numbers, -1 in empty places.
    settled : bool
        Whether the game ended because it had settled (`Game.tol`).
    movement : float
        What `Game.tol` is compared with, at the last look; infinite before.
    """

    dual: Array
    signs: Array
    mu: Array
    weight_sum: Array
    flip_count: Array
    round: int = 0
    history: dict[str, list[Any]] = field(default_factory=partial(defaultdict, list))
    settled: bool = False
    movement: float = float("inf")


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
        Where the game ended.

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


class Play:
    """A game under way: its arrays where they are computed, and its state.

    Parameters
    ----------
    game : Game
        What is played.
    start : array of shape (n, columns), optional
        The duals to begin with; zeros by default.
    """

    def __init__(self, game: Game, start: np.ndarray | None = None) -> None:
        self.game, self.width = game, 1 if game.n_classes == 2 else game.n_classes
        backend = self.backend = game.gram.backend
        float64 = backend.float64
        labels, steps = np.asarray(game.labels), np.asarray(game.steps, dtype=float)
        labels, steps = labels.reshape(len(labels), -1), steps.reshape(len(steps), -1)
        seeds = np.atleast_1d(np.asarray(game.seeds, dtype=np.int64))
        (games,) = np.broadcast_shapes(labels.shape[1:], steps.shape[1:], seeds.shape)
        self.steps = np.broadcast_to(steps, (len(steps), games))
        self.labels = backend.columns(np.broadcast_to(labels, (len(labels), games)), backend.int64)
        self.given = self.signs_of(self.labels)
        self.cap = backend.columns(game.cap, float64)
        self.weight = None if game.weight is None else backend.columns(game.weight, float64)
        self.eta = backend.array(np.repeat(self.steps, self.width, axis=1))
        how = game.projection
        self.project = PROJECTIONS[how] if isinstance(how, str) else how
        eligible = None
        if game.eligible is not None:
            allowed = np.reshape(game.eligible, (len(labels), -1))
            eligible = backend.columns(np.broadcast_to(allowed, (len(labels), games)))
        seeds = np.broadcast_to(seeds, (games,)).copy()
        columns = games * self.width
        self.view = View(self.labels, game.n_classes, columns, seeds, len(steps), backend, eligible, game.row_ids)
        self.prepared, self.nobody = game.attacker.prepare(self.view), self.view.nobody
        zeros = 0.0 * self.given
        dual = zeros if start is None else backend.columns(start, float64)
        self.state = GameState(dual, self.given, zeros[0], zeros, backend.cast(0 * self.labels, backend.int64))
        # sums of signed duals as they stood where an average may begin
        self.sums: dict[int, Array] = {0: zeros}
        # averaged decision values at the last look, and its round
        self.seen: tuple[Array, int] = None, 0
        self.waiting: list[tuple[Array, Array]] = []  # duals and labels of rounds that are not closed
        # One product serves many rounds, as long as their duals fit in a cache; sixteen where memory is what counts.
        numbers = len(labels) * columns
        self.room = max(1, min(16, 2**20 // numbers), min(64, 2**16 // numbers))

    def round(self) -> None:
        """One round of Algorithm 1 (or 3)."""
        state, K, number = self.state, self.game.gram, self.state.round + 1
        flips = self.attack(number)  # line 3: k points at random among the B largest duals
        signs = self.relabelled(flips)  # line 4: y_t, the GIVEN labels with those flipped
        gradient = signs * K.matmat(signs * state.dual) - 1
        eta = self.eta[number - 1]
        eta = eta if self.weight is None else outer(self.weight, eta)
        z = state.dual - eta * gradient  # line 5
        # line 6: y_t'a = 0, 0 <= a <= C
        point = self.project(z, signs, self.cap, state.mu, self.backend, self.weight)
        self.move(point, signs, flips)
        self.waiting.append((state.dual.T, signs.T))

    def attack(self, number: int) -> Flips:
        """The attacker's flips for round `number`; none while the game warms up."""
        attacker, state, view = self.game.attacker, self.state, self.view
        if number <= self.game.warm_up:
            return self.nobody
        view.dual = state.dual
        if attacker.needs_scores:
            product = self.game.gram.matmat(state.signs * state.dual)
            bias, *_ = optimality(product, state.dual, state.signs, self.cap, self.backend, self.weight)
            view.scores = product + bias
        return attacker(view, number, self.prepared)

    def relabelled(self, flips: Flips) -> Array:
        """-1 / +1 labels of every column, (n, R * M), with `flips` applied to the given labels."""
        if not len(flips.points):
            return self.given
        if self.width == 1:
            return self.backend.assign(self.given, flips.points, 2.0 * flips.labels - 1)
        return self.signs_of(self.backend.assign(self.labels, flips.points, flips.labels))

    def signs_of(self, labels: Array) -> Array:
        """-1 / +1 for class numbers (n, R); several classes are one column each."""
        if self.width > 1:
            # (R, M, n) in memory is (n, R * M) column by column.
            hits = labels.T[:, None, :] == self.backend.arange(self.width)[None, :, None]
            labels = hits.reshape(-1, hits.shape[-1]).T
        return 2 * self.backend.cast(labels, self.backend.float64) - 1

    def move(self, point: Projection, signs: Array, flips: Flips) -> None:
        """Take the projected point as the duals of the next round, into the averaged model's sums and the history."""
        state, game = self.state, self.game
        state.dual, state.signs, state.mu, state.round = point.dual, signs, point.mu, state.round + 1
        state.weight_sum = state.weight_sum + signs * point.dual
        # A game ends after a look or the last round, and the last half of its rounds is averaged.
        if 2 * state.round in LOOKS or state.round == len(self.steps) // 2:
            self.sums[state.round] = state.weight_sum
        if len(flips.points):
            changed = signs != self.given
            if self.width > 1:  # a row of another class differs in two of its columns
                changed = changed.T.reshape(-1, self.width, len(changed)).any(1).T
            state.flip_count = state.flip_count + changed
        history = state.history
        history["step"].append(self.steps[state.round - 1])
        history["mu"].append(point.mu)
        history["projection_iterations"].append(point.iterations)
        history["projected"].append(point.converged)
        history["flips"].append(flips.points if game.keep_flips else flips.points[:0])

    def close(self) -> None:
        """Bias, KKT residual and objective of all rounds that wait for them, at once."""
        rounds, xp, cap, weight = len(self.waiting), self.backend.xp, self.cap, self.weight
        duals, signs = map(xp.concatenate, zip(*self.waiting))
        duals, signs = duals.T, signs.T
        if cap.shape[1] > 1:
            cap = xp.concatenate([cap.T] * rounds).T
        if weight is not None and weight.shape[1] > 1:
            weight = xp.concatenate([weight.T] * rounds).T
        found = optimality(self.game.gram.matmat(signs * duals), duals, signs, cap, self.backend, weight)
        for name, values in zip(("bias", "residual", "objective"), found):
            self.state.history[name].extend(values.reshape(rounds, -1))
        self.waiting = []

    def averages(self) -> tuple[Array, Array]:
        """Mean signed duals and mean bias over the last half of the rounds."""
        state = self.state
        first = max(set(self.sums).intersection(range(state.round // 2 + 1)))
        for passed in set(self.sums).intersection(range(first)):
            del self.sums[passed]
        rounds, biases = state.round - first, state.history["bias"]
        return (state.weight_sum - self.sums[first]) / rounds, sum(biases[first:]) / rounds

    def look(self) -> bool:
        """Whether the game has settled: from the mean squared change per round of the averaged decision values."""
        weights, bias = self.averages()
        state, tol, (before, number) = self.state, self.game.tol or 0.0, self.seen
        scores = self.game.gram.matmat(weights) + bias
        self.seen = scores, state.round
        if before is None:
            return False
        plays = self.backend.cast(self.cap > 0, self.backend.float64)
        total, count = ((scores - before) ** 2 * plays).sum(0), plays.sum(0).clip(1, None)
        state.movement = float((total / count).mean()) / (state.round - number)
        return state.movement <= (tol if state.round >= EARLY else tol / SURER)

    def result(self, average: bool = True) -> GameResult:
        """The outcome as it stands; without `average` the averaged model is the last one."""
        state, backend, history = self.state, self.backend, {}
        for name, rows in state.history.items():
            rows = rows if backend is NUMPY else list(map(backend.numpy, rows))
            if name == "flips":  # rounds of the warm-up, and those with few candidates, have fewer
                shape = (len(rows), max(map(len, rows)), *rows[0].shape[1:])
                history[name] = np.full(shape, -1, dtype=np.int32)
                for row, values in zip(history[name], rows):
                    row[: len(values)] = values
            else:
                history[name] = np.array(rows)
        history["projected"] = np.logical_and.reduce(history["projected"], axis=1)
        weights = backend.numpy(state.signs * state.dual)
        bias = history["bias"][-1]
        mean_weights, mean_bias = self.averages() if average else (weights, bias)
        return GameResult(
            dual=backend.numpy(state.dual),
            weights=weights,
            bias=bias,
            mean_weights=backend.numpy(mean_weights),
            mean_bias=backend.numpy(mean_bias),
            residual=history["residual"][-1],
            flip_rate=backend.numpy(state.flip_count) / max(state.round - self.game.warm_up, 1),
            history=history,
            state=state,
        )


def solve(game: Game, callback: Callback | None = None, start: np.ndarray | None = None) -> GameResult:
    """Play `game` until it has settled (``game.tol``) or the rounds are over.

    Parameters
    ----------
    game : Game
        What is played.
    callback : callable, optional
        Called with the state after each round, to look at it.
    start : array of shape (n, columns), optional
        The duals to begin with; zeros by default.

    Returns
    -------
    GameResult
        Duals, the averaged model, flip rates, history, residual.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.game import Game, solve
    >>> from floral_learn.game.gram import DenseGram
    >>> game = Game(DenseGram(np.eye(4)), np.array([0, 0, 1, 1]), cap=np.ones(4), steps=np.full(50, 0.5))
    >>> result = solve(game)
    >>> result.dual[:, 0].round(3).tolist(), bool(result.residual[0] < 1e-6)
    ([1.0, 1.0, 1.0, 1.0], True)
    """
    with game.gram.backend.here():
        play = Play(game, start)
        state = play.state
        while state.round < len(play.steps) and not state.settled:
            play.round()
            look = game.tol is not None and state.round in LOOKS
            full = len(play.waiting) >= play.room
            if look or full or callback is not None or state.round == len(play.steps):
                play.close()
            if look:
                state.settled = play.look()
            if callback is not None:
                callback(state)
        return play.result()
