"""The arena's competitors as a user would call them: four classifiers, each plain, behind a sanitiser, by cleanlab."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from floral_bench.spec import Method, params
from floral_learn import CertifiedKernelClassifier
from floral_learn.base.extras import bench_install_line
from floral_learn.game.kernels import resolve_gamma
from floral_learn.paper.defenses import DEFENSES, set_parts
from floral_learn.sanitizers import ContradictedLabels
from floral_learn.sanitizers.sanitized import SanitizedClassifier

TUNED_C = (0.1, 1.0, 10.0)
TUNED_GAMMA = (0.3, 1.0, 3.0)  # times gamma="scale"

#: name -> title and seed -> classifier; scikit-learn's defaults
MODELS: dict[str, tuple[str, Callable[[int], Any]]] = {
    "svc": ("SVC", lambda seed: SVC()),
    "logistic": ("logistic regression", lambda seed: LogisticRegression(max_iter=1000)),
    "forest": ("random forest", lambda seed: RandomForestClassifier(random_state=seed)),
    "boosting": ("boosting", lambda seed: HistGradientBoostingClassifier(random_state=seed)),
}


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
            learner = CleanLearning(inner, seed=self.random_state, find_label_issues_kwargs={"n_jobs": 1})
            try:
                self.model_ = learner.fit(X, codes)
            except ValueError:
                self.model_ = clone(self.estimator).fit(X, codes)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Labels of rows."""
        return self.classes_[self.model_.predict(X)]


SAFE_VERSION = 5  # of the rule of ContradictedLabels: numbers of another one are not kept in a store


def _plain(model: str, seed: int) -> Any:
    return MODELS[model][1](seed)


def _safe(model: str, seed: int, *, version: int = SAFE_VERSION, **given: Any) -> Any:
    return SanitizedClassifier(ContradictedLabels(random_state=seed, **given), _plain(model, seed))


def _cleanlab(model: str, seed: int) -> Any:
    return CleanlabClassifier(_plain(model, seed), random_state=seed)


def _defense(name: str, seed: int, **given: Any) -> Any:
    if name == "certified":
        return CertifiedKernelClassifier()
    made = DEFENSES[name](**given)
    seeded = any(parameter.removeprefix("sanitizer__") == "random_state" for parameter in made.get_params())
    return set_parts(made, random_state=seed) if seeded else made


_KINDS: dict[str, tuple[str, Callable[..., Any]]] = {
    "plain": ("", _plain),
    "safe": ("safe ", _safe),
    "cleanlab": ("cleanlab, ", _cleanlab),
}

#: Other defenses at their defaults, behind an SVM where there is one.
AT_DEFAULTS = {
    "ls-svm": "LS-SVM", "ln-svm": "LN-SVM", "curie": "Curie", "k-lid": "K-LID", "rs": "RS", "dpa": "DPA",
    "rsrnn": "RSRNN", "certified": "certified kernel ridge",
}  # fmt: skip
_ALONE: dict[str, tuple[str, Callable[..., Any]]] = {
    "svc-tuned": ("SVC tuned by CV", lambda seed: TunedSVC()),
    "knn": ("k-NN", lambda seed: KNeighborsClassifier()),
    **{f"{name}-default": (title, partial(_defense, name)) for name, title in AT_DEFAULTS.items()},
}

# name -> seed and the method's own parameters -> estimator
ESTIMATORS: dict[str, Callable[..., Any]] = {
    **{f"{kind}-{model}": partial(build, model) for kind, (_, build) in _KINDS.items() for model in MODELS},
    **{name: build for name, (_, build) in _ALONE.items()},
}

#: Title of a method -> title of the plain model that it is held against.
BASES: dict[str, str] = {
    **{f"{words}{title}": title for words, _ in _KINDS.values() for title, _ in MODELS.values()},
    **{title: "SVC" for title, _ in _ALONE.values()},
    "FloralClassifier()": "SVC",
}
_OTHERS = (
    *(Method(name, label=title, per_setting=False) for name, (title, _) in _ALONE.items()),
    Method("floral-default", label="FloralClassifier()", per_setting=False),
)


def methods() -> tuple[Method, ...]:
    """Every method of the arena that can run here; without cleanlab installed, all but its own."""
    kinds = [kind for kind in _KINDS if kind != "cleanlab" or find_spec("cleanlab") is not None]
    versions = {"safe": params(version=SAFE_VERSION)}
    named = (
        Method(f"{kind}-{model}", versions.get(kind, ()), label=f"{_KINDS[kind][0]}{title}", per_setting=False)
        for model, (title, _) in MODELS.items()
        for kind in kinds
    )
    return (*named, *_OTHERS)
