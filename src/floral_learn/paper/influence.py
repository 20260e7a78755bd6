"""Which training points a model leans on most: FLORAL by its duals, a network by its input gradients; what they share.

The paper's appendix compares the 25 % most influential points of both on IMDB.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from floral_learn.floral.classifier import GameClassifier


def dual_influence(model: Any) -> np.ndarray:
    """|dual| of every training row of a fitted FloralClassifier, (n,); the largest over classes.

    The duals are those of the model that predicts: averaged over rounds where the classifier averages.
    """
    if not hasattr(model, "flip_rate_"):
        name = type(model).__name__
        if isinstance(model, GameClassifier):
            raise NotFittedError(f"This {name} instance is not fitted yet: call fit first.")
        raise ValueError(f"{name} has no flip_rate_: give a fitted FloralClassifier, such as the head_ of a text model")
    n = len(model.flip_rate_)
    influence = np.zeros(n)
    influence[model.support_] = np.abs(model.dual_coef_).max(axis=0)
    return influence


def gradient_influence(model: Any, X: Any, y: Any) -> np.ndarray:
    """|d loss / d input| of every row under the labels `y`, (n,), for any model with ``input_gradient_norms``."""
    if not hasattr(model, "input_gradient_norms"):
        raise ValueError(f"{type(model).__name__} has no input_gradient_norms: give a network such as TextClassifier")
    if not hasattr(model, "classes_"):
        raise NotFittedError(f"This {type(model).__name__} instance is not fitted yet: call fit first.")
    y = np.asarray(y)
    codes = np.searchsorted(model.classes_, y).clip(0, len(model.classes_) - 1)
    if (model.classes_[codes] != y).any():
        raise ValueError(f"y has labels that the model does not know; it knows {model.classes_.tolist()}")
    return np.asarray(model.input_gradient_norms(X, codes)[0])


def top_rows(influence: np.ndarray, share: float | int = 0.25) -> np.ndarray:
    """Rows with the largest influence, most influential first; ties in the order of the rows.

    `share` is a fraction of the rows (float) or a count (int). Rows without any influence are never among them.
    """
    influence = np.asarray(influence, dtype=float)
    if influence.ndim != 1 or not np.isfinite(influence).all():
        raise ValueError("influence must be a flat array of finite numbers")
    whole = isinstance(share, (int, np.integer)) and not isinstance(share, bool)
    if not (1 <= share <= len(influence) if whole else 0 < share <= 1):
        raise ValueError(f"share={share!r} must be a fraction in (0, 1] or a count from 1 to {len(influence)}")
    count = int(share) if whole else max(1, int(len(influence) * share + 1e-9))
    order = np.argsort(-influence, kind="stable")[:count]
    return order[influence[order] > 0]


def overlap(first: np.ndarray, second: np.ndarray, share: float = 0.25) -> float:
    """Part of the `share` most influential rows that two models have in common, from 0 to 1.

    Chance alone gives `share`.
    """
    if np.shape(first) != np.shape(second):
        raise ValueError(f"influences of {np.shape(first)} and {np.shape(second)} rows: both must cover the same rows")
    a, b = top_rows(first, share), top_rows(second, share)
    return len(np.intersect1d(a, b)) / max(len(a), len(b), 1)
