"""Fit any classifier on labels as a review reads them."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline


def fit_reviewed(
    estimator: Any, X: Any, labels: np.ndarray, weights: np.ndarray, trusted: np.ndarray, wrong_share: float
) -> Any:
    """A fitted clone of `estimator`: `weights` and `trusted` go where its fit takes them.

    A `budget` (FLORAL's) that still has its default becomes `wrong_share`, the share of labels that may still be wrong.
    """
    model = clone(estimator)
    step = model.steps[-1] if isinstance(model, Pipeline) else None
    last, prefix = (step[1], f"{step[0]}__") if step else (model, "")
    if _keeps_default(last, "budget"):
        last.set_params(budget=float(min(wrong_share, 0.5)))
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
