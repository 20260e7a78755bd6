"""RSRNN: a few labelled centroids that learn while samples judged to be flipped are left out.

Tavallali, Behzadan, Tavallali and Singhal, "Adversarial Poisoning Attacks and Defense for General
Multi-Class Models Based On Synthetic Reduced Nearest Neighbors", 2022. Only the abstract of that paper was
at hand, so this is a reading of it. Over centroids c_j with labels l_j, a(i) the centroid nearest to x_i:

    min  1/n sum_i 1[y_i != l_a(i)]
         + penalty / (n V) sum_{i: y_i = l_a(i)} |x_i - c_a(i)|^2  +  complexity * K

with V the total variance of the features, so that ``penalty`` has no unit.
"""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.metrics import euclidean_distances
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from floral_learn.base.estimator import Estimator, query_input, training_input, whole_fit


@dataclass(frozen=True)
class _Fit:
    """One iterate: centroids (K, d), their class codes (K,), who is judged flipped (n,), the objective."""

    centroids: np.ndarray
    labels: np.ndarray
    flipped: np.ndarray
    objective: float


class RSRNNClassifier(ClassifierMixin, Estimator):
    """Nearest labelled centroid, with flipped-looking samples excluded while the centroids move.

    Each round assigns every row to its nearest centroid, gives the centroid the majority label of its rows,
    judges rows of another label as flipped, moves the centroid to the mean of the remaining rows, and
    drops centroids that do not earn their ``complexity``. The best round by the objective is kept.
    ``fit`` takes no ``sample_weight``: the majority that judges a row counts rows.

    Parameters
    ----------
    n_centroids : int, default=10
        K at the start, shared evenly among the classes (at least one each).
    penalty : float, default=0.1
        lambda: weight of the squared distance to the centroid.
    complexity : float, default=0.01
        alpha: cost of one centroid.
    max_iter : int
        Rounds at most.
    random_state : int, Generator-like or None
        k-means within each class, where the centroids start.

    Attributes
    ----------
    classes_ : ndarray of shape (M,)
        The labels.
    centroids_, centroid_labels_ : ndarray of shape (K, d) and (K,)
        The model.
    flipped_ : bool ndarray of shape (n,)
        Training rows judged to be flipped.
    history_ : list of float
        Objective of every round; ``objective_`` is the smallest.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.paper import RSRNNClassifier
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> clf = RSRNNClassifier(random_state=0).fit(X, y)
    >>> bool(clf.score(X, y) > 0.9), len(clf.centroids_) <= 10
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_centroids": [Interval(Integral, 1, None, closed="left")],
        "penalty": [Interval(Real, 0.0, None, closed="left")],
        "complexity": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        n_centroids: int = 10,
        penalty: float = 0.1,
        complexity: float = 0.01,
        max_iter: int = 50,
        random_state: Any = None,
    ) -> None:
        self.n_centroids = n_centroids
        self.penalty = penalty
        self.complexity = complexity
        self.max_iter = max_iter
        self.random_state = random_state

    @whole_fit
    def fit(self, X: Any, y: Any) -> Self:
        """Train on rows X (n, d) and labels y (n,)."""
        self._validate_params()
        X, codes, _ = training_input(self, X, y)
        n_classes = len(self.classes_)
        variance = X.var(axis=0).sum()
        scale = self.penalty / (variance if variance > 0 else 1.0)
        rng = check_random_state(self.random_state)
        centroids, labels = _start(X, codes, n_classes, self.n_centroids, rng)
        best = None
        self.history_: list[float] = []
        for _ in range(self.max_iter):
            squared = euclidean_distances(X, centroids, squared=True)
            keep = _prune(squared, codes, labels, scale, self.complexity)
            centroids, labels, squared = centroids[keep], labels[keep], squared[:, keep]
            nearest = squared.argmin(axis=1)
            labels = _majority_labels(nearest, codes, labels, n_classes)
            flipped = codes != labels[nearest]
            objective = _objective(squared, codes, labels, scale, self.complexity)
            self.history_.append(objective)
            if best is None or objective < best.objective - 1e-12:
                best = _Fit(centroids, labels, flipped, objective)
            moved = _move(X, centroids, nearest, ~flipped)
            if np.allclose(moved, centroids, rtol=0, atol=1e-12):
                break
            centroids = moved
        assert best is not None
        self.n_iter_ = len(self.history_)
        self.centroids_, self.centroid_labels_ = best.centroids, self.classes_[best.labels]
        self.flipped_, self.objective_ = best.flipped, best.objective
        self._codes = best.labels
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Minus the distance to each class's nearest centroid (m, M); two classes: the difference (m,)."""
        check_is_fitted(self)
        distances = euclidean_distances(query_input(self, X), self.centroids_)
        scores = np.stack(
            [-distances[:, self._codes == code].min(axis=1) for code in range(len(self.classes_))], axis=1
        )
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Label of the nearest centroid."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]


