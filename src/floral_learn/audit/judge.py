"""Held-out probabilities of the given labels: what a model says of each row without having seen its label."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils import _safe_indexing

from floral_learn.audit.neighbours import Neighbours
from floral_learn.labels.flagging import temper

FOLDS = 5
MOST_EXACT = 5000  # rows up to which an exact kernel machine is trained; above, 300 landmarks are used
_LANDMARKS = 300
_LEAST = 0.01  # probabilities below are as good as zero, and logarithms need more than zero

Progress = Callable[[str, float], None]


def kernel_and_neighbours(
    X: np.ndarray, near: Neighbours, labels: np.ndarray, n_classes: int, seed: int, progress: Progress
) -> tuple[np.ndarray, np.ndarray]:
    """Two opinions, each on the labels' own scale: a kernel machine (C = 1) and the neighbours' votes, both (n, M)."""
    gamma = 1.0 / (X.shape[1] * max(float(X.var()), 1e-300))
    model: Any = SVC(C=1.0, gamma=gamma)
    if len(X) > MOST_EXACT:
        landmarks = Nystroem(gamma=gamma, n_components=_LANDMARKS, random_state=seed % 2**31)
        model = make_pipeline(landmarks, LogisticRegression(C=10.0, max_iter=100))
    machine = held_out(model, X, labels, n_classes, seed, progress)
    return machine, temper(log_of(near.votes(labels, n_classes)), labels)


def held_out(
    model: Any, X: Any, labels: np.ndarray, n_classes: int, seed: int, progress: Progress | None = None
) -> np.ndarray:
    """Probabilities (n, M) of the given labels by clones of `model`, each row by one that did not see it."""
    probabilities = hasattr(model, "predict_proba")
    if not probabilities and not hasattr(model, "decision_function"):
        raise ValueError(f"estimator={model!r} needs predict_proba or decision_function")
    scores = np.zeros((len(labels), n_classes))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed % 2**31)
    for number, (train, test) in enumerate(folds.split(np.zeros(len(labels)), labels)):
        fitted = clone(model).fit(_rows(X, train), labels[train])
        values = fitted.predict_proba(_rows(X, test)) if probabilities else fitted.decision_function(_rows(X, test))
        values = log_of(np.asarray(values, dtype=float)) if probabilities else np.asarray(values, dtype=float)
        scores[test] = np.column_stack([-values, values]) if values.ndim == 1 else values
        if progress is not None:
            progress("held-out models", (number + 1) / FOLDS)
    return temper(scores, labels)


def log_of(probabilities: np.ndarray) -> np.ndarray:
    """Logarithms of probabilities that may be zero."""
    clipped = np.clip(probabilities, _LEAST, None)
    return np.log(clipped / clipped.sum(axis=1, keepdims=True))


def _rows(X: Any, rows: np.ndarray) -> Any:
    return _safe_indexing(X, rows)
