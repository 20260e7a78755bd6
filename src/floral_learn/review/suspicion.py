"""What the given labels say against each other before anyone is asked: log-odds against each label, held out."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors

from floral_learn.review.rows import Rows

_LANDMARKS = 300
_FOLDS = 5
_RIDGES = np.array([0.01, 0.1, 1.0, 10.0])
_NEIGHBOURS = 15
_REFERENCES = 10_000  # rows among which neighbours are sought
_BLOCK = 2_000_000  # kernel values held at a time
_LIMIT = 4.0  # log-odds beyond which held-out predictions are not believed


def class_odds(rows: Rows, codes: np.ndarray, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Held-out probabilities of the classes for every row, (n, n_classes): no row's own label enters its entry.

    Kernel ridge on landmarks, cross-fitted: each fold's normal equations are taken off the sum of all, so that five
    models cost one pass. The ridge is the one with the smallest held-out error; a logistic curve turns values into
    probabilities.
    """
    n = len(codes)
    marks = rng.choice(n, min(_LANDMARKS, n), replace=False)
    fold = rng.permutation(n) % min(_FOLDS, n)
    target = np.eye(n_classes)[codes]
    size = len(marks) + 1
    grams = np.zeros((fold.max() + 1, size, size))
    sides = np.zeros((fold.max() + 1, size, n_classes))
    for block in _blocks(n, size):
        features = _features(rows, block, marks)
        for k in range(len(grams)):
            mine = fold[block] == k
            grams[k] += features[mine].T @ features[mine]
            sides[k] += features[mine].T @ target[block][mine]
    penalty = np.zeros((size, size))
    penalty[:-1, :-1] = np.exp(-rows.distances(marks, marks))
    penalty += 1e-6 * np.eye(size)
    models = np.stack(
        [
            [np.linalg.solve(grams.sum(0) - grams[k] + ridge * penalty, sides.sum(0) - sides[k]) for ridge in _RIDGES]
            for k in range(len(grams))
        ]
    )
    values = np.empty((len(_RIDGES), n, n_classes))
    for block in _blocks(n, size):
        features = _features(rows, block, marks)
        for k in range(len(grams)):
            mine = np.flatnonzero(fold[block] == k)
            values[:, block.start + mine] = features[mine] @ models[k]
    best = int(np.argmin(((values - target) ** 2).mean(axis=(1, 2))))
    return _calibrated(values[best], codes, rng)


def neighbour_odds(rows: Rows, codes: np.ndarray, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Shares of the classes among each row's nearest other rows, (n, n_classes), with one vote spread over all."""
    n = len(codes)
    chosen = np.arange(n) if n <= _REFERENCES else rng.choice(n, _REFERENCES, replace=False)
    k = min(_NEIGHBOURS, len(chosen) - 1)
    search = NearestNeighbors(n_neighbors=k + 1).fit(rows.values[chosen])
    share = np.empty((n, n_classes))
    prior = np.bincount(codes, minlength=n_classes) / n
    for block in _blocks(n, len(chosen)):
        found = chosen[search.kneighbors(rows.values[block], return_distance=False)]
        other = found != np.arange(block.start, block.stop)[:, None]
        other[other.all(axis=1), -1] = False
        votes = codes[found[other].reshape(-1, k)]
        share[block] = (votes[:, :, None] == np.arange(n_classes)).sum(axis=1)
    return (share + prior) / (k + 1)


def suspicion(odds: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Log-odds against each row's given label, (n,), cut off where held-out predictions are not to be believed."""
    own = odds[np.arange(len(codes)), codes]
    own = np.clip(own, 1e-9, 1 - 1e-9)
    return np.clip(np.log1p(-own) - np.log(own), -_LIMIT, _LIMIT)


def _features(rows: Rows, block: slice, marks: np.ndarray) -> np.ndarray:
    kernel = np.exp(-rows.distances(block, marks))
    return np.column_stack([kernel, np.ones(len(kernel))])


def _blocks(n: int, width: int) -> list[slice]:
    step = max(1, _BLOCK // width)
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def _calibrated(values: np.ndarray, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n = len(codes)
    some = np.arange(n) if n <= _REFERENCES else rng.choice(n, _REFERENCES, replace=False)
    if len(np.unique(codes[some])) < 2:
        return np.bincount(codes, minlength=values.shape[1])[None, :] * np.ones((n, 1)) / n
    use = values if values.shape[1] > 2 else values[:, 1:] - 0.5
    model = LogisticRegression(C=10.0, max_iter=500).fit(use[some], codes[some])
    found = np.full((n, values.shape[1]), 1e-6)
    found[:, model.classes_] = model.predict_proba(use)
    return found / found.sum(axis=1, keepdims=True)