def _start(
    X: np.ndarray,
    codes: np.ndarray,
    n_classes: int,
    n_centroids: int,
    rng: np.random.RandomState,
) -> tuple[np.ndarray, np.ndarray]:
    """k-means within every class; the n_centroids are shared evenly, the first classes get the remainder."""
    centroids, labels = [], []
    for code in range(n_classes):
        rows = X[codes == code]
        share = n_centroids // n_classes + (code < n_centroids % n_classes)
        # equal rows cannot be split among several centroids
        k = min(max(1, share), len(np.unique(rows, axis=0)))
        centroids.append(KMeans(k, n_init=1, random_state=rng).fit(rows).cluster_centers_)
        labels += [code] * k
    return np.vstack(centroids), np.array(labels)


def _majority_labels(nearest: np.ndarray, codes: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Majority class (K,) of each centroid's rows; ties and empty centroids keep their label.

    A class that would own no centroid keeps the one where its share is largest.
    """
    k = len(labels)
    counts = np.bincount(nearest * n_classes + codes, minlength=k * n_classes).reshape(k, n_classes)
    winner = counts.argmax(axis=1)
    own = counts[np.arange(k), labels] == counts.max(axis=1)
    new = np.where(own, labels, winner)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    for code in range(n_classes):
        if not (new == code).any():
            # Only a centroid whose present class has another one may change hands.
            spare = np.bincount(new, minlength=n_classes)[new] > 1
            new[np.argmax(np.where(spare, share[:, code], -1.0))] = code
    return new


def _objective(
    squared: np.ndarray,
    codes: np.ndarray,
    labels: np.ndarray,
    scale: float,
    complexity: float,
) -> float:
    nearest = squared.argmin(axis=1)
    agree = codes == labels[nearest]
    # rows of another label than their centroid count as errors, not as distance
    distortion = squared[np.arange(len(codes)), nearest] * agree
    return float((~agree).mean() + scale * distortion.mean() + complexity * len(labels))


def _prune(
    squared: np.ndarray,
    codes: np.ndarray,
    labels: np.ndarray,
    scale: float,
    complexity: float,
) -> np.ndarray:
    """Centroids to keep: drop the one whose loss lowers the objective most, until none does."""
    keep = np.arange(len(labels))
    current = _objective(squared, codes, labels, scale, complexity)
    while len(keep) > len(np.unique(labels)):
        trials = []
        for j in range(len(keep)):
            rest = np.delete(keep, j)
            last_of_class = labels[keep[j]] not in labels[rest]
            trials.append(
                np.inf if last_of_class else _objective(squared[:, rest], codes, labels[rest], scale, complexity)
            )
        if min(trials) >= current:
            break
        current = min(trials)
        keep = np.delete(keep, int(np.argmin(trials)))
    return keep


def _move(X: np.ndarray, centroids: np.ndarray, nearest: np.ndarray, kept: np.ndarray) -> np.ndarray:
    moved = centroids.copy()
    for j in range(len(centroids)):
        rows = X[(nearest == j) & kept]
        if len(rows):
            moved[j] = rows.mean(axis=0)
    return moved
