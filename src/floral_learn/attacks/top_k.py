"""Influence attacks: flip the rows with the largest dual variables of a surrogate."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.svm import SVC

from .base import Choice, Problem, RankingAttack
from .surrogates import class_scores, dual_weights, fresh


@dataclass
class TopK(RankingAttack):
    """Flip the rows with the largest dual variable lambda_i: the support vectors that hold the model up.

    Many rows share lambda = C, and equal ones are taken in random order. The new class is the least likely one. One
    fit. FLORAL (Bal et al. 2025), the attacker of the game.

    Parameters
    ----------
    surrogate : classifier, optional
        By default ``SVC()``; other classifiers use the dual of their loss (see ``dual_weights``).

    Notes
    -----
    The other parameters are those of :class:`LabelAttack`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.attacks import TopK
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> result = TopK(budget=5, random_state=0).poison(X, y)
    >>> bool(result.scores[result.indices].min() >= result.scores[~result.mask].max())
    True
    """

    surrogate: Any = None

    name: ClassVar[str] = "top-k"
    random_ties: ClassVar[bool] = True

    def _rank(self, problem: Problem) -> tuple[np.ndarray, np.ndarray | None]:
        model = fresh(SVC() if self.surrogate is None else self.surrogate, problem.rng)
        model.fit(problem.X, problem.y)
        duals = dual_weights(model, problem.X, problem.y)
        if len(problem.classes) == 2:
            return duals, None
        return duals, -class_scores(model, problem.X, len(problem.classes))


@dataclass
class RandomizedTopK(TopK):
    """Flip k rows drawn at random from the B largest dual variables, B = ``pool`` * k (at most all rows).

    The randomised attacker of FLORAL's game (B = 2k there), applied once to a data set. One fit.

    Parameters
    ----------
    surrogate : classifier, optional
        As for :class:`TopK`.
    pool : float, default=2.0
        B over k, at least 1.

    Notes
    -----
    The other parameters are those of :class:`LabelAttack`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.attacks import RandomizedTopK
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> len(RandomizedTopK(budget=5, random_state=0).poison(X, y).indices)
    5
    """

    _: KW_ONLY
    pool: float = 2.0

    name: ClassVar[str] = "randomized-top-k"

    def _choose(self, problem: Problem) -> Choice:
        if not self.pool >= 1:
            raise ValueError(f"pool={self.pool!r} must be at least 1: flips are drawn from pool * flips rows")
        duals, preference = self._rank(problem)
        constraints = problem.constraints
        size = min(int(np.floor(self.pool * problem.flips)), constraints.most())
        candidates = constraints.best(duals, size, problem.rng.permutation(len(duals)))
        indices = problem.rng.permutation(candidates)[: problem.flips]
        return Choice(indices, constraints.new_codes(indices, problem.rng, preference), duals)
