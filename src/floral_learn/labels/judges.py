"""Held-out class probabilities: of three judges of one's rows, averaged, or of any classifier.

The judges are ours (kernel ridge regression on landmarks, and the nearest rows), a random forest and a support vector
machine. They fail in different places, so that their mean is better than the best of them.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier

from floral_learn.base.rows import explain_refusal, take_rows
from floral_learn.labels.noise import MANY, calibrate, log_or_floor
from floral_learn.labels.rows import MOST_VALUES, Rows, evenly_scaled_rows, label_votes, nearest_rows, standardised_rows

Shares = NDArray[np.float64]
Codes = NDArray[np.intp]
FOLDS = 5  # a row is judged by models of the other four


def three_judges(
    rows: Rows, near: Codes, codes: Codes, n_classes: int, rng: np.random.Generator, n_jobs: int | None = None
) -> Shares:
    """Held-out probabilities (n, M) of the labels of n rows, each of which has the nearest others `near` (n, k).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.labels.judges import in_best_scale, near_rows, three_judges
    >>> X, y = make_moons(100, noise=0.1, random_state=0)
    >>> rng = np.random.default_rng(0)
    >>> rows = in_best_scale(X, y, 2, rng)
    >>> found = three_judges(rows, near_rows(rows, rng), y, 2, rng)
    >>> bool((found.argmax(axis=1) == y).mean() > 0.95)
    True
    """
    folds = deal_folds(codes, rng)
    ours = by_kernel(rows, codes, n_classes, folds, rng) + by_neighbours(near, codes, n_classes)
    others = by_forest(rows.values, codes, rng, n_jobs) + by_machine(rows, codes, n_classes, folds, rng)
    return (ours / 2 + others) / 3


def by_neighbours(near: Codes, codes: Codes, n_classes: int) -> Shares:
    """Shares of the classes among the nearest rows, with one vote spread by the classes' frequencies; calibrated."""
    votes = label_votes(near, codes, n_classes) + np.bincount(codes, minlength=n_classes) / len(codes)
    return calibrate(np.log(votes), codes)


def by_kernel(
    rows: Rows, codes: Codes, n_classes: int, folds: Codes, rng: np.random.Generator, landmarks: int = 400
) -> Shares:
    """Ridge regression on the kernel values of random landmark rows, cross-fitted, then calibrated.

    Each fold's normal equations are taken off the sum of all, so that the folds cost one pass; the ridge is the one
    with the smallest held-out error, which follows from the same sums.
    """
    n = len(codes)
    chosen = rng.choice(n, min(landmarks, n), replace=False)
    size, count = len(chosen) + 1, int(folds.max()) + 1
    # Twice as wide as gamma="scale" has it: what lies in a region is judged by what lies around it.
    width = 0.5

    def features(block: slice) -> np.ndarray:
        kernel = np.exp(-width * rows.distances(block, chosen))
        return np.column_stack([kernel, np.ones(len(kernel))])

    unit = np.eye(n_classes)
    grams, sides = np.zeros((count, size, size)), np.zeros((count, size, n_classes))
    for block in rows.blocks(size):
        values = features(block)
        for k in range(count):
            mine = folds[block] == k
            grams[k] += values[mine].T @ values[mine]
            sides[k] += values[mine].T @ unit[codes[block][mine]]
    penalty = np.zeros((size, size))
    penalty[:-1, :-1] = np.exp(-width * rows.distances(chosen, chosen))
    penalty += 1e-6 * np.eye(size)
    ridges = np.logspace(-2, 1, 4)  # times the kernel of the landmarks; the labels choose
    left = (grams.sum(axis=0) - grams)[:, None] + ridges[:, None, None] * penalty
    right = np.repeat((sides.sum(axis=0) - sides)[:, None], len(ridges), axis=1)
    models = np.linalg.solve(left, right)  # (folds, ridges, size, n_classes)
    # held-out sum of squares, up to that of the labels themselves
    error = (models * (grams[:, None] @ models - 2 * sides[:, None])).sum(axis=(0, 2, 3))
    models = models[:, int(np.argmin(error))]
    scores = np.empty((n, n_classes))
    for block in rows.blocks(size):
        values = features(block)
        for k in range(count):
            mine = np.flatnonzero(folds[block] == k)
            scores[block.start + mine] = values[mine] @ models[k]
    return calibrate(scores, codes)


def by_forest(values: Any, codes: Codes, rng: np.random.Generator, n_jobs: int | None = None) -> Shares:
    """What the trees of a forest that did not have a row say of it, calibrated.

    A thousand rows a tree: with more, trees repeat the labels of single rows, wrong ones among them.
    """
    forest = RandomForestClassifier(
        n_estimators=50,
        min_samples_leaf=3,
        max_samples=min(len(codes), 1_000),
        oob_score=True,
        random_state=int(rng.integers(2**31)),
        n_jobs=n_jobs,
    )
    with warnings.catch_warnings():
        # a row that every tree saw has no share: it gets equal ones
        warnings.simplefilter("ignore")
        shares = forest.fit(values, codes).oob_decision_function_
    return calibrate(log_or_floor(np.nan_to_num(shares, nan=1 / shares.shape[1])), codes)


