"""Predictions for dask collections, block by block on the workers; the answers are lazy dask arrays."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from floral_learn.core.choose_gram import resolve_dtype

# Of the size of the training rows, or none of the workers' business.
_LEFT_BEHIND = (
    "dual_coef_",
    "support_",
    "support_vectors_",
    "history_",
    "feature_names_in_",
    "_skl_callbacks",
    "_train_labels",
    "_train_scores",
    "_train_load",
)


def decision_function(clf: Any, X: Any) -> Any:
    """Scores of every row, (n,) or (n, n_classes)."""
    X, model = _rows(clf, X), _bare(clf)
    if len(clf.classes_) == 2:
        return X.map_blocks(_scores, model, dtype=np.float64, drop_axis=1)
    return X.map_blocks(_scores, model, dtype=np.float64, chunks=(X.chunks[0], (len(clf.classes_),)))


def predict(clf: Any, X: Any) -> Any:
    """The class of every row, (n,)."""
    return _rows(clf, X).map_blocks(_classes, _bare(clf), dtype=clf.classes_.dtype, drop_axis=1)


def _rows(clf: Any, X: Any) -> Any:
    if hasattr(X, "columns"):
        names = getattr(clf, "feature_names_in_", None)
        X = (X if names is None else X[list(names)]).to_dask_array()
    if X.shape[1] != clf.n_features_in_:
        raise ValueError(f"X has {X.shape[1]} features, but the model expects {clf.n_features_in_}")
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X


def _bare(clf: Any) -> Any:
    model = copy.copy(clf)
    model.dtype = resolve_dtype(clf.dtype, len(clf.flip_rate_))
    model.flip_rate_ = np.empty(0)
    for name in _LEFT_BEHIND:
        model.__dict__.pop(name, None)
    return model


def _scores(block: np.ndarray, model: Any) -> np.ndarray:
    return model.decision_function(block)


def _classes(block: np.ndarray, model: Any) -> np.ndarray:
    return model.predict(block)
