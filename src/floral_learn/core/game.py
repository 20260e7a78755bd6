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

from floral_learn.core.arrays import Array, draw
from floral_learn.core.attackers import TIES, Attacker, Flips, NoAttack, View
from floral_learn.core.gram import Gram
from floral_learn.core.projections import Projection
from floral_learn.core.recorded import LEAST, OPENING, play_recorded, recordable
from floral_learn.core.state import GameResult, GameState
from floral_learn.core.turn import answer, averages, judge, look_ahead

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
    steps : float ndarray of shape (rounds,) or (rounds, R)
        eta of each round (see `step_schedule`).
    attacker : Attacker
        Who flips labels between steps.
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
    weight : float ndarray of shape (n,), optional
        Sample weights, above 0: a row of weight 2 plays as two equal rows (`cap` must hold C * weight).
    one_vs_rest : bool
        Use one column a class even for two classes (for checking: it must not change the model).

    Examples
    --------
    Three games on the same rows, each with its own random stream, are three columns of the same products:

    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.core.attackers import RandomizedTopK
    >>> from floral_learn.core.game import Game, solve, step_schedule
    >>> from floral_learn.core.gram import DenseGram
    >>> from floral_learn.core.kernels import Kernel
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
    average_from: int | None = None
    projection: str = "exact"
    eligible: np.ndarray | None = None
    weight: np.ndarray | None = None
    one_vs_rest: bool = False
    eta: Array = field(init=False, repr=False)  # steps for each column, where the game is played

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
        steps = np.broadcast_to(steps[:, None] if steps.ndim == 1 else steps, (len(steps), games))
        fix("steps", steps)
        fix("eta", backend.array(np.repeat(steps, self.width, axis=1)))
        if self.eligible is not None:
            eligible = np.asarray(self.eligible, dtype=bool)
            eligible = eligible[:, None] if eligible.ndim == 1 else eligible
            fix("eligible", backend.columns(np.broadcast_to(eligible, labels.shape)))
        if self.weight is not None:
            fix("weight", backend.columns(self.weight, backend.float64))
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
            labels = backend.assign(labels, flips.points, flips.labels)
        labels = backend.cast(labels, backend.float64)
        if self.width == 1:
            return 2 * labels - 1
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
    >>> from floral_learn.core.game import step_schedule
    >>> step_schedule(1.0, rounds=4, decay=(0.5, 2)).tolist()
    [1.0, 1.0, 0.5, 0.5]
    """
    shape = np.ones(rounds) if decay is None else decay[0] ** (np.arange(rounds) // decay[1])
    return np.multiply.outer(shape, np.asarray(eta, dtype=float))


def solve(game: Game, state: GameState | None = None, callback: Callback | None = None) -> GameResult:
    """Play `game` from `state` (or from the start) to its last round.

    Parameters
    ----------
    game : Game
        What is played.
    state : GameState, optional
        Where to go on from; a state saved by a callback continues with the same bits.
    callback : callable, optional
        Called with the state each time a round is closed; a true answer ends the game there.

    Returns
    -------
    GameResult
        Duals, the averaged model, flip rates, history, residual.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.core.game import Game, solve
    >>> from floral_learn.core.gram import DenseGram
    >>> game = Game(DenseGram(np.eye(4)), np.array([0, 0, 1, 1]), cap=np.ones(4), steps=np.full(50, 0.5))
    >>> result = solve(game)
    >>> result.dual[:, 0].round(3).tolist(), bool(result.residual[0] < 1e-6)
    ([1.0, 1.0, 1.0, 1.0], True)
    >>> solve(game, callback=lambda state: state.round == 7).state.round
    7
    """
    with game.gram.backend.here():
        return _solve(game, state, callback)


def _solve(game: Game, state: GameState | None, callback: Callback | None) -> GameResult:
    backend = game.gram.backend
    state = GameState.start(game.signs(), game.games, backend) if state is None else state.copy(backend)
    view = _view_of(game)
    record_at = max(state.round + OPENING, game.warm_up + OPENING) if recordable(game) else game.rounds
    while True:
        recorded = not state.closed and record_at <= state.round <= game.rounds - LEAST
        if recorded and play_recorded(game, view, state, callback):
            break
        flips, signs, now, ahead = _look_ahead(game, view, state)
        if not state.closed:
            _close(game, state, now)
            if callback is not None and callback(state):
                break
        if state.round >= game.rounds:
            break
        projected = answer(game, state.dual, signs, ahead, game.eta[state.round], state.mu)
        state = _advance(game, state, flips, signs, projected)
    return result_of(game, state)


def _look_ahead(game: Game, view: dict[str, Any], state: GameState) -> tuple[Flips, Array, Array, Array]:
    """The attacker's next flips, the labels they give, and one pass over K: for this round and for the next."""
    attacker = NoAttack() if state.round < game.warm_up else game.attacker
    scores = None
    if state.round > 0 and game.attacker.needs_scores:
        now = game.gram.matmat(state.signs * state.dual)
        scores = now + judge(game, now, state.dual, state.signs)[0].bias
    seen = View(dual=state.dual, scores=scores, **view)
    if state.round == 0 and not bool((state.dual != 0).any()):  # nothing to ask K about
        flips = attacker(seen, 1)
        return flips, game.signs(flips), state.dual, state.dual
    return look_ahead(game, attacker, seen, state.signs, state.round + 1)


def _advance(game: Game, state: GameState, flips: Flips, signs: Array, projected: Projection) -> GameState:
    if len(flips.points):
        game.gram.backend.count(state.flip_count, flips.points)
    state.round += 1
    state.dual, state.signs, state.mu, state.closed = projected.dual, signs, projected.mu, False
    state.history.open_round(game.steps[state.round - 1], projected.mu, projected.iterations, flips.points)
    return state


def _close(game: Game, state: GameState, product: Array) -> None:
    """Bias, objective and residual of the round just played, and its share in the averaged model."""
    found, value = judge(game, product, state.dual, state.signs)
    state.history.close_round(found.bias, found.residual, value)
    if averages(game, state.round):
        state.weight_sum = state.weight_sum + state.signs * state.dual
        state.bias_sum = state.bias_sum + found.bias
        state.averaged += 1
    state.closed = True


def _view_of(game: Game) -> dict[str, Any]:
    backend = game.gram.backend
    rows = backend.array(np.arange(game.gram.n))[:, None]
    ranks = backend.argsort(backend.argsort(draw(game.seeds, 3 * TIES, rows)))
    return {
        "labels": game.labels,
        "n_classes": game.n_classes,
        "eligible": game.eligible,
        "ties": backend.columns(ranks),
        "seeds": game.seeds,
        "backend": backend,
    }


def result_of(game: Game, state: GameState) -> GameResult:
    """The outcome as it stands in `state`, which must be closed (as callbacks and `solve` see it).

    Parameters
    ----------
    game : Game
        What is played.
    state : GameState
        After a round.

    Returns
    -------
    GameResult
        As if the game had ended there.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.core.game import Game, result_of, solve
    >>> from floral_learn.core.gram import DenseGram
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
