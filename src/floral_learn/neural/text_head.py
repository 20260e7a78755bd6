"""The head of a text model, built and held against all that its fit will be given, before any encoder is trained."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from floral_learn.base.validation import check_decay, check_trusted
from floral_learn.floral.budgets import resolve_budget
from floral_learn.floral.classifier import GameClassifier
from floral_learn.game.arrays import backend_for
from floral_learn.game.pairs import Pairs
from floral_learn.neural.head import build_head


def checked_head(head: Any) -> Any:
    """The unfitted estimator behind a `head` parameter, its parameters checked."""
    if head is None or isinstance(head, dict):
        return build_head(head, None)
    made = clone(head)
    if not hasattr(made, "fit") or is_regressor(made):
        raise ValueError(f"head={head!r} must be a classifier")
    for part in (made, *dict(getattr(made, "steps", ())).values()):
        if hasattr(part, "_parameter_constraints"):
            part._validate_params()
    return made


def check_fit(head: Any, classes: np.ndarray, codes: np.ndarray, given: dict[str, Any]) -> np.ndarray | None:
    """Refuse now what the head's fit would refuse; returns the weights (n,) of the rows, or None.

    `given` are keywords of ``head.fit``; those of a pipeline's step have its name in front, ``step__sample_weight``.
    """
    known = inspect.signature(head.fit).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        allowed = [name for name in known if name not in ("X", "y")]
        if strange := [name for name in given if name not in allowed]:
            raise TypeError(f"{type(head).__name__}.fit has no parameter {strange[0]!r}; it has {allowed}")
    weights = None
    for name, value in given.items():
        meant = name.rpartition("__")[2]
        if meant == "trusted":
            check_trusted(value, len(codes))
        elif meant == "sample_weight" and value is not None:
            weights = _check_weights(value, classes, codes)
    if isinstance(head, GameClassifier):
        _check_floral(head, classes, codes, weights)
    return weights


def _check_weights(given: Any, classes: np.ndarray, codes: np.ndarray) -> np.ndarray:
    weights = _check_sample_weight(given, codes[:, None], dtype=np.float64, ensure_non_negative=True)
    empty = np.bincount(codes, weights=weights, minlength=len(classes)) == 0
    if empty.any():
        raise ValueError(
            f"sample_weight is zero on every row of class {classes[empty].tolist()[0]!r}; each class needs some weight"
        )
    return np.asarray(weights)


def _check_floral(head: GameClassifier, classes: np.ndarray, codes: np.ndarray, weights: np.ndarray | None) -> None:
    """What FloralClassifier checks before its first round, as far as it does not need the embeddings."""
    if head.kernel == "precomputed":
        raise ValueError("head kernel='precomputed' wants a kernel matrix, and the head is given embeddings")
    labels = codes if weights is None else codes[weights > 0]
    settings = head._settings()
    pairs = Pairs.of(labels, len(classes)) if len(classes) > 2 and settings.multi_class == "pairs" else None
    resolve_budget(settings, labels, classes, pairs)
    check_decay(settings.decay)
    backend_for(settings.device)
    if settings.class_weight is not None:
        compute_class_weight(settings.class_weight, classes=classes, y=classes[codes])
