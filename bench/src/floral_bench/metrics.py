"""Scores of predictions: accuracy, balanced accuracy, mean hinge loss."""

from __future__ import annotations

import numpy as np

from floral_bench.displays import sample_deviation as sample_deviation


def binary_scores(scores: np.ndarray, positive: np.ndarray) -> dict[str, np.ndarray]:
    """Metrics of decision values (m, columns) against the truth (m,) in booleans; each is (columns,).

    A value of exactly 0 counts as the negative class, as scikit-learn has it.
    """
    hit = (scores > 0) == positive[:, None]
    balanced = (hit[positive].mean(0) + hit[~positive].mean(0)) / 2
    signed = np.where(positive, 1.0, -1.0)[:, None].astype(scores.dtype)
    hinge = np.maximum(1 - signed * scores, 0)
    return {"accuracy": hit.mean(0), "balanced_accuracy": balanced, "hinge_loss": hinge.mean(0)}


def label_scores(predicted: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Accuracy and balanced accuracy of predicted labels, any number of classes."""
    hit = predicted == truth
    balanced = np.mean([hit[truth == label].mean() for label in np.unique(truth)])
    return {"accuracy": float(hit.mean()), "balanced_accuracy": float(balanced)}


def multiclass_hinge(scores: np.ndarray, codes: np.ndarray) -> float:
    """Mean of max(0, 1 - (own score - best other score)) for scores (m, M) and class codes (m,)."""
    rows = np.arange(len(codes))
    others = scores.astype(float)
    own = others[rows, codes].copy()
    others[rows, codes] = -np.inf
    return float(np.maximum(0, 1 - (own - others.max(1))).mean())
