"""Games without an attacker: the SVM dual itself, by accelerated projected gradient.

    argmin_a  a'Qa / 2 - 1'a   s.t.  y'a = 0,  0 <= a <= cap        for every column of a game

Momentum (FISTA) that restarts, column by column, whenever it points uphill, with the game's first step as the step. It
stops once every column's KKT residual, libsvm's own measure, is at most `tol`: the model is then libsvm's. Plain
projected gradient rounds, as the paper's baselines play them, are `game.game.solve`.
"""

from __future__ import annotations

from floral_learn.game.arrays import outer
from floral_learn.game.dual import gradient, optimality, project_exact
from floral_learn.game.game import Game, GameResult, Play


def minimise(game: Game, tol: float = 1e-3) -> GameResult:
    """The SVM for the given labels of `game`, to a KKT residual of `tol` or for `game.rounds` rounds at most.

    The attacker and later steps are not looked at. ``result.state.settled`` says whether every column reached `tol`.
    There is nothing to average: the averaged model is the last one.

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
    with game.gram.backend.here():
        play = Play(game)
        _descend(play, tol)
        return play.result(average=False)


def _descend(play: Play, tol: float) -> None:
    game, state, backend, weight = play.game, play.state, play.backend, play.weight
    gram, xp, signs, cap = game.gram, backend.xp, play.given, play.cap
    eta = play.eta[0] if weight is None else outer(weight, play.eta[0])
    previous, momentum = state.dual, state.mu + 1.0
    product = before = 0 * state.dual
    while state.round < game.rounds and not state.settled:
        # Extrapolation to the next point, and whether the last step went uphill from its own extrapolated point.
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        carry = (momentum - 1) / following
        ahead = state.dual + carry * (state.dual - previous)
        ahead_product = product + carry * (product - before)  # K is linear: no second pass
        z = ahead - eta * gradient(ahead_product, signs)
        point = project_exact(z, signs, cap, state.mu, backend, weight)
        slope = (ahead - point.dual) * (point.dual - state.dual)
        uphill = (slope if weight is None else slope / weight).sum(0) > 0
        momentum = xp.where(uphill, 1.0, following)
        previous, before = state.dual, product
        play.move(point, signs, play.nobody)
        product = gram.matmat(signs * state.dual)
        found = optimality(product, state.dual, signs, cap, backend, weight)
        for name, values in zip(("bias", "residual", "objective"), found):
            state.history[name].append(values)
        state.settled = bool(found[1].max() <= tol)
