"""Distance attacks: flip the rows farthest from, or nearest to, a surrogate's decision boundary."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.linear_model import LogisticRegression

from .base import Problem, RankingAttack
from .surrogates import boundary_distance, class_scores, fresh


@dataclass
class Farthest(RankingAttack):
    """Flip the rows with the largest ``|f(x)|`` of a surrogate trained on the given labels.

    Far rows are those that every model is sure of, so their wrong labels pull the boundary hardest. With more classes
    the distance is best minus second best score, and the new class is the one that the surrogate finds least likely.
    Equal distances (forests, k-NN) go in random order. One fit. Xiao et al. 2012 (baseline "far").

    Parameters
    ----------
    surrogate : classifier, optional
        Cloned and fitted on the given labels. By default a ``LogisticRegression``, the linear classifier of the FLORAL
        experiments.

    Notes
    -----
    The other parameters are those of :class:`LabelAttack`.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from floral_learn import load_moon
    >>> from floral_learn.attacks import Farthest
    >>> moon = load_moon()
    >>> bad = Farthest(budget=0.2).poison(moon.X_train, moon.y_train).y
    >>> victim = SVC(C=10, gamma=1)
    >>> bool(victim.fit(moon.X_train, bad).score(moon.X_test, moon.y_test) < 0.8)
    True
    """

    surrogate: Any = None

    name: ClassVar[str] = "farthest"
    random_ties: ClassVar[bool] = True

    def _rank(self, problem: Problem) -> tuple[np.ndarray, np.ndarray | None]:
        scores = _fitted_scores(self.surrogate, problem)
        return boundary_distance(scores), -scores


@dataclass
class NearBoundary(RankingAttack):
    """Flip the rows with the smallest ``|f(x)|``: hard to notice, since these labels are doubtful anyway.

    The new class is the most likely other one. One fit.

    Parameters
    ----------
    surrogate : classifier, optional
        As for :class:`Farthest`.

    Notes
    -----
    The other parameters are those of :class:`LabelAttack`.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.attacks import NearBoundary
    >>> X = np.arange(10.0)[:, None]
    >>> sorted(NearBoundary(budget=2).poison(X, X[:, 0] >= 5).indices.tolist())
    [4, 5]
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
