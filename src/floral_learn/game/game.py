"""The game of the paper's Algorithm 1 (two classes) and Algorithm 3 (one against all).

In each round an attacker flips k of the given labels and the SVM answers with one projected gradient step on its dual:

    flips = k points among the B largest duals         yt = labels with those flipped
    dual  = project(dual - eta * (yt * K (yt * dual) - 1),  yt'dual = 0, 0 <= dual <= cap)

`Play.round` is the only place where this is written. Bias, objective and KKT residual of a round take a product with K
of their own, and only the averaged model and the history need them: rounds are closed many at a time, unless a callback
looks at each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from floral_learn.game.arrays import Array, NumpyBackend, outer
from floral_learn.game.attackers import Attacker, Flips, NoAttack, View
from floral_learn.game.dual import PROJECTIONS, Projection, gradient, optimality
from floral_learn.game.gram import Gram

Callback = Callable[["GameState"], Any]
# A game is looked at after these rounds to see whether it has settled: 24, 32, 48, 64, 96, 128, 192, ...
LOOKS = frozenset(first << i for first in (24, 32) for i in range(32))
EARLY, SURER = 64, 3.0  # before that round it must be so many times as still (benchmarks/game.py --part stop)


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
    def games(self) -> int:
        """R, how many games are played at once."""
        wide = np.shape(self.labels)[1:] + np.shape(self.steps)[1:]
        return max(*wide, np.size(self.seeds), 1)

    @property
    def width(self) -> int:
        """M, columns of one game."""
        return 1 if self.n_classes == 2 else self.n_classes

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


class History:
    """Rows of a game's record, on the game's device until somebody asks.

    ``objective``, ``residual`` (KKT), ``bias`` and ``mu`` have shape (rounds, columns), ``step`` (rounds, R),
    ``projection_iterations`` (rounds,), ``projected`` (rounds,) whether every projection reached its tolerance, and
    ``flips`` (rounds, k, R) holds row numbers, -1 in empty places.
    """

    def __init__(self) -> None:
        names = ("mu", "step", "projection_iterations", "projected", "flips", "objective", "residual", "bias")
        self.rows: dict[str, list[Any]] = {name: [] for name in names}

    def add(self, **rows: Any) -> None:
        """What is known of a round."""
        for name, row in rows.items():
            self.rows[name].append(row)

    def to_arrays(self, backend: NumpyBackend) -> dict[str, np.ndarray]:
        """One numpy array per quantity."""
        out = {name: np.array([backend.numpy(row) for row in rows]) for name, rows in self.rows.items() if name != "flips"}
        flips = [backend.numpy(row) for row in self.rows["flips"]]
        out["flips"] = np.full((len(flips), max(map(len, flips), default=0), *flips[0].shape[1:]), -1, dtype=np.int32)
        for t, row in enumerate(flips):
            out["flips"][t, : len(row)] = row
        return out


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
    history : History
        The record.
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
    history: History = field(default_factory=History)
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
        self.game, self.backend = game, game.gram.backend
        backend, float64, games = self.backend, self.backend.float64, game.games
        labels = np.asarray(game.labels)
        labels = np.broadcast_to(labels[:, None] if labels.ndim == 1 else labels, (len(labels), games))
        self.labels = backend.columns(labels, backend.int64)
        self.given = self.signs_of(self.labels)
        self.cap = backend.columns(game.cap, float64)
        self.weight = None if game.weight is None else backend.columns(game.weight, float64)
        self.steps = np.broadcast_to(np.reshape(game.steps, (game.rounds, -1)), (game.rounds, games)).astype(float)
        self.eta = backend.array(np.repeat(self.steps, game.width, axis=1))
        eligible = None
        if game.eligible is not None:
            allowed = np.reshape(game.eligible, (len(labels), -1))
            eligible = backend.columns(np.broadcast_to(allowed, labels.shape))
        seeds = np.broadcast_to(np.atleast_1d(np.asarray(game.seeds, dtype=np.int64)), (games,)).copy()
        columns = games * game.width
        self.view = View(
            self.labels, game.n_classes, columns, seeds, game.rounds, backend, eligible, game.row_ids
        )
        self.prepared = game.attacker.prepare(self.view)
        zeros = backend.zeros((len(labels), columns), float64)
        dual = zeros if start is None else backend.columns(start, float64)
        mu, flip_count = backend.zeros((columns,), float64), backend.zeros((len(labels), games), backend.int64)
        self.state = GameState(dual, self.given, mu, zeros, flip_count)
        self.sums: dict[int, Array] = {0: zeros}  # sums of signed duals as they stood where an average may begin
        self.seen: tuple[Array, int] = None, 0  # averaged decision values at the last look, and its round
        self.waiting: list[tuple[Array, Array]] = []  # duals and labels of rounds that are not closed
        # One product serves many rounds; their duals are at most a million numbers (8 MB) beside the game's own.
        self.room = max(1, min(64, 2**20 // max(1, len(labels) * columns)))

    def round(self) -> None:
        """One round of Algorithm 1 (or 3)."""
        state, number = self.state, self.state.round + 1
        flips = self.attack(number)  # line 3: k points at random among the B largest duals
        signs = self.relabelled(flips)  # line 4: y_t, the GIVEN labels with those flipped
        z = state.dual - self.eta_of(number) * gradient(self.product(signs * state.dual), signs)  # line 5
        point = self.project(z, signs)  # line 6: argmin |a - z| with y_t'a = 0, 0 <= a <= C
        state.dual, state.signs, state.mu, state.round = point.dual, signs, point.mu, number
        self.record(point, flips)
        self.waiting.append((state.dual, state.signs))

    def attack(self, number: int) -> Flips:
        """The attacker's flips for round `number`; none while the game warms up."""
        attacker, state, view = self.game.attacker, self.state, self.view
        if number <= self.game.warm_up:
            return NO_ATTACK(view, number, None)
        view.dual = state.dual
        if attacker.needs_scores:
            product = self.product(state.signs * state.dual)
            view.scores = product + optimality(product, state.dual, state.signs, self.cap, self.backend, self.weight)[0]
        return attacker(view, number, self.prepared)

    def relabelled(self, flips: Flips) -> Array:
        """-1 / +1 labels of every column, (n, R * M), with `flips` applied to the given labels."""
        if not len(flips.points):
            return self.given
        if self.game.width == 1:
            new = 2 * self.backend.cast(flips.labels, self.backend.float64) - 1
            return self.backend.assign(self.given, flips.points, new)
        return self.signs_of(self.backend.assign(self.labels, flips.points, flips.labels))

    def signs_of(self, labels: Array) -> Array:
        """-1 / +1 for class numbers (n, R); several classes are one column each."""
        backend = self.backend
        if self.game.width > 1:
            # (R, M, n) in memory is (n, R * M) column by column.
            hits = labels.T[:, None, :] == backend.arange(self.game.n_classes)[None, :, None]
            labels = hits.reshape(-1, hits.shape[-1]).T
        return 2 * backend.cast(labels, backend.float64) - 1

    def eta_of(self, number: int) -> Array:
        """The step of each column; a row of weight w moves w times as far."""
        eta = self.eta[number - 1]
        return eta if self.weight is None else outer(self.weight, eta)

    def product(self, weights: Array) -> Array:
        """K times columns; where all duals are zero, as in the first round, so is the product."""
        return weights if self.state.round == 0 and not weights.any() else self.game.gram.matmat(weights)

    def project(self, z: Array, signs: Array) -> Projection:
        """The projection, as the game asks for it."""
        how = self.game.projection
        how = PROJECTIONS[how] if isinstance(how, str) else how
        return how(z, signs, self.cap, self.state.mu, self.backend, self.weight)

    def record(self, point: Projection, flips: Flips) -> None:
        """The round that was played, into the sums of the averaged model and the history."""
        state, game = self.state, self.game
        if len(flips.points):
            self.backend.count(state.flip_count, flips.points)
        state.weight_sum = state.weight_sum + state.signs * state.dual
        # A game ends after a look or the last round, and the last half of its rounds is averaged.
        if 2 * state.round in LOOKS or state.round == game.rounds // 2:
            self.sums[state.round] = state.weight_sum
        state.history.add(
            step=self.steps[state.round - 1],
            mu=point.mu,
            projection_iterations=point.iterations,
            projected=point.converged.all(),
            flips=flips.points if game.keep_flips else flips.points[:0],
        )

    def close(self) -> None:
        """Bias, KKT residual and objective of all rounds that wait for them, at once."""
        rounds, stack = len(self.waiting), self.backend.side_by_side
        duals, signs = (stack(*parts) for parts in zip(*self.waiting))
        cap, weight = (x if x is None or x.shape[1] == 1 else stack(*[x] * rounds) for x in (self.cap, self.weight))
        found = optimality(self.product(signs * duals), duals, signs, cap, self.backend, weight)
        for name, values in zip(("bias", "residual", "objective"), found):
            self.state.history.rows[name].extend(values.reshape(rounds, -1))
        self.waiting = []

    def averages(self) -> tuple[Array, Array]:
        """Mean signed duals and mean bias over the last half of the rounds."""
        state = self.state
        first = max(known for known in self.sums if known <= state.round // 2)
        self.sums = {known: sums for known, sums in self.sums.items() if known >= first}
        rounds, biases = state.round - first, state.history.rows["bias"]
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
        state, backend = self.state, self.backend
        history = state.history.to_arrays(backend)
        weights = backend.numpy(state.signs * state.dual)
        bias, residual = history["bias"][-1], history["residual"][-1]
        mean_weights, mean_bias = self.averages() if average else (weights, bias)
        return GameResult(
            dual=backend.numpy(state.dual),
            weights=weights,
            bias=bias,
            mean_weights=backend.numpy(mean_weights),
            mean_bias=backend.numpy(mean_bias),
            residual=residual,
            flip_rate=backend.numpy(state.flip_count) / max(state.round - self.game.warm_up, 1),
            history=history,
            state=state,
        )


NO_ATTACK = NoAttack()


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
        while state.round < game.rounds and not state.settled:
            play.round()
            look = game.tol is not None and state.round in LOOKS
            if look or callback is not None or state.round == game.rounds or len(play.waiting) >= play.room:
                play.close()
            if look:
                state.settled = play.look()
            if callback is not None:
                callback(state)
        return play.result()
