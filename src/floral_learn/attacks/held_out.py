"""Rows with right labels by which an attacker measures what flips do."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array

from .base import Problem


def given_rows(problem: Problem, X_val: Any, y_val: Any) -> tuple[Any, np.ndarray] | None:
    """Return the given validation rows (m, d) and their codes (m,), checked; None if there are none."""
    if (X_val is None) != (y_val is None):
        raise ValueError("X_val and y_val must be given together")
    if X_val is None:
        return None
    X_val = check_array(X_val, accept_sparse="csr", input_name="X_val")
    labels = np.asarray(y_val)
    if X_val.shape[1] != problem.X.shape[1] or labels.shape != (X_val.shape[0],):
        raise ValueError(f"X_val {X_val.shape} and y_val {labels.shape} do not fit X with {problem.X.shape[1]} columns")
    known = np.isin(labels, problem.classes)
    if not known.all():
        raise ValueError(f"y_val has labels that y has not: {np.unique(labels[~known]).tolist()}")
    return X_val, np.searchsorted(problem.classes, labels)
