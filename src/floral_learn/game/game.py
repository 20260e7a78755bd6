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
from typing import Any

import numpy as np

from floral_learn.game.one_column import OneColumn, is_one_column
from floral_learn.game.operations import LocalRows, Rows
from floral_learn.game.problem import Game, step_schedule
from floral_learn.game.state import GameResult, GameState

__all__ = ["Callback", "Game", "GameResult", "GameState", "play", "result_of", "solve", "step_schedule"]

Callback = Callable[[GameState], Any]
# A game is looked at after these rounds to see whether it has settled: 48, 64, 96, 128, 192, ...
LOOKS = frozenset(first << i for first in (48, 64) for i in range(32))


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
            state.movement = float(rows.movement().mean())
            state.settled = state.movement <= game.tol
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
    first, mean_weights, mean_bias = max(state.round - 1, 0), weights, bias
    if average and state.round:
        first, mean_weights, mean_bias = state.averages(backend)
    return GameResult(
        dual=backend.numpy(state.dual),
        weights=weights,
        bias=bias,
        mean_weights=backend.numpy(mean_weights),
        mean_bias=backend.numpy(mean_bias),
        averaged_from=first,
        residual=residual,
        flip_rate=backend.numpy(state.flip_count) / max(state.round - game.warm_up, 1),
        history=history,
        state=state,
    )
