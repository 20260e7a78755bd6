"""What two judges who have not seen a label say about it: held-out models, and the nearest other rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from floral_learn.labels.neighbours import label_votes, nearest_rows
from floral_learn.tables.rows import take_rows

_ASKED_AGAIN = 100  # rows per fold that a model which was trained on them predicts, too: enough for a share

Shares = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True)
class HeldOut:
    """What clones of a model say of rows that they have not seen, and of some that they have.

    Attributes
    ----------
    shares : ndarray of shape (n, M)
        Share of each class, by the clone that did not see the row's fold.
    predicted : int ndarray of shape (n,)
        The class that this clone names.
    seen : int ndarray of shape (n,)
        The class that a clone names which was trained on the row; -1 where none was asked.
    """

    shares: Shares
    predicted: Codes
    seen: Codes

    def memorised(self, codes: Codes) -> float:
        """Of the labels that held-out clones contradict, the share that clones repeat once they have seen them.

        Near 0 for a model that smooths over single labels (logistic regression), near 1 for one that learns each by
        heart (a forest of full trees).
        """
        contradicted = (self.seen >= 0) & (self.predicted != codes)
        return float((self.seen == codes)[contradicted].mean()) if contradicted.any() else 0.0


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
    weight: Shares | None = None,
    n_jobs: int | None = None,
    say: Callable[[str], None] = lambda text: None,
    ask_again: bool = False,
) -> HeldOut:
    """Class shares (n, M) and predicted codes (n,), each row by a clone of `model` that did not see its fold.

    `weight` (n,) goes to the model's fit; rows of weight zero are left out of it. A model without probabilities gives
    the softmax of its decision values: only their order within a class is used. With `ask_again`, each clone also
    predicts some rows of the next fold, which it has seen.
    """
    count = int(folds.max()) + 1
    few = _ASKED_AGAIN if ask_again else 0
    again = [np.flatnonzero(folds == (fold + 1) % count)[:few] for fold in range(count)]
    tasks = (
        delayed(_predict_fold)(clone(model), X, codes, classes, np.flatnonzero(folds == fold), again[fold], weight)
        for fold in range(count)
    )
    shares, predicted = np.zeros((len(codes), len(classes))), np.zeros(len(codes), dtype=np.intp)
    seen = np.full(len(codes), -1, dtype=np.intp)
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(tasks)
    for done, (rows, asked, fold_shares, fold_predicted) in enumerate(results, start=1):
        shares[rows], predicted[rows] = fold_shares[: len(rows)], fold_predicted[: len(rows)]
        seen[asked] = fold_predicted[len(rows) :]
        say(f"fold {done} of {count}")
    return HeldOut(shares, predicted, seen)


def _predict_fold(
    model: Any, X: Any, codes: Codes, classes: NDArray[Any], rows: Codes, again: Codes, weight: Shares | None
) -> tuple[Codes, Codes, Shares, Codes]:
    """The rows of a fold and those asked again, and what `model` says of both, one after the other."""
    train = np.ones(len(codes), bool) if weight is None else weight > 0
    train[rows] = False
    again = again[train[again]]
    asked = np.concatenate([rows, again])
    present = np.unique(codes[train])
    if len(present) == 1:  # nothing to learn: everything is that class
        return rows, again, np.eye(len(classes))[np.repeat(present, len(asked))], np.repeat(present, len(asked))
    fit_weighted(
        model,
        take_rows(X, np.flatnonzero(train)),
        classes[codes[train]],
        None if weight is None else weight[train],
    )
    shares = class_shares(model, take_rows(X, asked), classes)
    if len(present) == 2 and not hasattr(model, "predict_proba") and hasattr(model, "decision_function"):
        return rows, again, shares, shares.argmax(axis=1)  # the sign of the decision: a second pass says the same
    return rows, again, shares, np.searchsorted(classes, model.predict(take_rows(X, asked)))


def fit_weighted(model: Any, X: Any, y: NDArray[Any], weight: Shares | None) -> Any:
    """Fit, with weights only where they differ; without them a model that takes none can still be fitted."""
    if weight is None or np.all(weight == weight[0]):
        return model.fit(X, y)
    if not has_fit_parameter(model, "sample_weight"):
        raise ValueError(f"{type(model).__name__} cannot train with sample_weight: its fit takes none.")
    return model.fit(X, y, sample_weight=weight)


def class_shares(model: Any, X: Any, classes: NDArray[Any]) -> Shares:
    """What a fitted model gives each class (m, M); zero for classes that it has not seen."""
    own = np.searchsorted(classes, model.classes_)
    if hasattr(model, "predict_proba"):
        found = np.zeros((X.shape[0], len(classes)))
        found[:, own] = model.predict_proba(X)
        return found
    if not hasattr(model, "decision_function"):
        return np.eye(len(classes))[np.searchsorted(classes, model.predict(X))]
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    found = np.full((X.shape[0], len(classes)), -np.inf)
    found[:, own] = scores
    return softmax(found, axis=1)


def neighbor_shares(
    X: Any,
    codes: Codes,
    n_classes: int,
    n_neighbors: int,
    weight: Shares | None = None,
    n_jobs: int | None = None,
    most_voters: int = 10_000,
) -> Shares:
    """Share (n, M) of each class among the nearest other rows, features brought to one scale first.

    Rows vote by weight. Missing values count as the column's mean. Of more than ``most_voters`` rows a random part
    votes, so that the search does not grow with the square of n.
    """
    X, n = one_scale(X), len(codes)
    voters = None if n <= most_voters else np.random.default_rng(0).permutation(n)[:most_voters]
    votes = label_votes(nearest_rows(X, n_neighbors, among=voters, n_jobs=n_jobs), codes, n_classes, weight)
    return votes / votes.sum(axis=1, keepdims=True)


def one_scale(X: Any) -> Any:
    """Columns centred (dense only) and divided by their deviation; missing values at the mean."""
    if sparse.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        spread = np.sqrt(np.maximum(np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2, 0.0))
        return X.multiply(1.0 / np.where(spread > 0, spread, 1.0)).tocsr()
    mean, spread = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    return np.nan_to_num((X - mean) / np.where(spread > 0, spread, 1.0), nan=0.0)


def class_recalls(predicted: Codes, codes: Codes, weight: Shares, present: Codes) -> Shares:
    """Weighted share of the given labels of each class that a prediction repeats."""
    hit = weight * (predicted == codes)
    return np.array([hit[codes == code].sum() / weight[codes == code].sum() for code in present])
