"""What a caller hands in, checked, and rows in the scale in which the review compares them: never n x n.

Squared distances are computed on demand, in blocks that fit into `max_memory`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from floral_learn.base.classifier_input import encode_labels
from floral_learn.game.choose_gram import parse_bytes
from floral_learn.game.gram import format_bytes

MOST_VALUES = 4_000_000  # kernel values held at a time; more are not faster
_LEAST_VALUES = 200_000
_BYTES_PER_VALUE = 48  # a kernel value and what is computed from it, in float64
_QUESTION = 60_000_000  # bytes that choosing a question takes, whatever the number of rows
_PER_ROW = 220  # bytes per row: neighbours, folds, order, label, weight, log-odds
_PER_CLASS = 56  # and per row and class: probabilities, held-out scores
_SMALL = 2_000_000  # numbers up to which float64 costs nothing worth saving
_TAIL = 5.0  # standard deviations beyond which a value says no more than "far out"
_SAMPLE = 2000  # rows on which the two scales are compared
_ALIKE = 1.5  # ratio of the columns' spreads up to which the two scales are the same


@dataclass(frozen=True)
class Rows:
    """The rows as the review measures them: (n, d) dense, or CSR, with their squared norms and the width's inverse.

    Parameters
    ----------
    values : ndarray or CSR matrix of shape (n, d)
        Columns standardised and cut off at five standard deviations, or all scaled alike, where dense; as given where
        sparse.
    squares : ndarray of shape (n,)
        Squared norms.
    gamma : float
        1 / (d Var), the ``gamma="scale"`` of these values.
    at_a_time : int
        Kernel values that may be held at a time.
    """

    values: Any
    squares: np.ndarray
    gamma: float
    at_a_time: int = MOST_VALUES

    def __len__(self) -> int:
        return self.values.shape[0]

    def distances(self, left: np.ndarray | slice, right: np.ndarray | slice) -> np.ndarray:
        """Squared distances times gamma between two sets of rows, (len(left), len(right)) in float64."""
        product = self.values[left] @ self.values[right].T
        product = product.toarray() if sparse.issparse(product) else product
        far = self.squares[left][:, None] + self.squares[right][None, :] - 2.0 * product.astype(np.float64)
        return self.gamma * np.maximum(far, 0.0)


def bytes_per_row(X: Any) -> float:
    """What a row takes, measured: a copy of it in the precision that `measured_rows` keeps."""
    if sparse.issparse(X):
        return 28.0 * X.nnz / X.shape[0]  # values and column numbers, and the squares while they are summed
    return X.shape[1] * float(_precision(X)().itemsize)


def measured_rows(X: Any, at_a_time: int = MOST_VALUES) -> Rows:
    """`X` (n, d), dense or CSR, checked already, as `Rows`."""
    if sparse.issparse(X):
        X = X.tocsr().astype(np.float64)
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        variance = float(squares.sum() / np.prod(X.shape) - X.mean() ** 2)
        return Rows(X, squares, 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0, at_a_time)
    X, spread = _centred(X, at_a_time)
    X /= np.where(spread > 0, spread, 1.0).astype(X.dtype)
    np.clip(X, -_TAIL, _TAIL, out=X)
    return _as_rows(X, at_a_time)


def alike_rows(X: Any, at_a_time: int = MOST_VALUES) -> Rows:
    """Dense `X` (n, d) as `Rows`, all columns centred and divided by the same number."""
    X, spread = _centred(X, at_a_time)
    scale = np.sqrt(np.mean(spread**2))
    X /= X.dtype.type(scale if scale > 0 else 1.0)
    return _as_rows(X, at_a_time)


def _centred(X: Any, at_a_time: int) -> tuple[np.ndarray, np.ndarray]:
    """A copy of `X` with its columns centred, and their standard deviations."""
    X = np.array(X, dtype=_precision(X), order="C")
    X -= X.mean(axis=0, dtype=np.float64).astype(X.dtype)
    step = max(1, at_a_time // X.shape[1])
    parts = [slice(start, start + step) for start in range(0, len(X), step)]
    return X, np.sqrt(sum((X[part].astype(np.float64) ** 2).sum(axis=0) for part in parts) / len(X))


def _as_rows(X: np.ndarray, at_a_time: int) -> Rows:
    squares = np.einsum("ij,ij->i", X, X).astype(np.float64)
    variance = float(squares.sum() / X.size - X.mean(dtype=np.float64) ** 2)
    return Rows(X, squares, 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0, at_a_time)


def _precision(X: Any) -> type[np.floating]:
    return np.float64 if X.size <= _SMALL else np.float32


def better_scale(X: Any, codes: np.ndarray, n_classes: int, rng: np.random.Generator) -> Callable[..., Rows]:
    """How to measure the rows of `X`: `measured_rows`, or `alike_rows` where the given labels are told better by that.

    Columns in different units must be standardised. But principal components, pixels and embeddings differ in spread
    for a reason: standardised, their noise counts as much as what they show, and nothing is near anything. Compared on
    a sample, by how likely held-out judges find its labels.
    """
    if sparse.issparse(X):
        return measured_rows
    at = np.arange(len(codes)) if len(codes) <= _SAMPLE else np.sort(rng.choice(len(codes), _SAMPLE, replace=False))
    spread = np.asarray(X[at], dtype=np.float64).std(axis=0)
    spread = spread[spread > 0]
    if not len(spread) or spread.max() <= _ALIKE * spread.min() or len(np.unique(codes[at])) < 2:
        return measured_rows
    seed = int(rng.integers(2**31))
    losses = [
        _loss(measured(X[at]), codes[at], n_classes, np.random.default_rng(seed))
        for measured in (measured_rows, alike_rows)
    ]
    return alike_rows if losses[1] < losses[0] else measured_rows


def _loss(rows: Rows, codes: np.ndarray, n_classes: int, rng: np.random.Generator) -> float:
    """Mean negative log probability of the labels by judges that did not see them."""
    from floral_learn.review.suspicion import appoint_judges

    proba = appoint_judges(rows, rng).proba(codes, n_classes)
    return float(-np.log(np.clip(proba[np.arange(len(codes)), codes], 1e-3, 1.0)).mean())


def values_at_a_time(max_memory: str | float, n: int, columns: float, n_classes: int) -> int:
    """Kernel values that a review of n rows may hold at a time within `max_memory`; an error where rows do not fit.

    `columns` is the number of bytes that a row takes, measured (8 per column, less where sparse).
    """
    cap = parse_bytes(max_memory)
    rows = n * (columns + _PER_ROW + _PER_CLASS * n_classes) + _QUESTION
    values = int((cap - rows) // _BYTES_PER_VALUE)
    if values < _LEAST_VALUES:
        needed = format_bytes(rows + _LEAST_VALUES * _BYTES_PER_VALUE)
        raise ValueError(
            f"a review of {n:,} rows and {n_classes} classes takes {needed}, over max_memory={max_memory!r}; "
            "raise max_memory, or review a random part of the rows"
        )
    return min(values, MOST_VALUES)


def encoded_labels(y: np.ndarray, classes: Any) -> tuple[np.ndarray, np.ndarray]:
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


def checked_column(values: Any, n: int, name: str, kind: Any) -> np.ndarray:
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


def is_integer(value: Any) -> bool:
    """Whether a parameter is an integer; True and False are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def checked_model(model: Any, name: str) -> Any:
    """`model`, if it can be cloned and fitted."""
    if isinstance(model, type) or not all(hasattr(model, part) for part in ("fit", "predict", "get_params")):
        raise ValueError(f"{name} holds {model!r}, which is not a scikit-learn classifier such as SVC()")
    return model
