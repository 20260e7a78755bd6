"""Held-out probabilities of the given labels: what a model says of each row without having seen its label."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from floral_learn.audit.neighbours import Neighbours
from floral_learn.labels.calibration import calibrate as temper
from floral_learn.labels.calibration import log_probabilities as log_of
from floral_learn.labels.held_out import held_out as held_out_shares

FOLDS = 5
MOST_EXACT = 5000  # rows up to which an exact kernel machine is trained; above, 300 landmarks are used
_LANDMARKS = 300

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
    model: Any, X: Any, codes: np.ndarray, n_classes: int, seed: int, progress: Progress | None = None
) -> np.ndarray:
    """Probabilities (n, M) of the given labels by clones of `model`, each row by one that did not see it."""
    if not hasattr(model, "predict_proba") and not hasattr(model, "decision_function"):
        raise ValueError(f"estimator={model!r} needs predict_proba or decision_function")
    folds = np.empty(len(codes), dtype=np.intp)
    dealt = StratifiedKFold(FOLDS, shuffle=True, random_state=seed % 2**31)
    for number, (_, test) in enumerate(dealt.split(np.zeros(len(codes)), codes)):
        folds[test] = number
    done = iter(range(1, FOLDS + 1))
    say = (lambda text: None) if progress is None else lambda text: progress("held-out models", next(done) / FOLDS)
    shares = held_out_shares(model, X, codes, np.arange(n_classes), folds, say=say).shares
    return temper(log_of(shares) if hasattr(model, "predict_proba") else np.log(np.maximum(shares, 1e-300)), codes)
