"""Errors that a program plants into true labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

MOST_OF_A_CLASS = 0.8  # a class that lost all of its labels is another question
Chooser = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


def random(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Any row."""
    return rng.random(len(y))


def near(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows near the boundary of an SVC."""
    return -margin(SVC().fit(X, y).decision_function(X))


def far(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows far from the boundary of a linear model."""
    return margin(LogisticRegression(max_iter=500).fit(X, y).decision_function(X))


def blob(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The rows around one of them."""
    return -np.linalg.norm(X - X[rng.integers(len(X))], axis=1)


def one_class(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Any row of the largest class."""
    return np.where(y == np.bincount(y).argmax(), rng.random(len(y)), -np.inf)


KINDS: dict[str, Chooser] = {"random": random, "near": near, "far": far, "blob": blob, "one class": one_class}


def plant(kind: str, X: np.ndarray, y: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Labels (n,) of which `share` are wrong, fewer where the classes that are chosen do not have as many.

    Errors of a blob or of one class all go to the next class, others to any.
    """
    score, m = KINDS[kind](X, y, rng), int(y.max()) + 1
    order = np.argsort(-score, kind="stable")
    order = order[np.isfinite(score[order])]
    seen = np.array([(y[order[:k]] == y[row]).sum() for k, row in enumerate(order)])
    order = order[seen < MOST_OF_A_CLASS * np.bincount(y)[y[order]] - 1][: round(share * len(y))]
    step = 1 if kind in ("blob", "one class") else rng.integers(1, m, len(order))
    given = y.copy()
    given[order] = (y[order] + step) % m
    return given


def margin(decision: np.ndarray) -> np.ndarray:
    """How far decision values (n,) or (n, M) are from a tie."""
    if decision.ndim == 1:
        return np.abs(decision)
    ordered = np.sort(decision, axis=1)
    return ordered[:, -1] - ordered[:, -2]
