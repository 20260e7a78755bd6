"""What the items' features say about their classes: a classifier that never judges an item it learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from floral_learn.base.validation import LARGEST, check_scale

from .readings import FOLDS

PENALTY = 10.0  # chosen on LabelMe and simulated crowds over digits, wine and breast cancer
MOST_ROWS = 10_000  # for speed: a model of this size learns nothing more from further rows


def encode_items(X: Any, rng: np.random.Generator, landmarks: int = 150) -> list[np.ndarray]:
    """Return the candidate representations of the items: linear, and smooth where there are enough items."""
    from sklearn.pipeline import make_pipeline

    if sp.issparse(X) and X.shape[1] == 1:
        raise ValueError("X is a sparse matrix of one column: give X.toarray()")
    smallest = 10 * np.finfo(float).eps  # scikit-learn's MaxAbsScaler takes columns below this for empty ones
    check_scale(X, 1 / smallest if sp.issparse(X) else LARGEST)
    seed = int(rng.integers(2**31 - 1))
    with np.errstate(invalid="ignore"):  # sparse rows of zeros have no variance to explain
        Z = make_pipeline(*linear_steps(X.shape, sp.issparse(X), seed)).fit_transform(X)
    Z = np.ascontiguousarray(Z, dtype=np.float64)
    Z /= max(float(np.sqrt(Z.var(axis=0).mean())), 1e-12)  # one penalty for all data: columns of variance 1 on average
    return [Z, _smooth(Z, seed)] if len(Z) > landmarks else [Z]


def linear_steps(shape: tuple[int, ...], sparse: bool, seed: int, most: int = 50) -> list[Any]:
    """Scale the columns, then keep the main directions where there are many."""
    from sklearn.decomposition import PCA, TruncatedSVD
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    n, d = shape
    keep = min(most, n - 1, d - 1)
    if sparse:
        return [MaxAbsScaler(), TruncatedSVD(max(keep, 1), random_state=seed)]
    if d <= most or n < 3:
        return [StandardScaler()]
    return [StandardScaler(), PCA(keep, random_state=seed)]


def smooth_step(Z: np.ndarray, seed: int, landmarks: int = 150) -> Any:
    """An rbf kernel through landmarks; its width is that of gamma="scale"."""
    from sklearn.kernel_approximation import Nystroem

    gamma = 1.0 / (Z.shape[1] * max(float(Z.var()), 1e-12))
    return Nystroem(gamma=gamma, n_components=min(landmarks, len(Z) // 2), random_state=seed)


def _smooth(Z: np.ndarray, seed: int) -> np.ndarray:
    some = Z[np.random.default_rng(seed).permutation(len(Z))[:MOST_ROWS]]
    made = smooth_step(some, seed).fit(some).transform(Z)
    return np.ascontiguousarray(made * np.sqrt(made.shape[1]))


def softmax_regression(
    Z: np.ndarray, target: np.ndarray, penalty: float, start: np.ndarray | None = None, iterations: int = 60
) -> np.ndarray:
    """Weights W (d + 1, K) that minimise the cross-entropy of soft targets plus penalty / 2 * |W|^2 (bias is free).

    scikit-learn's logistic regression takes one label per row; repeating rows for soft labels costs several times as
    much and would be paid in every round.
    """
    n, d = Z.shape
    k = target.shape[1]
    total = target.sum(axis=1)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        W = flat.reshape(d + 1, k)
        score = log_softmax(Z @ W[:d] + W[d], axis=1)
        residual = np.exp(score) * total[:, None] - target
        gradient = np.empty_like(W)
        gradient[:d] = Z.T @ residual + penalty * W[:d]
        gradient[d] = residual.sum(axis=0)
        value = -float((target * score).sum()) + 0.5 * penalty * float((W[:d] ** 2).sum())
        return value / n, gradient.ravel() / n

    first = np.zeros((d + 1, k)) if start is None else start
    found = minimize(loss, first.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": iterations, "ftol": 1e-6})
    return found.x.reshape(d + 1, k)


@dataclass
class OutOfFold:
    """log p(class | x) for all items, each from a model that has not seen the item's own votes."""

    views: list[np.ndarray]
    fold: np.ndarray  # (n,)
    rng: np.random.Generator
    chosen: int | None = None  # which view

    @classmethod
    def split(cls, views: list[np.ndarray], rng: np.random.Generator) -> OutOfFold:
        """Deal the items into folds."""
        n = len(views[0])
        return cls(views, rng.permutation(n) % min(FOLDS, n), rng)

    def log_probability(self, target: np.ndarray, likelihood: np.ndarray | None = None) -> np.ndarray:
        """Fit on soft labels `target` (n, K); rows of zeros are not learned from.

        With `likelihood` (n, K), the log-likelihood of the votes given each class, the view under which the votes are
        most likely is chosen at the first call, and kept.
        """
        if self.chosen is None and len(self.views) > 1 and likelihood is not None:
            some = self.fold == 0 if len(target) > MOST_ROWS else np.ones(len(target), dtype=bool)
            folds = 1 if len(target) > MOST_ROWS else None
            found = [self._predict(Z, target, folds)[some] for Z in self.views]
            self.chosen = int(np.argmax([logsumexp(logp + likelihood[some], axis=1).sum() for logp in found]))
        return self._predict(self.views[self.chosen or 0], target)

    def _predict(self, Z: np.ndarray, target: np.ndarray, folds: int | None = None) -> np.ndarray:
        out = np.zeros_like(target)
        told = target.sum(axis=1) > 0
        W = None
        for fold in range(folds or int(self.fold.max()) + 1):
            rows = np.flatnonzero((self.fold != fold) & told)
            if len(rows) > MOST_ROWS:
                rows = self.rng.choice(rows, MOST_ROWS, replace=False)
            if not len(rows):
                rows = np.flatnonzero(told)
            W = softmax_regression(Z[rows], target[rows], PENALTY, W)
            mine = self.fold == fold
            out[mine] = log_softmax(Z[mine] @ W[:-1] + W[-1], axis=1)
        return np.maximum(out, -20.0)
