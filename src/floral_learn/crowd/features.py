"""What the items' features say about their classes: a classifier that never judges an item it learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import log_softmax

from floral_learn.base.validation import LARGEST, check_scale

from .readings import FOLDS

PENALTY = 10.0  # chosen on LabelMe and simulated crowds over digits, wine and breast cancer
MOST_ROWS = 10_000  # for speed: a model of this size learns nothing more from further rows


def encode_items(X: Any, rng: np.random.Generator) -> np.ndarray:
    """The items in their main directions, all columns together of variance 1 on average: one penalty for all data."""
    from sklearn.pipeline import make_pipeline

    if sp.issparse(X) and X.shape[1] == 1:
        raise ValueError("X is a sparse matrix of one column: give X.toarray()")
    # scikit-learn's MaxAbsScaler takes columns below this for empty ones
    smallest = 10 * np.finfo(float).eps
    check_scale(X, 1 / smallest if sp.issparse(X) else LARGEST)
    steps = linear_steps(X.shape, sp.issparse(X), int(rng.integers(2**31 - 1)))
    with np.errstate(invalid="ignore"):  # sparse rows of zeros have no variance to explain
        Z = np.ascontiguousarray(make_pipeline(*steps).fit_transform(X), dtype=np.float64)
    return Z / max(float(np.sqrt(Z.var(axis=0).mean())), 1e-12)


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


@dataclass(frozen=True)
class OutOfFold:
    """log p(class | x) for all items, each from a model that has not seen the item's own votes."""

    Z: np.ndarray
    fold: np.ndarray  # (n,)
    rng: np.random.Generator

    @classmethod
    def split(cls, Z: np.ndarray, rng: np.random.Generator) -> OutOfFold:
        """Deal the items into folds."""
        return cls(Z, rng.permutation(len(Z)) % min(FOLDS, len(Z)), rng)

    def log_probability(self, target: np.ndarray) -> np.ndarray:
        """Fit on soft labels `target` (n, K); rows of zeros are not learned from."""
        out, W = np.zeros_like(target), None
        told = target.sum(axis=1) > 0
        for fold in range(int(self.fold.max()) + 1):
            rows = np.flatnonzero((self.fold != fold) & told)
            if len(rows) > MOST_ROWS:
                rows = self.rng.choice(rows, MOST_ROWS, replace=False)
            if not len(rows):
                rows = np.flatnonzero(told)
            W = softmax_regression(self.Z[rows], target[rows], PENALTY, W)
            mine = self.fold == fold
            out[mine] = log_softmax(self.Z[mine] @ W[:-1] + W[-1], axis=1)
        return np.maximum(out, -20.0)
