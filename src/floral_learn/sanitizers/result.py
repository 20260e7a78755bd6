"""What a sanitiser returns, and the input checks that all of them share."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_X_y

from floral_learn.base.classifier_input import checked_weight, encode_labels
from floral_learn.base.shown import Shown
from floral_learn.tables.frames import is_frame
from floral_learn.tables.rows import read_rows


@dataclass(frozen=True, repr=False)
class SanitizeResult(Shown):
    """A sanitised training set of m <= n rows.

    Attributes
    ----------
    X, y : array-like of shape (m, d) and (m,)
        What remains, in the given order and container.
    sample_weight : ndarray of shape (m,) or None
        None where the sanitiser weighs nothing.
    kept, relabeled : bool ndarray of shape (n,)
        Masks over the given rows.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import KNNRelabel
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> y[:5] = 1 - y[:5]
    >>> result = KNNRelabel(threshold=0.8).fit_sanitize(X, y)
    >>> result.relabeled[:5].all(), result.kept.all(), result.sample_weight is None
    (np.True_, np.True_, True)
    """

    X: Any
    y: NDArray[Any]
    sample_weight: NDArray[np.float64] | None
    kept: NDArray[np.bool_]
    relabeled: NDArray[np.bool_]

    def _facts(self) -> dict[str, str]:
        n = len(self.kept)
        facts = {"rows kept": f"{int(self.kept.sum()):,} of {n:,}", "labels replaced": f"{int(self.relabeled.sum()):,}"}
        if self.sample_weight is not None and len(self.sample_weight):
            weight = self.sample_weight
            facts["weights"] = f"{weight.min():.2f} to {weight.max():.2f}, {int((weight < 1).sum()):,} below 1"
        return facts


def sanitizer_input(
    sanitizer: Any, X: Any, y: Any, *, accept_sparse: str | bool = False, allow_nan: bool = False
) -> tuple[Any, NDArray[Any], NDArray[np.intp]]:
    """Checked parameters and data: X (n, d) floats (a frame's columns encoded), classes (M,), codes (n,)."""
    sanitizer._validate_params()
    if is_frame(X):
        X = read_rows(X, min_rows=2).numbers
    X, y = check_X_y(
        X,
        y,
        dtype=np.float64,
        ensure_min_samples=2,
        accept_sparse=accept_sparse,
        ensure_all_finite="allow-nan" if allow_nan else True,
        estimator=sanitizer,
    )
    classes, codes = encode_labels(y, type(sanitizer).__name__)
    return X, classes, codes


def sanitizer_weight(
    sample_weight: Any, X: Any, codes: NDArray[np.intp], classes: NDArray[Any]
) -> NDArray[np.float64] | None:
    """Checked weights (n,), or None; every class needs some weight."""
    return None if sample_weight is None else checked_weight(sample_weight, X, codes, classes)


def drop_rows(X: Any, y: NDArray[Any], kept: NDArray[np.bool_]) -> SanitizeResult:
    """The result that keeps the masked rows of X, whatever container X is."""
    return SanitizeResult(_safe_indexing(X, np.flatnonzero(kept)), y[kept], None, kept, np.zeros(len(kept), bool))


def spare_one_of_each_class(
    change: NDArray[np.bool_], codes: NDArray[np.intp], suspicion: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Withdraw the least suspicious change of every class that would lose all of its rows.

    Without it a sanitiser could hand a one-class problem to the classifier behind it, and a class that is
    wrong as a whole is a matter for a person, not for a filter.
    """
    change = change.copy()
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        if change[rows].all():
            change[rows[np.argmin(suspicion[rows])]] = False
    return change
