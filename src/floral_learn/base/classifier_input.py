"""Training input as every defense wants it: a float matrix, integer class codes, checked weights."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import _check_sample_weight, validate_data

from floral_learn.base.validation import encode_labels, refuse_several_labels

__all__ = ["encode_labels", "query_input", "training_input"]


LARGEST = 1e152  # entries whose squares, summed over a row, a float64 still holds
LARGEST_SINGLE = 1e18  # and a float32


def check_scale(X: NDArray[Any], largest: float = LARGEST) -> None:
    """Refuse rows whose squared distances would overflow or vanish: scores would be NaN, or the same everywhere."""
    peak = float(np.abs(X).max(initial=0.0))
    if peak > largest:
        raise ValueError(f"X has values up to {peak:.1e}, whose squares overflow: standardise its columns first.")
    if 0 < peak < 1 / largest:
        raise ValueError(f"X has no value above {peak:.1e}; squares of such vanish: standardise its columns first.")


def training_input(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, *, any_scale: bool = False, **check: Any
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.float64] | None]:
    """Validate ``fit`` arguments and set ``classes_`` and ``n_features_in_`` on the estimator.

    Returns X (n, d) as float64, codes (n,) into ``classes_``, and the weights (n,) or None.
    """
    refuse_several_labels(y)
    X, y = validate_data(estimator, X, y, dtype=np.float64, ensure_min_samples=2, **check)
    if not any_scale and not issparse(X):
        check_scale(X)
    estimator.classes_, codes = encode_labels(y, type(estimator).__name__)
    if sample_weight is None:
        return X, codes, None
    return X, codes, checked_weight(sample_weight, X, codes, estimator.classes_)


def checked_weight(sample_weight: Any, X: Any, codes: NDArray[np.intp], classes: NDArray[Any]) -> NDArray[np.float64]:
    """Weights (n,) that are not negative and leave every class some weight."""
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    present = np.bincount(codes, weights=weight, minlength=len(classes)) > 0
    if not present.all():
        missing = classes[~present].tolist()[0]
        raise ValueError(f"sample_weight is zero on every row of class {missing!r}; each class needs some weight.")
    return weight


def query_input(estimator: Any, X: Any, **check: Any) -> Any:
    """Validate the rows of a ``predict``-like call against what ``fit`` saw."""
    return validate_data(estimator, X, dtype=np.float64, reset=False, **check)
