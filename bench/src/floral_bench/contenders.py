"""Classifiers as a user would call them, for `floral bench --data`: plain, behind ContradictedLabels, by cleanlab."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.svm import SVC

from floral_learn.base.extras import bench_install_line
from floral_learn.sanitizers import ContradictedLabels
from floral_learn.sanitizers.sanitized import SanitizedClassifier

#: name -> seed -> classifier; scikit-learn's defaults
MODELS: dict[str, Callable[[int], Any]] = {
    "svc": lambda seed: SVC(),
    "boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}


class CleanlabClassifier(ClassifierMixin, BaseEstimator):
    """cleanlab's CleanLearning around a classifier; one without probabilities is calibrated by a sigmoid."""

    def __init__(self, estimator: Any, random_state: int = 0) -> None:
        self.estimator = estimator
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> CleanlabClassifier:
        """Find label issues by 5-fold cross-validation, drop them, refit; the plain model for too small a class."""
        try:
            from cleanlab.classification import CleanLearning
        except ImportError as error:
            raise ImportError(f"cleanlab's methods need cleanlab: {bench_install_line(peers=True)}") from error
        self.classes_, codes = np.unique(y, return_inverse=True)  # it wants labels 0, 1, ...
        inner = clone(self.estimator)
        if not hasattr(inner, "predict_proba"):
            inner = CalibratedClassifierCV(inner, ensemble=False, cv=3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # One process: its search for issues starts workers of its own otherwise.
            learner = CleanLearning(
                inner, seed=self.random_state, verbose=False, find_label_issues_kwargs={"n_jobs": 1}
            )
            try:
                self.model_ = learner.fit(X, codes)
            except ValueError:
                self.model_ = clone(self.estimator).fit(X, codes)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Labels of rows."""
        return self.classes_[self.model_.predict(X)]


SAFE_VERSION = 7  # of the rule of ContradictedLabels: numbers of another one are not kept in a store


def _safe(model: str, seed: int, *, version: int = SAFE_VERSION, **given: Any) -> Any:
    return SanitizedClassifier(ContradictedLabels(random_state=seed, **given), MODELS[model](seed))


# name -> seed and the method's own parameters -> estimator
ESTIMATORS: dict[str, Callable[..., Any]] = {
    **{f"plain-{name}": make for name, make in MODELS.items()},
    **{f"safe-{name}": partial(_safe, name) for name in MODELS},
    "cleanlab-svc": lambda seed: CleanlabClassifier(SVC(), random_state=seed),
}