def by_machine(rows: Rows, codes: Codes, n_classes: int, folds: Codes, rng: np.random.Generator) -> Shares:
    """A support vector machine, one class against the rest, on a kernel of rank 200; cross-fitted, then calibrated.

    min_w |w|^2 / 2 + sum_i max(0, 1 - y_i w.f_i)^2 by accelerated gradient steps (Nesterov, 2004, section 2.2) in the
    metric of the Hessian's upper bound I + 2 F'F, in which five steps are as good as ten.
    """
    landmarks = rng.choice(len(codes), min(200, len(codes)), replace=False)
    within = np.exp(-rows.distances(landmarks, landmarks)) + 1e-6 * np.eye(len(landmarks))
    root = np.linalg.inv(np.linalg.cholesky(within)).T

    def features(block: Any) -> np.ndarray:
        kernel = np.exp(-rows.distances(block, landmarks))
        return np.column_stack([kernel @ root, np.ones(len(kernel))])

    learn = np.sort(rng.permutation(len(codes))[:MANY])
    known, columns = features(learn), np.arange(n_classes) if n_classes > 2 else np.array([1])
    weights = []
    for k in range(folds.max() + 1):
        seen = known[folds[learn] != k]
        sign = np.where(codes[learn][folds[learn] != k, None] == columns, 1.0, -1.0)
        inverse = np.linalg.inv(np.eye(seen.shape[1]) + 2 * seen.T @ seen)
        w = ahead = np.zeros((seen.shape[1], len(columns)))
        for step in range(1, 6):
            slack = np.maximum(0, 1 - sign * (seen @ ahead))
            last, w = w, ahead - inverse @ (ahead - 2 * seen.T @ (sign * slack))
            ahead = w + (step - 1) / (step + 2) * (w - last)
        weights.append(w)
    scores = np.empty((len(codes), len(columns)))
    for block in rows.blocks(len(landmarks)):
        values = features(block)
        for k, w in enumerate(weights):
            mine = np.flatnonzero(folds[block] == k)
            scores[block.start + mine] = values[mine] @ w
    return calibrate(np.column_stack([-scores, scores]) if n_classes == 2 else scores, codes)


def near_rows(rows: Rows, rng: np.random.Generator, most: int = 50) -> Codes:
    """Each row's nearest others, `most` of them or a tenth of the rows, (n, k); of many rows, among a random part."""
    n = len(rows)
    few = MANY if n <= 5 * MANY else MANY // 5  # for speed
    among = None if n <= few else rng.choice(n, few, replace=False)
    values = rows.values
    # in hundreds of columns nothing is near anything
    if values.shape[1] > 64 and not sparse.issparse(values):
        seed = int(rng.integers(2**31))
        values = PCA(min(64, n), svd_solver="randomized", random_state=seed).fit_transform(values)
    return nearest_rows(values, max(1, min(most, n // 10)), among=among).astype(np.int32)


def in_best_scale(X: Any, codes: Codes, n_classes: int, rng: np.random.Generator, at_a_time: int = MOST_VALUES) -> Rows:
    """The rows of `X` with columns standardised, or all scaled alike where that tells the labels better.

    Columns in different units must be standardised. But principal components, pixels and embeddings differ in spread
    for a reason: standardised, their noise counts as much as what they show, and nothing is near anything. Compared on
    a sample, by how likely a held-out machine finds its labels.
    """
    if sparse.issparse(X):
        return standardised_rows(X, at_a_time)
    some = np.sort(rng.permutation(len(codes))[: MANY // 5])
    sample, labels = X[some], codes[some]
    spread = np.nanstd(np.asarray(sample, dtype=np.float64), axis=0)
    spread = spread[spread > 0]
    if not len(spread) or np.allclose(spread, spread[0], rtol=0.01, atol=0) or len(np.unique(labels)) < 2:
        return standardised_rows(X, at_a_time)
    folds, seed = deal_folds(labels, rng), int(rng.integers(2**31))

    def likelihood(scaled: Rows) -> float:
        shares = by_machine(scaled, labels, n_classes, folds, np.random.default_rng(seed))
        return float(log_or_floor(shares)[np.arange(len(some)), labels].sum())

    even = likelihood(evenly_scaled_rows(sample)) > likelihood(standardised_rows(sample))
    return evenly_scaled_rows(X, at_a_time) if even else standardised_rows(X, at_a_time)


def deal_folds(codes: Codes, rng: np.random.Generator, folds: int = FOLDS) -> Codes:
    """The fold (n,) of each row: every class is shuffled and dealt in turn, so that a rare class is spread too.

    Unlike StratifiedKFold this takes classes with fewer rows than folds.
    """
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(len(codes), dtype=np.intp)
    fold[order] = np.arange(len(codes)) % min(folds, len(codes))
    return fold


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
    learn = np.arange(len(codes)) if train_on is None else np.flatnonzero(train_on)
    parts = [np.flatnonzero(folds == fold) for fold in np.unique(folds)]
    tasks = (delayed(_predict_fold)(clone(model), X, codes, classes, rows, np.setdiff1d(learn, rows)) for rows in parts)
    shares = np.zeros((len(codes), len(classes)))
    for rows, found in zip(parts, Parallel(n_jobs=n_jobs)(tasks), strict=True):
        shares[rows] = found
    return shares


def _predict_fold(model: Any, X: Any, codes: Codes, classes: NDArray[Any], rows: Codes, learn: Codes) -> Shares:
    """What `model` says of the rows of one fold, trained on others."""
    present = np.unique(codes[learn])
    if len(present) == 1:  # nothing to learn: everything is that class
        return np.eye(len(classes))[np.repeat(present, len(rows))]
    try:
        model.fit(take_rows(X, learn), classes[codes[learn]])
    except (TypeError, ValueError) as error:
        raise explain_refusal(error, X, model) from error
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
