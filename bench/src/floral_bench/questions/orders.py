"""Who chooses the rows to ask about: what people do today, as fixed orders of all rows."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.svm import SVC

from floral_learn import FloralClassifier, find_label_issues

Order = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


def random(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Any row is as good as another."""
    return rng.permutation(len(y))


def suspicious(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """What an audit lists first."""
    return find_label_issues(X, y, random_state=rng).ranking


def uncertain(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Active learning's usual choice: rows that a held-out model finds hardest to tell."""
    share = np.sort(_held_out(X, y, rng), axis=1)
    return np.argsort(share[:, -1] - share[:, -2], kind="stable")


def duals(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The game's own choice: the largest dual variables, those that FLORAL's attacker would flip."""
    model = FloralClassifier(C=1.0, budget=0.05, n_rounds=100, random_state=int(rng.integers(2**31))).fit(X, y)
    weight = np.zeros(len(y))
    weight[model.support_] = np.abs(model.dual_coef_).max(axis=0)
    return np.argsort(-weight - 1e-9 * rng.random(len(y)), kind="stable")


def cleanlab(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """cleanlab's ranking: least self-confidence first."""
    from cleanlab.rank import get_label_quality_scores

    codes = np.unique(y, return_inverse=True)[1]
    return np.argsort(get_label_quality_scores(codes, _held_out(X, y, rng)), kind="stable")


def activelab(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """ActiveLab's ranking of rows that should be labelled again, one annotator."""
    from cleanlab.multiannotator import get_active_learning_scores

    codes = np.unique(y, return_inverse=True)[1]
    return np.argsort(get_active_learning_scores(codes[:, None], _held_out(X, y, rng))[0], kind="stable")


ORDERS: dict[str, Order] = {
    "random": random,
    "suspicious": suspicious,
    "uncertain": uncertain,
    "duals": duals,
    "cleanlab": cleanlab,
    "activelab": activelab,
}


def available() -> list[str]:
    """Orders that can run here: cleanlab is an extra."""
    there = find_spec("cleanlab") is not None
    return [name for name in ORDERS if there or name not in ("cleanlab", "activelab")]


def _held_out(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Held-out class probabilities of an SVC, as cleanlab's guides have it, (n, M); three orders go by the same."""
    seed = int(rng.integers(2**31))
    key = (X.shape, X.tobytes(), y.tobytes(), seed)
    if _LAST.get("key") != key:
        folds = max(2, min(5, int(np.unique(y, return_counts=True)[1].min())))
        split = StratifiedKFold(folds, shuffle=True, random_state=seed)
        model = CalibratedClassifierCV(SVC(), ensemble=False, cv=folds)
        _LAST.update(key=key, share=cross_val_predict(model, X, y, cv=split, method="predict_proba"))
    return _LAST["share"].copy()


_LAST: dict[str, Any] = {}  # the latest held-out probabilities
