"""Class probabilities of every row by a clone of a model that did not see the row's label."""

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import clone

from floral_learn.tables.rows import take_rows

Shares = NDArray[np.float64]
Codes = NDArray[np.intp]


def deal_folds(codes: Codes, n_folds: int, rng: np.random.Generator) -> Codes:
    """The fold (n,) of each row: every class is shuffled and dealt in turn, so that a rare class is spread too.

    Unlike StratifiedKFold this takes classes with fewer rows than folds.
    """
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    folds = np.empty(len(codes), dtype=np.intp)
    folds[order] = np.arange(len(codes)) % n_folds
    return folds


def held_out(
    model: Any,
    X: Any,
    codes: Codes,
    classes: NDArray[Any],
    folds: Codes,
    *,
    train_on: NDArray[np.bool_] | None = None,
    n_jobs: int | None = None,
) -> Shares:
    """Class shares (n, M), each row's by a clone of `model` that did not see its fold.

    A model without probabilities gives the softmax of its decision values. With `train_on` (n,) only these rows train.
    """
    learn = np.ones(len(codes), dtype=bool) if train_on is None else train_on
    parts = [np.flatnonzero(folds == fold) for fold in np.unique(folds)]
    tasks = (delayed(_predict_fold)(clone(model), X, codes, classes, rows, learn.copy()) for rows in parts)
    shares = np.zeros((len(codes), len(classes)))
    for rows, found in zip(parts, Parallel(n_jobs=n_jobs)(tasks), strict=True):
        shares[rows] = found
    return shares


def _predict_fold(model: Any, X: Any, codes: Codes, classes: NDArray[Any], rows: Codes, learn: NDArray[Any]) -> Shares:
    """What `model` says of the rows of one fold, trained on the others."""
    learn[rows] = False
    present = np.unique(codes[learn])
    if len(present) == 1:  # nothing to learn: everything is that class
        return np.eye(len(classes))[np.repeat(present, len(rows))]
    model.fit(take_rows(X, np.flatnonzero(learn)), classes[codes[learn]])
    return _class_shares(model, take_rows(X, rows), classes)


def _class_shares(model: Any, X: Any, classes: NDArray[Any]) -> Shares:
    """What a fitted model gives each class (m, M); zero for classes that it has not seen."""
    own = np.searchsorted(classes, model.classes_)
    if hasattr(model, "predict_proba"):
        found = np.zeros((X.shape[0], len(classes)))
        found[:, own] = model.predict_proba(X)
        return found
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    found = np.full((X.shape[0], len(classes)), -np.inf)
    found[:, own] = scores
    return softmax(found, axis=1)
