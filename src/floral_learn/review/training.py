"""Fit any classifier on labels as a review reads them."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

_MOST = 0.05  # FLORAL's own default, which costs nothing on clean labels


def fit_reviewed(
    estimator: Any, X: Any, labels: np.ndarray, weights: np.ndarray, trusted: np.ndarray, in_doubt: float
) -> Any:
    """A fitted clone of `estimator`: `weights` and `trusted` go where its fit takes them.

    A `budget` (FLORAL's) that still has its default becomes `in_doubt`, the share of rows still in doubt, and at most
    5 %: an attacker with more flips than there are wrong labels costs accuracy.
    """
    model = clone(estimator)
    step = model.steps[-1] if isinstance(model, Pipeline) else None
    last, prefix = (step[1], f"{step[0]}__") if step else (model, "")
    if _keeps_default(last, "budget"):
        last.set_params(budget=float(min(in_doubt, _MOST)))
    takes = _fit_parameters(last)
    extra: dict[str, Any] = {}
    if "sample_weight" in takes:
        extra[prefix + "sample_weight"] = weights
    if "trusted" in takes:
        extra[prefix + "trusted"] = trusted
    return model.fit(X, labels, **extra)


def _fit_parameters(estimator: Any) -> set[str]:
    return set(inspect.signature(estimator.fit).parameters)


def _keeps_default(estimator: Any, name: str) -> bool:
    parameter = inspect.signature(type(estimator).__init__).parameters.get(name)
    return parameter is not None and getattr(estimator, name, None) == parameter.default
