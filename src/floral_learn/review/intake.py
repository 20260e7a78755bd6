"""What a caller hands to a review, checked before any work."""

from __future__ import annotations

from typing import Any

import numpy as np

from floral_learn.base.classifier_input import encode_labels
from floral_learn.review.answers import as_code


def encoded(y: np.ndarray, classes: Any) -> tuple[np.ndarray, np.ndarray]:
    """The classes, sorted, and the code of each label among them."""
    if y.ndim != 1:
        raise ValueError(f"y must have one dimension, and has shape {y.shape}")
    if classes is None:
        return encode_labels(y, "LabelReview")
    known = np.asarray(classes)
    if known.ndim != 1 or len(np.unique(known)) < 2:
        raise ValueError(f"classes={classes!r} must list at least two different labels")
    if (known.dtype.kind in "OUS") != (y.dtype.kind in "OUS"):
        raise ValueError(f"classes={classes!r} and y must be of one kind: {known.dtype} and {y.dtype} are not")
    if unknown := sorted({str(v) for v in np.unique(y).tolist()} - {str(c) for c in known.tolist()}):
        raise ValueError(f"y holds labels that classes does not list: {', '.join(unknown)}")
    found, codes = encode_labels(np.concatenate([y, known]), "LabelReview")
    return found, codes[: len(y)]


def column(values: Any, n: int, name: str, kind: Any) -> np.ndarray:
    """`values` as one entry per row; None is False, or one."""
    if values is None:
        return np.zeros(n, bool) if kind is bool else np.ones(n)
    values = np.asarray(values)
    if values.shape != (n,):
        raise ValueError(f"{name} must have one entry per row, shape ({n},), and has shape {values.shape}")
    if kind is bool and values.dtype != bool:
        raise ValueError(f"{name} must hold True and False, and has dtype {values.dtype}")
    if kind is float:
        values = values.astype(float)
        if (values < 0).any() or not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite and not negative")
    if kind is None and (missing := sum(value is None or value != value for value in values.tolist())):
        raise ValueError(f"{name} has {missing} missing entries; every row needs one")
    return values


def whole(value: Any) -> bool:
    """Whether a parameter is an integer; True and False are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def checked_model(model: Any, name: str) -> Any:
    """`model`, if it can be cloned and fitted."""
    if isinstance(model, type) or not all(hasattr(model, part) for part in ("fit", "predict", "get_params")):
        raise ValueError(f"{name} holds {model!r}, which is not a scikit-learn classifier such as SVC()")
    return model


def answered(rows: Any, labels: Any, n: int, classes: np.ndarray) -> tuple[list[int], list[int]]:
    """Row numbers and class codes of one call of ``answer``."""
    if np.ndim(rows) == 0:
        rows, labels = [rows], [labels]
    rows = list(rows)
    if labels is None or isinstance(labels, str) or np.ndim(labels) == 0:
        if len(rows) != 1:
            raise ValueError(f"labels={labels!r} must hold one label per row, {len(rows)} in all")
        labels = [labels]
    labels = list(labels)
    if len(rows) != len(labels):
        raise ValueError(f"rows has {len(rows)} entries and labels has {len(labels)}; they must match")
    for row in rows:
        if isinstance(row, bool) or not isinstance(row, int | np.integer) or not 0 <= row < n:
            raise ValueError(f"rows holds {row!r}; a row is an integer from 0 to {n - 1}")
    numbers = [int(row) for row in rows]
    if len(set(numbers)) != len(numbers):
        raise ValueError("rows names the same row twice in one call")
    return numbers, [as_code(label, classes) for label in labels]
