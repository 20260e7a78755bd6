"""The input checks that all sanitisers share, and what they report about rows."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_X_y

from floral_learn.base.alignment import align
from floral_learn.base.frames import is_frame
from floral_learn.base.rows import read_rows, take_rows
from floral_learn.base.validation import check_scale, encode_labels, refuse_several_labels


def sanitizer_input(sanitizer: Any, X: Any, y: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Checked parameters and data: X (n, d) floats (a frame's columns encoded), classes (M,), codes (n,)."""
    sanitizer._validate_params()
    y = align(X, y)
    refuse_several_labels(y)
    if is_frame(X):
        X = read_rows(X, min_rows=2).numbers
    X, y = check_X_y(X, y, dtype=np.float64, ensure_min_samples=2, estimator=sanitizer)
    check_scale(X)
    classes, codes = encode_labels(y, type(sanitizer).__name__)
    return X, classes, codes


def keep_rows(sanitizer: Any, X: Any, y: np.ndarray, kept: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return the masked rows of X, whatever container X is, and their labels; sets what every sanitiser reports."""
    sanitizer.sample_indices_ = np.flatnonzero(kept)
    sanitizer.relabeled_ = np.zeros(len(kept), dtype=bool)
    return (X if kept.all() else take_rows(X, sanitizer.sample_indices_)), y[kept]


def spare_one_of_each_class(change: np.ndarray, codes: np.ndarray, doubt: np.ndarray) -> np.ndarray:
    """Withdraw the least doubtful change of every class that would lose all of its rows.

    Without it a sanitiser could hand a one-class problem to the classifier behind it, and a class that is
    wrong as a whole is a matter for a person, not for a filter.
    """
    change = change.copy()
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        if change[rows].all():
            change[rows[np.argmin(doubt[rows])]] = False
    return change
