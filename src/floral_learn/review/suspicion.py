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
_BLOCK = 2_000_000  # kernel values held at a time, where memory allows
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

    def proba(self, codes: np.ndarray, n_classes: int) -> np.ndarray:
        """Held-out probabilities of the classes, (n, n_classes): no row's own label enters its entry."""
        return 0.5 * (self._by_kernel(codes, n_classes) + self._by_neighbours(codes, n_classes))

    def _by_neighbours(self, codes: np.ndarray, n_classes: int) -> np.ndarray:
        """Shares of the classes among the nearest rows, with one vote spread by the classes' frequencies."""
        shares = np.empty((len(codes), n_classes))
        for block in self._blocks(2 * self.near.shape[1]):
            near = codes[self.near[block]]
            for c in range(n_classes):
                shares[block, c] = (near == c).sum(axis=1)
        shares += np.bincount(codes, minlength=n_classes) / len(codes)
        return shares / (self.near.shape[1] + 1)

    def _by_kernel(self, codes: np.ndarray, n_classes: int) -> np.ndarray:
        """Kernel ridge on landmarks, cross-fitted, then a logistic curve.

        Each fold's normal equations are taken off the sum of all, so that the folds cost one pass; the ridge is the
        one with the smallest held-out error, which follows from the same sums.
        """
        n, size, folds = len(codes), len(self.marks) + 1, int(self.fold.max()) + 1
        unit = np.eye(n_classes)
        grams, sides = np.zeros((folds, size, size)), np.zeros((folds, size, n_classes))
        for block in self._blocks(size):
            features = self._features(block)
            for k in range(folds):
                mine = self.fold[block] == k
                grams[k] += features[mine].T @ features[mine]
                sides[k] += features[mine].T @ unit[codes[block][mine]]
        penalty = np.zeros((size, size))
        penalty[:-1, :-1] = np.exp(-self.rows.distances(self.marks, self.marks))
        penalty += 1e-6 * np.eye(size)
        left = (grams.sum(axis=0) - grams)[:, None] + np.array(_RIDGES)[:, None, None] * penalty
        right = np.repeat((sides.sum(axis=0) - sides)[:, None], len(_RIDGES), axis=1)
        models = np.linalg.solve(left, right)  # (folds, ridges, size, n_classes)
        # held-out sum of squares, up to that of the labels themselves
        error = (models * (grams[:, None] @ models - 2 * sides[:, None])).sum(axis=(0, 2, 3))
        models = models[:, int(np.argmin(error))]
        values = np.empty((n, n_classes))
        for block in self._blocks(size):
            features = self._features(block)
            for k in range(folds):
                mine = np.flatnonzero(self.fold[block] == k)
                values[block.start + mine] = features[mine] @ models[k]
        return _calibrated(values, codes)

    def _blocks(self, width: int) -> list[slice]:
        return _blocks(len(self.fold), width, self.rows.at_a_time)

    def _features(self, block: slice) -> np.ndarray:
        kernel = np.exp(-self.rows.distances(block, self.marks))
        return np.column_stack([kernel, np.ones(len(kernel))])


def appoint_judges(rows: Rows, rng: np.random.Generator) -> Judges:
    """Judges for `rows`: random landmarks and folds, and every row's nearest others."""
    n = len(rows)
    marks = rng.choice(n, min(_LANDMARKS, n), replace=False)
    fold = rng.permutation(n) % min(_FOLDS, n)
    size = _REFERENCES if n <= _MANY else _REFERENCES // 5
    chosen = np.arange(n) if n <= size else rng.choice(n, size, replace=False)
    k = min(_NEIGHBOURS, len(chosen) - 1)
    search = NearestNeighbors(n_neighbors=k + 1).fit(rows.values[chosen])
    near = np.empty((n, k), dtype=np.int32)
    for block in _blocks(n, len(chosen), rows.at_a_time):
        found = chosen[search.kneighbors(rows.values[block], return_distance=False)]
        other = found != np.arange(block.start, block.stop)[:, None]
        other[other.all(axis=1), -1] = False  # a row that is not among the references drops its farthest
        near[block] = found[other].reshape(-1, k)
    return Judges(rows, marks, fold, near)


def suspicion(proba: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Log-odds against each row's label, (n,), cut off where held-out predictions are not to be believed."""
    own = np.clip(proba[np.arange(len(codes)), codes], 1e-9, 1 - 1e-9)
    return np.clip(np.log1p(-own) - np.log(own), -_LIMIT, _LIMIT)


def _blocks(n: int, width: int, at_a_time: int) -> list[slice]:
    step = max(1, min(_BLOCK, at_a_time) // width)
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def _calibrated(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Probabilities from held-out scores (n, M), by multinomial logistic regression on the labels."""
    n, M = values.shape
    some: Any = slice(None, None, max(1, n // _REFERENCES))
    if len(np.unique(codes[some])) < 2:
        return np.bincount(codes, minlength=M)[None, :] * np.ones((n, 1)) / n
    use = values if M > 2 else values[:, 1:] - 0.5
    model = LogisticRegression(C=10.0, max_iter=500).fit(use[some], codes[some])
    proba = np.full((n, M), 1e-6)
    proba[:, model.classes_] = model.predict_proba(use)
    return proba / proba.sum(axis=1, keepdims=True)
