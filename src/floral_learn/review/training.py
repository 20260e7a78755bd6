"""What comes out of a review: labels and weights to train with, as frames, and a fitted classifier."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from floral_learn.base.alignment import index_of
from floral_learn.base.rows import explain_refusal
from floral_learn.review.beliefs import Beliefs
from floral_learn.review.posterior import NEGLIGIBLE
from floral_learn.review.table import ReviewTable


def training_set(beliefs: Beliefs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Class numbers and weights to train with, and P(wrong) of these labels, three arrays (n,).

    As long as no answer contradicts a label, labels count alike.
    """
    belief, codes = beliefs.label_probability, beliefs.labels
    weights = np.ones(len(codes))
    if beliefs.speaks:
        weights = training_weights(belief, codes)
    return codes, weights, 1.0 - belief[np.arange(len(codes)), codes]


def training_weights(belief: np.ndarray, read: np.ndarray) -> np.ndarray:
    """Weights (n,) of rows that are read as the classes `read` (n,), by P(true class) `belief` (n, M); 1 on average.

    Less in doubt, and each class as much as it is expected to have rows: it may be larger or smaller than the rows
    read as it, by labels that were flipped but cannot be told apart.
    """
    M = belief.shape[1]
    guess = 1 / M
    certainty = np.maximum((belief[np.arange(len(belief)), read] - guess) / (1 - guess), NEGLIGIBLE)
    total = np.bincount(read, certainty, minlength=M)
    weights = certainty * (belief.sum(axis=0) / np.maximum(total, NEGLIGIBLE))[read]
    return weights / weights.mean()


def training_frame(table: ReviewTable, beliefs: Beliefs) -> Any:
    """label, weight, wrong_probability and state of each row."""
    codes, weights, _ = training_set(beliefs)
    columns = {
        "label": table.classes[codes],
        "weight": table.weight * weights,
        "wrong_probability": beliefs.wrong,
        "state": _states(table, beliefs, codes),
    }
    return _frame(table, columns)


def reviewed_frame(table: ReviewTable, beliefs: Beliefs) -> Any:
    """given and corrected label, wrong_probability, state, and P(each class) of each row."""
    columns = {
        "given": table.given,
        "label": table.classes[beliefs.labels],
        "wrong_probability": beliefs.wrong,
        "state": _states(table, beliefs, beliefs.labels),
    }
    shares = zip(table.classes, beliefs.label_probability.T, strict=True)
    return _frame(table, columns | {f"p_{name}": share for name, share in shares})


def _states(table: ReviewTable, beliefs: Beliefs, codes: np.ndarray) -> np.ndarray:
    """Whether each label of `codes` was answered, corrected by the model, or is the given one."""
    states = np.where(codes != table.codes, "corrected", "given").astype(object)
    states[list(beliefs.answers.settled)] = "answered"
    return states


def _frame(table: ReviewTable, columns: dict[str, np.ndarray]) -> Any:
    """A frame with the index of the rows, or the plain columns where pandas is not installed."""
    try:
        import pandas as pd
    except ImportError:
        return columns
    return pd.DataFrame(columns, index=index_of(table.rows.given))


def fit_reviewed(
    estimator: Any, table: ReviewTable, beliefs: Beliefs, rows: np.ndarray | None = None, *, weighted: bool = True
) -> Any:
    """A clone of `estimator` fitted on `rows` as they are read; weights and `trusted` go where its fit takes them.

    A `budget` (FLORAL's) that still has its default becomes the expected share of wrong labels, where that is less: an
    attacker with more flips than there are wrong labels costs accuracy.
    """
    codes, weights, wrong = training_set(beliefs)
    rows = np.arange(len(codes)) if rows is None else rows
    model = clone(estimator)
    step = model.steps[-1] if isinstance(model, Pipeline) else None
    last, prefix = (step[1], f"{step[0]}__") if step else (model, "")
    if _keeps_default(last, "budget"):
        last.set_params(budget=float(min(wrong[rows].mean(), last.budget)))
    takes = inspect.signature(last.fit).parameters
    extra: dict[str, Any] = {}
    if "sample_weight" in takes:
        extra[prefix + "sample_weight"] = (table.weight * weights if weighted else table.weight)[rows]
    if "trusted" in takes:
        extra[prefix + "trusted"] = beliefs.known[rows]
    X = table.rows.take(rows)
    try:
        return model.fit(X, table.classes[codes[rows]], **extra)
    except (ValueError, TypeError) as error:
        raise explain_refusal(error, X, model) from error


def _keeps_default(estimator: Any, name: str) -> bool:
    parameter = inspect.signature(type(estimator).__init__).parameters.get(name)
    return parameter is not None and getattr(estimator, name, None) == parameter.default


def checked_model(model: Any, name: str) -> Any:
    """`model`, if it can be cloned and fitted."""
    if isinstance(model, type) or not all(hasattr(model, part) for part in ("fit", "predict", "get_params")):
        raise ValueError(f"{name} holds {model!r}, which is not a scikit-learn classifier such as SVC()")
    return model
