"""Held-out class probabilities of rows under any labels: a kernel model and the nearest rows, judged together.

What does not depend on the labels (landmarks, folds, neighbours) is prepared once, so that other labels of the same
rows are judged at the cost of one pass over them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from floral_learn.labels.calibration import calibrate
from floral_learn.labels.neighbours import label_votes, nearest_rows
from floral_learn.labels.rows import Rows

_RIDGES = (0.01, 0.1, 1.0, 10.0)
_REFERENCES = 10_000  # rows among which neighbours are sought, and on which probabilities are calibrated
_MANY = 50_000  # above this many rows, a fifth of the references


@dataclass(frozen=True)
class JudgeSettings:
    """The numbers by which rows are judged."""

    folds: int = 5
    landmarks: int = 200
    width: float = 1.0  # times gamma="scale"
    neighbours: int = 15
    logistic: bool = True  # calibrate by logistic regression on all scores instead of one temperature


#: What `LabelReview` uses.
REVIEW = JudgeSettings()


@dataclass(frozen=True)
class Judges:
    """Two judges of any labels of the same rows, prepared by `prepare_judges`.

    Attributes
    ----------
    rows : Rows
    landmarks : int ndarray
        Landmark rows of the kernel model.
    fold : int ndarray of shape (n,)
        Each row is judged by a model that did not see its fold.
    near : int ndarray of shape (n, k)
        Each row's nearest other rows.
    settings : JudgeSettings
    """

    rows: Rows
    landmarks: np.ndarray
    fold: np.ndarray
    near: np.ndarray
    settings: JudgeSettings = REVIEW

    def probabilities(self, codes: np.ndarray, n_classes: int) -> np.ndarray:
        """Held-out probabilities of the classes, (n, n_classes): no row's own label enters its entry."""
        return 0.5 * (self._by_kernel(codes, n_classes) + self._by_neighbours(codes, n_classes))

    def _by_neighbours(self, codes: np.ndarray, n_classes: int) -> np.ndarray:
        """Shares of the classes among the nearest rows, with one vote spread by the classes' frequencies."""
        votes = label_votes(self.near, codes, n_classes) + np.bincount(codes, minlength=n_classes) / len(codes)
        return votes / (self.near.shape[1] + 1)

    def _by_kernel(self, codes: np.ndarray, n_classes: int) -> np.ndarray:
        """Kernel ridge regression on landmarks, cross-fitted, then calibrated.

        Each fold's normal equations are taken off the sum of all, so that the folds cost one pass; the ridge is the
        one with the smallest held-out error, which follows from the same sums.
        """
        n, size, folds = len(codes), len(self.landmarks) + 1, int(self.fold.max()) + 1
        unit = np.eye(n_classes)
        grams, sides = np.zeros((folds, size, size)), np.zeros((folds, size, n_classes))
        for block in self.rows.blocks(size):
            features = self._features(block)
            for k in range(folds):
                mine = self.fold[block] == k
                grams[k] += features[mine].T @ features[mine]
                sides[k] += features[mine].T @ unit[codes[block][mine]]
        penalty = np.zeros((size, size))
        penalty[:-1, :-1] = np.exp(-self.settings.width * self.rows.distances(self.landmarks, self.landmarks))
        penalty += 1e-6 * np.eye(size)
        left = (grams.sum(axis=0) - grams)[:, None] + np.array(_RIDGES)[:, None, None] * penalty
        right = np.repeat((sides.sum(axis=0) - sides)[:, None], len(_RIDGES), axis=1)
        models = np.linalg.solve(left, right)  # (folds, ridges, size, n_classes)
        # held-out sum of squares, up to that of the labels themselves
        error = (models * (grams[:, None] @ models - 2 * sides[:, None])).sum(axis=(0, 2, 3))
        models = models[:, int(np.argmin(error))]
        values = np.empty((n, n_classes))
        for block in self.rows.blocks(size):
            features = self._features(block)
            for k in range(folds):
                mine = np.flatnonzero(self.fold[block] == k)
                values[block.start + mine] = features[mine] @ models[k]
        return _logistic(values, codes) if self.settings.logistic else calibrate(values, codes)

    def _features(self, block: slice) -> np.ndarray:
        kernel = np.exp(-self.settings.width * self.rows.distances(block, self.landmarks))
        return np.column_stack([kernel, np.ones(len(kernel))])


def prepare_judges(rows: Rows, rng: np.random.Generator, settings: JudgeSettings = REVIEW) -> Judges:
    """Draw landmarks and folds at random, and find every row's nearest others.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.labels.judges import prepare_judges
    >>> from floral_learn.labels.rows import standardised_rows
    >>> X, y = make_moons(100, noise=0.1, random_state=0)
    >>> found = prepare_judges(standardised_rows(X), np.random.default_rng(0)).probabilities(y, 2)
    >>> bool((found.argmax(axis=1) == y).mean() > 0.95)
    True
    """
    n = len(rows)
    landmarks = rng.choice(n, min(settings.landmarks, n), replace=False)
    fold = rng.permutation(n) % min(settings.folds, n)
    size = _REFERENCES if n <= _MANY else _REFERENCES // 5
    among = None if n <= size else rng.choice(n, size, replace=False)
    near = nearest_rows(rows.values, settings.neighbours, among=among).astype(np.int32)
    return Judges(rows, landmarks, fold, near, settings)


def log_odds_against(probability: np.ndarray, codes: np.ndarray, limit: float = 4.0) -> np.ndarray:
    """Log-odds against each row's label, (n,), cut off where held-out predictions are not to be believed."""
    own = np.clip(probability[np.arange(len(codes)), codes], 1e-9, 1 - 1e-9)
    return np.clip(np.log1p(-own) - np.log(own), -limit, limit)


def _logistic(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
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
