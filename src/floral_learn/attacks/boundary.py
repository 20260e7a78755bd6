"""Distance attacks: flip the rows farthest from, or nearest to, a surrogate's decision boundary."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.linear_model import LogisticRegression

from .base import Problem, RankingAttack
from .surrogates import boundary_distance, class_scores, fresh


@dataclass
class Farthest(RankingAttack):
    """Flip the rows with the largest |f(x)| of a surrogate trained on the given labels.

    Far rows are those that every model is sure of, so their wrong labels pull the boundary hardest.
    With more classes the distance is best minus second best score, and the new class is the one that
    the surrogate finds least likely. ``surrogate=None`` is a default ``LogisticRegression``, the
    linear classifier of the FLORAL experiments. Equal distances (forests, k-NN) go in random order.
    One fit. Xiao et al. 2012 (baseline "far").
    """

    surrogate: Any = None

    name: ClassVar[str] = "farthest"
    random_ties: ClassVar[bool] = True

    def _rank(self, problem: Problem) -> tuple[np.ndarray, np.ndarray | None]:
        scores = _fitted_scores(self.surrogate, problem)
        return boundary_distance(scores), -scores


@dataclass
class NearBoundary(RankingAttack):
    """Flip the rows with the smallest |f(x)|: hard to notice, since these labels are doubtful anyway.

    The new class is the most likely other one. Surrogate and cost as for ``Farthest``.
    """

    surrogate: Any = None

    name: ClassVar[str] = "near-boundary"
    random_ties: ClassVar[bool] = True

    def _rank(self, problem: Problem) -> tuple[np.ndarray, np.ndarray | None]:
        scores = _fitted_scores(self.surrogate, problem)
        return -boundary_distance(scores), scores


def _fitted_scores(surrogate: Any, problem: Problem) -> np.ndarray:
    model = fresh(LogisticRegression() if surrogate is None else surrogate, problem.rng)
    return class_scores(model.fit(problem.X, problem.y), problem.X, len(problem.classes))
