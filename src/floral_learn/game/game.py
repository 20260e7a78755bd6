"""The game of the paper's Algorithm 1 (two classes) and Algorithm 3 (one against all): the round, and the loop around
it.

In each round an attacker flips k of the given labels and the SVM answers with one projected gradient step on its dual:

    flips = k points among the B largest duals         yt = labels with those flipped
    dual  = project(dual - eta * (yt * K (yt * dual) - 1),  yt'dual = 0, 0 <= dual <= cap)

`play_round` is the only place where this is written; it is made of operations (game/operations.py) that numpy, torch,
CUDA graphs and the workers of a cluster supply. One pass over K per round serves two purposes: its first half closes
the round before (bias, objective, KKT residual), its second half is the gradient of this one, under its flips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from floral_learn.game.cuda_graph import GraphRows, recordable
from floral_learn.game.operations import LocalRows, Rows, Verdict
from floral_learn.game.problem import Game, step_schedule
from floral_learn.game.state import GameResult, GameState

__all__ = ["Callback", "Game", "GameResult", "GameState", "play", "play_round", "result_of", "solve", "step_schedule"]

Callback = Callable[[GameState], Any]
# A game is looked at after these rounds to see whether it has settled: 48, 64, 96, 128, 192, ...
LOOKS = frozenset(first << i for first in (48, 64) for i in range(32))


def play_round(rows: Rows, number: Any) -> Iterator[Verdict]:
    """Round `number` of Algorithm 1 / 3; half way through, the round before is judged, and the game may end there."""
    flips = rows.attack(number)  # line 3: k points at random among the B largest duals
    rows.relabel(flips)  # line 4: y_t, the GIVEN labels with those flipped
    rows.multiply(number)  # K (y_{t-1} lam_{t-1}) and K (y_t lam_{t-1}), in one pass
    yield rows.judge()  # bias, residual and objective of lam_{t-1}
    rows.descend(number)  # line 5: z = lam_{t-1} - eta_t (y_t * K (y_t * lam_{t-1}) - 1)
    root = rows.project()  # line 6: mu with y_t' clip(z - mu y_t, 0, C) = 0
    rows.accept(root, flips)  # lam_t = clip(z - mu y_t, 0, C)


def play(rows: Rows, callback: Callback | None = None) -> GameState:
    """Play from ``rows.state`` until the game has settled (``game.tol``), `callback` ends it, or the rounds are
    over.
    """
    game, state = rows.game, rows.state
    while not (state.settled and game.tol is not None):  # a game that had settled when it was saved stays as it is
        current = rows.round(state.round + 1)
        verdict = next(current)
        if not state.closed:
            state.history.close_round(verdict.bias, verdict.residual, verdict.objective)
            rows.add_up(verdict)
            state.closed = True
            if game.tol is not None and state.round in LOOKS:
                state.movement = float(rows.movement().mean())
                state.settled = state.movement <= game.tol
            if (callback is not None and callback(state)) or state.settled:
                return state
        if state.round >= game.rounds:
            return state
        for _ in current:  # the second half of the round
            pass
        root, flips = rows.step
        kept = flips.points if game.keep_flips else flips.points[:0]
        state.history.open_round(game.steps[state.round], root.mu, root.iterations, root.converged.all(), kept)
        state.round, state.closed = state.round + 1, False
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
        Called with the state each time a round is closed; a true answer ends the game there.

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
        rows = (GraphRows if recordable(game) else LocalRows)(game, state.copy(backend))
        return result_of(game, play(rows, callback))


def result_of(game: Game, state: GameState, average: bool = True) -> GameResult:
    """The outcome as it stands in `state`, which must be closed (as callbacks and `solve` see it).

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
        first, mean_weights, mean_bias = state.averages(game.average_from)
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
