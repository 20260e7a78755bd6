"""What a caller hands in, checked, and rows in the scale in which the review compares them: never n x n."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from floral_learn.base.validation import encode_labels
from floral_learn.labels.judges import deal_folds, held_out, in_best_scale
from floral_learn.labels.rows import Rows, evenly_scaled_rows, standardised_rows
from floral_learn.review.rules import COMPONENTS

_FEW_COLUMNS, _MANY_COLUMNS = 1.0, 0.01  # C of the linear model, up to a hundred columns and above
NEARLY = 0.1  # of the typical distance to the nearest row, up to which rows are nearly the same: as in the audit
_MANY_ROWS = 10_000  # from which directions and linear models are learned on a sample


def compared_rows(X: Any, codes: np.ndarray, n_classes: int, rng: np.random.Generator) -> Rows:
    """The rows of `X` (n, d) in the scale in which they are compared.

    Dense rows of many columns by their first principal components: in hundreds of columns nothing is near anything.
    """
    if not sparse.issparse(X) and X.shape[1] > COMPONENTS:
        X = _principal_components(standardised_rows(X).values, COMPONENTS, rng)
        return evenly_scaled_rows(X)  # standardised, the last ones would count as much as the first
    return in_best_scale(X, codes, n_classes, rng)


@dataclass(frozen=True)
class Likeness:
    """Rows by all of their columns, and how far (squared) the nearest other one typically is."""

    rows: Rows
    typical: float

    @classmethod
    def of(cls, X: Any, some: np.ndarray) -> Likeness:
        """Of rows `X` (n, d); the typical distance is that from `some` of them."""
        rows = standardised_rows(X)
        nearest = []
        for row in some.tolist():
            far = rows.distances(np.array([row]), slice(None))[0]
            far[row] = np.inf
            nearest.append(far.min())
        return cls(rows, float(np.median(nearest)))

    def nearest(self, row: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The n rows most like `row`, nearest first, and whether each is nearly the same."""
        far = self.rows.distances(np.array([row]), slice(None))[0]
        far[row] = np.inf
        near = np.argsort(far, kind="stable")[: min(n, len(far) - 1)]
        return near, far[near] <= NEARLY**2 * self.typical + np.finfo(np.float32).eps


def _principal_components(values: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """The first `count` principal components of `values` (n, d), their directions from a sample of the rows."""
    some = values
    if len(values) > _MANY_ROWS:
        some = values[np.sort(rng.choice(len(values), _MANY_ROWS, replace=False))]
    covariance = np.cov(some.astype(np.float64), rowvar=False)
    directions = np.linalg.eigh(covariance)[1][:, ::-1][:, :count]  # largest eigenvalues first
    return values @ directions.astype(values.dtype)


def without_holes(X: Any) -> Any:
    """`X` with missing values at their column's mean."""
    if sparse.issparse(X) or not np.isnan(X.sum()):
        return X
    holes = np.isnan(X)
    filled = np.where(holes, 0.0, X)
    return np.where(holes, filled.sum(axis=0) / np.maximum((~holes).sum(axis=0), 1), X)


def own_scores(X: Any, codes: np.ndarray, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Places (n,) from -2 to 2 by the held-out log-odds of each given label, those of a linear model.

    An attack that flips what lies far from a boundary, or near to it, flips a stretch of these, in any number of
    columns and classes.
    """
    values = standardised_rows(X).values
    model = LogisticRegression(C=_FEW_COLUMNS if X.shape[1] <= 100 else _MANY_COLUMNS, max_iter=300)
    fold = deal_folds(codes, rng)
    some = None
    if len(codes) > _MANY_ROWS:  # a linear model needs no more rows than that
        some = np.zeros(len(codes), dtype=bool)
        some[rng.choice(len(codes), _MANY_ROWS, replace=False)] = True
    shares = held_out(model, values, codes, np.arange(n_classes), fold, train_on=some)
    own = np.clip(shares[np.arange(len(codes)), codes], 1e-6, 1 - 1e-6)
    return evenly_placed(np.log(own) - np.log1p(-own))


def evenly_placed(values: np.ndarray) -> np.ndarray:
    """Places from -2 to 2 by the ranks of `values`, (n,)."""
    return 4.0 * np.argsort(np.argsort(values, kind="stable"), kind="stable") / len(values) - 2.0


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
