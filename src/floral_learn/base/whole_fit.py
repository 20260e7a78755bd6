"""A fit that ends, or a fit that never was."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

Fit = TypeVar("Fit", bound=Callable[..., Any])


def whole_fit(fit: Fit) -> Fit:
    """Decorate ``fit``: after an error or Ctrl-C inside, the estimator is what it was before, fitted or not.

    Attributes are put back as they were, so a fit must make new arrays and new sub-estimators in place of changing old
    ones, which is scikit-learn's rule too.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from floral_learn.base.whole_fit import whole_fit
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
