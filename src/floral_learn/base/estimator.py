"""What the estimators share: input as a float matrix with class codes and checked weights, and atomic fits."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, validate_data

from floral_learn.base.alignment import align, refuse_repeated_columns
from floral_learn.base.validation import check_scale, encode_labels, refuse_several_labels

Fit = TypeVar("Fit", bound=Callable[..., Any])


class Estimator(BaseEstimator):
    """Base of the estimators here: scikit-learn's."""


def training_input(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, **check: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Validate ``fit`` arguments and set ``classes_`` and ``n_features_in_`` on the estimator.

    Returns X (n, d) as float64, codes (n,) into ``classes_``, and the weights (n,) or None. What carries an index is
    matched with X by it.
    """
    y, sample_weight = align(X, y), align(X, sample_weight, ("X", "sample_weight"))
    refuse_several_labels(y)
    try:
        X, y = validate_data(estimator, X, y, dtype=np.float64, ensure_min_samples=2, **check)
    except ValueError as error:
        from floral_learn.base.rows import explain_refusal  # which reads rows with an estimator

        raise explain_refusal(error, X, estimator) from error
    check_scale(X)
    estimator.classes_, codes = encode_labels(y, type(estimator).__name__)
    if sample_weight is None:
        return X, codes, None
    return X, codes, checked_weight(sample_weight, X, codes, estimator.classes_)


def checked_weight(sample_weight: Any, X: Any, codes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Weights (n,) that are not negative and leave every class some weight."""
    given = np.asarray(sample_weight)
    if given.dtype.kind in "fiu" and given.size and (low := given.min()) < 0:
        raise ValueError(f"sample_weight holds {low:g}; weights are 0 or more")
    if given.size and not given.any():
        raise ValueError("sample_weight is zero on every row; each class needs some weight.")
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    present = np.bincount(codes, weights=weight, minlength=len(classes)) > 0
    if not present.all():
        missing = classes[~present].tolist()[0]
        raise ValueError(f"sample_weight is zero on every row of class {missing!r}; each class needs some weight.")
    return weight


def query_input(estimator: Any, X: Any, **check: Any) -> Any:
    """Validate the rows of a ``predict``-like call against what ``fit`` saw."""
    refuse_repeated_columns(X)
    return validate_data(estimator, X, dtype=np.float64, reset=False, **check)


def whole_fit(fit: Fit) -> Fit:
    """Decorate ``fit``: after an error or Ctrl-C inside, the estimator is what it was before, fitted or not.

    Attributes are put back as they were, so a fit must make new arrays and new sub-estimators in place of changing old
    ones, which is scikit-learn's rule too.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from floral_learn.base.estimator import whole_fit
    >>> class Fragile(BaseEstimator):
    ...     @whole_fit
    ...     def fit(self, X):
    ...         self.mean_ = sum(X) / len(X)
    ...         self.least_ = min(X)
    ...         return self
    >>> model = Fragile().fit([1.0, 3.0])
    >>> try:
    ...     model.fit([5.0, None])
    ... except TypeError:
    ...     print(model.mean_, model.least_)
    2.0 1.0
    """

    @functools.wraps(fit)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            # One assignment: a second Ctrl-C finds the old attributes or the new ones, never some of each.
            self.__dict__ = before
            raise

    return run  # type: ignore[return-value]
