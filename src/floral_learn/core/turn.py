"""The parts of one round, as functions of arrays: `game.solve` plays them one by one, `recorded` as a CUDA graph."""

from __future__ import annotations

from typing import Any

from floral_learn.core.arrays import Array, outer
from floral_learn.core.attackers import Attacker, Flips, View
from floral_learn.core.dual import Optimality, gradient, objective, optimality
from floral_learn.core.projections import PROJECTIONS, Projection


def look_ahead(
    game: Any, attacker: Attacker, seen: View, signs: Array, counter: int | Array
) -> tuple[Flips, Array, Array, Array]:
    """The attacker's next flips, the labels they give, and one pass over K: for this round and for the next."""
    flips = attacker(seen, counter)
    ahead = game.signs(flips)
    both = game.gram.matmat(game.gram.backend.side_by_side(signs * seen.dual, ahead * seen.dual))
    columns = signs.shape[1]
    return flips, ahead, both[:, :columns], both[:, columns:]


def judge(game: Any, product: Array, dual: Array, signs: Array) -> tuple[Optimality, Array]:
    """Bias and KKT residual of the duals just reached, and their objective."""
    found = optimality(product, dual, signs, game.cap, game.gram.backend, game.weight)
    return found, objective(product, dual, signs)


def answer(game: Any, dual: Array, signs: Array, product: Array, eta: Array, mu: Array) -> Projection:
    """The SVM's answer to the labels `signs`: one projected gradient step."""
    eta = eta if game.weight is None else outer(game.weight, eta)
    step = dual - eta * gradient(product, signs)
    return PROJECTIONS[game.projection](step, signs, game.cap, mu, game.gram.backend, game.weight)


def averages(game: Any, number: int) -> bool:
    """Whether round `number` has a share in the averaged model."""
    return number > (game.average_from or 0) or game.average_from == 0
