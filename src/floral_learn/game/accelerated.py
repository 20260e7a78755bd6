"""Games without an attacker: the SVM dual itself, by accelerated projected gradient.

    argmin_a  a'Qa / 2 - 1'a   s.t.  y'a = 0,  0 <= a <= cap        for every column of a game

Momentum (FISTA) that restarts, column by column, whenever it points uphill, with the game's first step as the step. It
stops once every column's KKT residual, libsvm's own measure, is at most `tol`: the model is then libsvm's. Plain
projected gradient rounds, as the paper's baselines play them, are `game.game.solve`.
"""

from __future__ import annotations

from floral_learn.game.arrays import outer
from floral_learn.game.dual import gradient, kkt_sums, optimality_of
from floral_learn.game.game import Callback, Game, result_of
from floral_learn.game.projections import PROJECTIONS
from floral_learn.game.state import GameResult, GameState


def minimise(
    game: Game, tol: float = 1e-3, state: GameState | None = None, callback: Callback | None = None
) -> GameResult:
    """The SVM for the given labels of `game`, to a KKT residual of `tol` or for `game.rounds` rounds at most.

    Called as `game.game.solve` is; the attacker and later steps are not looked at. ``result.state.settled`` says
    whether every column reached `tol`. There is nothing to average: the averaged model is the last one.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.game.accelerated import minimise
    >>> from floral_learn.game.game import Game, step_schedule
    >>> from floral_learn.game.gram import DenseGram
    >>> from floral_learn.game.kernels import Kernel
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> gram = DenseGram.from_rows(X, Kernel("rbf", gamma=1.0))
    >>> found = minimise(Game(gram, y, np.ones(100), step_schedule(1 / gram.lambda_max(centred=True), 1000)))
    >>> bool(found.residual.max() <= 1e-3), found.state.settled
    (True, True)
    """
    backend = game.gram.backend
    with backend.here():
        signs = game.signs()
        if state is None:
            state = GameState.start(signs, game.games, backend)
            state.extra = {"previous": state.dual, "momentum": state.mu + 1.0}
        state = state.check_fits(signs, game.games, game.rounds)
        return result_of(game, _descend(game, state.copy(backend), tol, callback), average=False)


def _descend(game: Game, state: GameState, tol: float, callback: Callback | None) -> GameState:
    gram, backend, signs, weight = game.gram, game.gram.backend, state.signs, game.weight
    xp, project = backend.xp, PROJECTIONS["exact"]
    eta = game.eta[0] if weight is None else outer(weight, game.eta[0])
    previous, momentum = state.extra["previous"], state.extra["momentum"]
    product, before = gram.matmat(signs * state.dual), gram.matmat(signs * previous)
    while state.round < game.rounds and not state.settled:
        # Extrapolation to the next point, and whether the last step went uphill from its own extrapolated point.
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        carry = (momentum - 1) / following
        ahead = state.dual + carry * (state.dual - previous)
        ahead_product = product + carry * (product - before)  # K is linear: no second pass
        found = project(ahead - eta * gradient(ahead_product, signs), signs, game.cap, state.mu, backend, weight)
        slope = (ahead - found.dual) * (found.dual - state.dual)
        uphill = (slope if weight is None else slope / weight).sum(0) > 0
        momentum = xp.where(uphill, 1.0, following)
        previous, before = state.dual, product
        state.dual, state.mu = found.dual, found.mu
        product = gram.matmat(signs * state.dual)
        sums = kkt_sums(product, state.dual, signs, game.cap, backend, weight)
        bias, residual = optimality_of(sums, xp)
        closed = bias, residual, sums.objective
        empty = backend.zeros((0, game.games), backend.int64)
        state.history.add_round(game.steps[0], found.mu, found.iterations, found.converged.all(), empty)
        state.history.close_rounds(*(part[None] for part in closed))
        state.round += 1
        state.extra = {"previous": previous, "momentum": momentum}
        state.settled = bool(residual.max() <= tol)
        if callback is not None and callback(state):
            break
    return state
