"""Influence attacks: flip the rows with the largest dual variables of a surrogate."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.svm import SVC

from .base import Choice, Problem, RankingAttack
from .surrogates import class_scores, dual_weights, fresh


@dataclass
class TopK(RankingAttack):
    """Flip the rows with the largest dual variable lambda_i: the support vectors that hold the model up.

    ``surrogate=None`` is ``SVC(C=10)``; other classifiers use the dual of their loss (see
    ``dual_weights``). Many rows share lambda = C, and equal ones are taken in random order. The new
    class is the least likely one. One fit. FLORAL (Bal et al. 2025), the attacker of the game.
    """

    surrogate: Any = None

    name: ClassVar[str] = "top-k"
    random_ties: ClassVar[bool] = True

    def _rank(self, problem: Problem) -> tuple[np.ndarray, np.ndarray | None]:
        model = fresh(SVC(C=10.0) if self.surrogate is None else self.surrogate, problem.rng)
        model.fit(problem.X, problem.y)
        duals = dual_weights(model, problem.X, problem.y)
        if len(problem.classes) == 2:
            return duals, None
        return duals, -class_scores(model, problem.X, len(problem.classes))


@dataclass
class RandomizedTopK(TopK):
    """Flip k rows drawn at random from the B largest dual variables, B = ``pool`` * k (at most all rows).

    The randomised attacker of FLORAL's game (B = 2k there), applied once to a data set. One fit.
    """

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
