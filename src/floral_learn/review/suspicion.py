"""What labels say against each other: held-out class probabilities, by a kernel model and by neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors

from floral_learn.review.rows import Rows

_LANDMARKS = 200
_FOLDS = 5
_RIDGES = (0.01, 0.1, 1.0, 10.0)
_NEIGHBOURS = 15
_REFERENCES = 10_000  # rows among which neighbours are sought, and on which probabilities are calibrated
_MANY = 50_000  # rows from which a fifth of the references has to do
_BLOCK = 2_000_000  # kernel values held at a time
_LIMIT = 4.0  # log-odds beyond which held-out predictions are not believed


@dataclass(frozen=True)
class Judges:
    """Two judges of any labels of the same rows; what does not depend on labels is computed once.

    Parameters
    ----------
    rows : Rows
    marks : ndarray
        Landmark rows of the kernel model.
    fold : ndarray of shape (n,)
        Each row is judged by a model that did not see its fold.
    near : ndarray of shape (n, k)
        Each row's nearest other rows, among the references.
    """

    rows: Rows
    marks: np.ndarray
    fold: np.ndarray
    near: np.ndarray

    def odds(self, codes: np.ndarray, n_classes: int) -> np.ndarray:
        """Held-out probabilities of the classes, (n, n_classes): no row's own label enters its entry."""
        return 0.5 * (self._by_kernel(codes, n_classes) + self._by_neighbours(codes, n_classes))

    def _by_neighbours(self, codes: np.ndarray, n_classes: int) -> np.ndarray:
        """Shares of the classes among the nearest rows, with one vote spread by the classes' frequencies."""
        votes = np.stack([(codes[self.near] == c).sum(axis=1) for c in range(n_classes)], axis=1)
        prior = np.bincount(codes, minlength=n_classes) / len(codes)
        return (votes + prior) / (self.near.shape[1] + 1)

    def _by_kernel(self, codes: np.ndarray, n_classes: int) -> np.ndarray:
        """Kernel ridge on landmarks, cross-fitted, then a logistic curve.

        Each fold's normal equations are taken off the sum of all, so that the folds cost one pass; the ridge is the
        one with the smallest held-out error.
        """
        n, size, folds = len(codes), len(self.marks) + 1, int(self.fold.max()) + 1
        target = np.eye(n_classes)[codes]
        grams, sides = np.zeros((folds, size, size)), np.zeros((folds, size, n_classes))
        for block in _blocks(n, size):
            features = self._features(block)
            for k in range(folds):
                mine = self.fold[block] == k
                grams[k] += features[mine].T @ features[mine]
                sides[k] += features[mine].T @ target[block][mine]
        penalty = np.zeros((size, size))
        penalty[:-1, :-1] = np.exp(-self.rows.distances(self.marks, self.marks))
        penalty += 1e-6 * np.eye(size)
        left = (grams.sum(axis=0) - grams)[:, None] + np.array(_RIDGES)[:, None, None] * penalty
        right = np.repeat((sides.sum(axis=0) - sides)[:, None], len(_RIDGES), axis=1)
        models = np.linalg.solve(left, right)  # (folds, ridges, size, n_classes)
        values = np.empty((len(_RIDGES), n, n_classes))
        for block in _blocks(n, size):
            features = self._features(block)
            for k in range(folds):
                mine = np.flatnonzero(self.fold[block] == k)
                values[:, block.start + mine] = features[mine] @ models[k]
        best = int(np.argmin(((values - target) ** 2).mean(axis=(1, 2))))
        return _calibrated(values[best], codes)

    def _features(self, block: slice) -> np.ndarray:
        kernel = np.exp(-self.rows.distances(block, self.marks))
        return np.column_stack([kernel, np.ones(len(kernel))])


def appointed(rows: Rows, rng: np.random.Generator) -> Judges:
    """Judges for `rows`: random landmarks and folds, and every row's nearest others."""
    n = len(rows)
    marks = rng.choice(n, min(_LANDMARKS, n), replace=False)
    fold = rng.permutation(n) % min(_FOLDS, n)
    size = _REFERENCES if n <= _MANY else _REFERENCES // 5
    chosen = np.arange(n) if n <= size else rng.choice(n, size, replace=False)
    k = min(_NEIGHBOURS, len(chosen) - 1)
    search = NearestNeighbors(n_neighbors=k + 1).fit(rows.values[chosen])
    near = np.empty((n, k), dtype=np.int32)
    for block in _blocks(n, len(chosen)):
        found = chosen[search.kneighbors(rows.values[block], return_distance=False)]
        other = found != np.arange(block.start, block.stop)[:, None]
        other[other.all(axis=1), -1] = False  # a row that is not among the references drops its farthest
        near[block] = found[other].reshape(-1, k)
    return Judges(rows, marks, fold, near)


def suspicion(odds: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Log-odds against each row's label, (n,), cut off where held-out predictions are not to be believed."""
    own = np.clip(odds[np.arange(len(codes)), codes], 1e-9, 1 - 1e-9)
    return np.clip(np.log1p(-own) - np.log(own), -_LIMIT, _LIMIT)


def _blocks(n: int, width: int) -> list[slice]:
    step = max(1, _BLOCK // width)
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def _calibrated(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Probabilities from held-out scores (n, M), by multinomial logistic regression on the labels."""
    n, M = values.shape
    some: Any = slice(None, None, max(1, n // _REFERENCES))
    if len(np.unique(codes[some])) < 2:
        return np.bincount(codes, minlength=M)[None, :] * np.ones((n, 1)) / n
    use = values if M > 2 else values[:, 1:] - 0.5
    model = LogisticRegression(C=10.0, max_iter=500).fit(use[some], codes[some])
    found = np.full((n, M), 1e-6)
    found[:, model.classes_] = model.predict_proba(use)
    return found / found.sum(axis=1, keepdims=True)
