"""The game of the paper's Algorithm 1 (two classes) and Algorithm 3 (one against all).

In each round an attacker flips k of the given labels and the SVM answers with one projected gradient step on its dual:

    flips = k points among the B largest duals         yt = labels with those flipped
    dual  = project(dual - eta * (yt * K (yt * dual) - 1),  yt'dual = 0, 0 <= dual <= cap)

`play` is the only place where this is written; it is made of operations (game/operations.py) that numpy, torch and the
workers of a cluster supply. Bias, objective and KKT residual of a round take a product with K of their own, and only
the averaged model and the history need them: rounds are closed many at a time, unless a callback looks at each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from floral_learn.game.arrays import Array
from floral_learn.game.attackers import Attacker, Flips, NoAttack
from floral_learn.game.gram import Gram
from floral_learn.game.operations import LocalRows, OneColumn, Rows, is_one_column
from floral_learn.game.state import GameResult, GameState

__all__ = ["Callback", "Game", "GameResult", "GameState", "play", "result_of", "solve", "step_schedule"]

Callback = Callable[[GameState], Any]
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
    projection : str
        ``"exact"`` or ``"fixed_point"``.
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
    projection: str = "exact"
    eligible: np.ndarray | None = None
    weight: np.ndarray | None = None
    tol: float | None = None
    row_ids: np.ndarray | None = None
    keep_flips: bool = True
    eta: Array = field(init=False, repr=False)  # steps for each column, where the game is played
    given: Array = field(init=False, repr=False)  # the labels of two classes as -1 / +1

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
        fix("given", 2 * backend.columns(labels, backend.float64) - 1)
        fix("cap", backend.columns(self.cap, backend.float64))
        steps = np.asarray(self.steps, dtype=float)
        steps = np.broadcast_to(steps[:, None] if steps.ndim == 1 else steps, (len(steps), games))
        fix("steps", steps)
        fix("eta", backend.array(np.repeat(steps, self.width, axis=1)))
        if self.eligible is not None:
            eligible = np.asarray(self.eligible, dtype=bool)
            eligible = eligible[:, None] if eligible.ndim == 1 else eligible
            fix("eligible", backend.columns(np.broadcast_to(eligible, labels.shape)))
        if self.weight is not None:
            fix("weight", backend.columns(self.weight, backend.float64))

    @property
    def games(self) -> int:
        """R, how many games are played at once."""
        return self.labels.shape[1]

    @property
    def width(self) -> int:
        """M, columns of one game."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def rounds(self) -> int:
        """T, the most rounds to be played."""
        return len(self.steps)

    def attacker_of(self, number: int) -> Attacker:
        """Who flips in round `number`: nobody while the game warms up."""
        return self.attacker if number > self.warm_up else NoAttack()

    def signs(self, flips: Flips | None = None) -> Array:
        """-1 / +1 labels of every column, (n, R * M), with `flips` applied to the given labels."""
        backend, labels = self.gram.backend, self.labels
        if self.width == 1:
            if flips is None or not len(flips.points):
                return self.given
            return backend.assign(self.given, flips.points, 2 * backend.cast(flips.labels, backend.float64) - 1)
        if flips is not None and len(flips.points):
            labels = backend.assign(labels, flips.points, flips.labels)
        labels = backend.cast(labels, backend.float64)
        classes = backend.arange(self.n_classes)
        # (R, M, n) in memory is (n, R * M) column by column.
        hits = labels.T[:, None, :] == classes[None, :, None]
        return 2 * backend.cast(hits.reshape(-1, hits.shape[-1]), backend.float64).T - 1


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


def play(rows: Rows, callback: Callback | None = None) -> GameState:
    """Play from ``rows.state`` until the game has settled (``game.tol``), `callback` ends it, or the rounds are
    over.
    """
    game, state = rows.game, rows.state
    if game.tol is not None and state.settled:
        return state  # it had settled when it was saved: it stays as it is
    while state.round < game.rounds:
        number = state.round + 1
        flips = rows.attack(number)  # line 3: k points at random among the B largest duals
        rows.relabel(flips)  # line 4: y_t, the GIVEN labels with those flipped
        rows.descend(number)  # line 5: z = lam_{t-1} - eta_t (y_t * K (y_t * lam_{t-1}) - 1)
        root = rows.project()  # line 6: mu with y_t' clip(z - mu y_t, 0, C) = 0
        rows.accept(root, flips)  # lam_t = clip(z - mu y_t, 0, C)
        kept = flips.points if game.keep_flips else flips.points[:0]
        state.history.add_round(game.steps[number - 1], root.mu, root.iterations, root.converged.all(), kept)
        state.round = number
        look = game.tol is not None and number in LOOKS
        if look or callback is not None or number == game.rounds or rows.full():
            rows.close()
        if look and game.tol is not None:
            state.movement = rows.movement()
            state.settled = state.movement <= (game.tol if number >= EARLY else game.tol / SURER)
        if (callback is not None and callback(state)) or state.settled:
            break
    return state


def solve(game: Game, state: GameState | None = None, callback: Callback | None = None) -> GameResult:
    """Play `game` from `state` (or from the start) to its end.

    Parameters
    ----------
    game : Game
        What is played.
    state : GameState, optional
        Where to go on from; a state saved by a callback continues with the same bits.
    callback : callable, optional
        Called with the state after each round; a true answer ends the game there.

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
    >>> solve(game, callback=lambda state: state.round == 7).state.round
    7
    """
    backend = game.gram.backend
    with backend.here():
        signs = game.signs()
        if state is None:
            state = GameState.start(signs, game.games, backend, game.rounds)
        state = state.check_fits(signs, game.games, game.rounds)
        rows = OneColumn if is_one_column(game) else LocalRows
        return result_of(game, play(rows(game, state.copy(backend)), callback))


def result_of(game: Game, state: GameState, average: bool = True) -> GameResult:
    """The outcome as it stands in `state`, whose rounds must be closed (as callbacks and `solve` see them).

    Parameters
    ----------
    game : Game
        What is played.
    state : GameState
        After a round.
    average : bool, default=True
        False where no sums over rounds were kept: the averaged model is then the last one.

    Returns
    -------
    GameResult
        As if the game had ended there.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.game import Game, result_of, solve
    >>> from floral_learn.game.gram import DenseGram
    >>> game = Game(DenseGram(np.eye(4)), np.array([0, 0, 1, 1]), cap=np.ones(4), steps=np.full(5, 0.1))
    >>> seen = []
    >>> _ = solve(game, callback=lambda state: seen.append(float(result_of(game, state).dual.sum())))
    >>> len(seen), seen == sorted(seen)
    (5, True)
    """
    backend = game.gram.backend
    history = state.history.to_arrays(backend)
    weights = backend.numpy(state.signs * state.dual)
    columns = weights.shape[1]
    bias, residual = (history[name][-1] if state.round else np.zeros(columns) for name in ("bias", "residual"))
    mean_weights, mean_bias = state.averages(backend) if average and state.round else (weights, bias)
    return GameResult(
        dual=backend.numpy(state.dual),
        weights=weights,
        bias=bias,
        mean_weights=backend.numpy(mean_weights),
        mean_bias=backend.numpy(mean_bias),
        residual=residual,
        flip_rate=backend.numpy(state.flip_count) / max(state.round - game.warm_up, 1),
        history=history,
        state=state,
    )
