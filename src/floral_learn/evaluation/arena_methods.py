"""The arena's competitors as a user would call them: defaults, or tuned by cross-validation on the untrusted labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from floral_learn.core.kernels import resolve_gamma
from floral_learn.evaluation.spec import Method, params

TUNED_C = (0.1, 1.0, 10.0)
TUNED_GAMMA = (0.3, 1.0, 3.0)  # times gamma="scale"


class TunedSVC(ClassifierMixin, BaseEstimator):
    """SVC with C and gamma by 5-fold cross-validation on the labels at hand, which may be poisoned."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> TunedSVC:
        """Search a grid of nine and refit."""
        scale = resolve_gamma("scale", X)
        grid = {"C": TUNED_C, "gamma": [factor * scale for factor in TUNED_GAMMA]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a class with fewer labels than folds
            self.search_ = GridSearchCV(SVC(), grid, cv=5).fit(X, y)
        self.classes_ = self.search_.classes_
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Labels of rows."""
        return self.search_.predict(X)


class CleanlabSVC(ClassifierMixin, BaseEstimator):
    """cleanlab's CleanLearning around an SVC with sigmoid-calibrated probabilities; it wants labels 0, 1, ..."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> CleanlabSVC:
        """Find label issues by 5-fold cross-validation, drop them, refit; a plain SVC where a class is too small."""
        try:
            from cleanlab.classification import CleanLearning
        except ImportError as error:
            raise ImportError("the method cleanlab needs cleanlab: pip install 'floral-learn[bench]'") from error
        self.classes_, codes = np.unique(y, return_inverse=True)
        inner = CalibratedClassifierCV(SVC(), ensemble=False, cv=3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # One process: its search for issues starts workers of its own otherwise.
            issues = {"n_jobs": 1}
            learner = CleanLearning(inner, seed=self.random_state, find_label_issues_kwargs=issues)
            try:
                self.model_ = learner.fit(X, codes)
            except ValueError:
                self.model_ = SVC().fit(X, codes)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Labels of rows."""
        return self.classes_[self.model_.predict(X)]


def _floral(seed: int, **given: Any) -> Any:
    from floral_learn.defenses import DEFENSES

    return DEFENSES["floral"](random_state=seed, **given)


def _sanitised(seed: int) -> Any:
    from floral_learn.defenses import DEFENSES

    return DEFENSES["ls-svm"](random_state=seed)


# name -> seed and the method's own parameters -> estimator
ESTIMATORS: dict[str, Callable[..., Any]] = {
    "svc-tuned": lambda seed: TunedSVC(),
    "knn": lambda seed: KNeighborsClassifier(),
    "logistic": lambda seed: LogisticRegression(max_iter=1000),
    "forest": lambda seed: RandomForestClassifier(random_state=seed),
    "ls-svm-default": _sanitised,
    "cleanlab": lambda seed: CleanlabSVC(random_state=seed),
    "floral-fit": _floral,
}

SVC_DEFAULT = Method("svc", label="SVC", per_setting=False)
AUTO = Method("floral-fit", params(budget="auto"), "FLORAL (auto)", per_setting=False)
PATH = Method("floral-path", label="FLORAL (path)", per_setting=False)
COMPETITORS = (
    Method("svc-tuned", label="SVC tuned by CV", per_setting=False),
    Method("knn", label="k-NN", per_setting=False),
    Method("ls-svm-default", label="LS-SVM", per_setting=False),
    Method("cleanlab", label="cleanlab (SVC)", per_setting=False),
    Method("logistic", label="logistic regression", per_setting=False),
    Method("forest", label="random forest", per_setting=False),
)


def methods() -> tuple[Method, ...]:
    """Every method of the arena that can run here; without cleanlab installed, all but that one."""
    here = tuple(m for m in COMPETITORS if m.name != "cleanlab" or find_spec("cleanlab") is not None)
    return (SVC_DEFAULT, AUTO, PATH, *here)
