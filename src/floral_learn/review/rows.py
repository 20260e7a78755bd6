"""Rows in the scale in which the review compares them: squared distances on demand, never n x n."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from floral_learn.review.memory import MOST_VALUES

_SMALL = 2_000_000  # numbers up to which float64 costs nothing worth saving
_TAIL = 5.0  # standard deviations beyond which a value says no more than "far out"


@dataclass(frozen=True)
class Rows:
    """The rows as the review measures them: (n, d) dense, or CSR, with their squared norms and the width's inverse.

    Parameters
    ----------
    values : ndarray or CSR matrix of shape (n, d)
        Columns standardised and cut off at five standard deviations, or all scaled alike, where dense; as given where
        sparse.
    squares : ndarray of shape (n,)
        Squared norms.
    gamma : float
        1 / (d Var), the ``gamma="scale"`` of these values.
    at_a_time : int
        Kernel values that may be held at a time.
    """

    values: Any
    squares: np.ndarray
    gamma: float
    at_a_time: int = MOST_VALUES

    def __len__(self) -> int:
        return self.values.shape[0]

    def distances(self, left: np.ndarray | slice, right: np.ndarray | slice) -> np.ndarray:
        """Squared distances times gamma between two sets of rows, (len(left), len(right)) in float64."""
        product = self.values[left] @ self.values[right].T
        product = product.toarray() if sparse.issparse(product) else product
        far = self.squares[left][:, None] + self.squares[right][None, :] - 2.0 * product.astype(np.float64)
        return self.gamma * np.maximum(far, 0.0)


def bytes_per_row(X: Any) -> float:
    """What a row takes, measured: a copy of it in the precision that `measured_rows` keeps."""
    if sparse.issparse(X):
        return 28.0 * X.nnz / X.shape[0]  # values and column numbers, and the squares while they are summed
    return X.shape[1] * float(_precision(X)().itemsize)


def measured_rows(X: Any, at_a_time: int = MOST_VALUES) -> Rows:
    """`X` (n, d), dense or CSR, checked already, as `Rows`."""
    if sparse.issparse(X):
        X = X.tocsr().astype(np.float64)
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        variance = float(squares.sum() / np.prod(X.shape) - X.mean() ** 2)
        return Rows(X, squares, 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0, at_a_time)
    X, spread = _centred(X, at_a_time)
    X /= np.where(spread > 0, spread, 1.0).astype(X.dtype)
    np.clip(X, -_TAIL, _TAIL, out=X)
    return _as_rows(X, at_a_time)


def alike_rows(X: Any, at_a_time: int = MOST_VALUES) -> Rows:
    """Dense `X` (n, d) as `Rows`, all columns centred and divided by the same number."""
    X, spread = _centred(X, at_a_time)
    scale = np.sqrt(np.mean(spread**2))
    X /= X.dtype.type(scale if scale > 0 else 1.0)
    return _as_rows(X, at_a_time)


def _centred(X: Any, at_a_time: int) -> tuple[np.ndarray, np.ndarray]:
    """A copy of `X` with its columns centred, and their standard deviations."""
    X = np.array(X, dtype=_precision(X), order="C")
    X -= X.mean(axis=0, dtype=np.float64).astype(X.dtype)
    step = max(1, at_a_time // X.shape[1])
    parts = [slice(start, start + step) for start in range(0, len(X), step)]
    return X, np.sqrt(sum((X[part].astype(np.float64) ** 2).sum(axis=0) for part in parts) / len(X))


def _as_rows(X: np.ndarray, at_a_time: int) -> Rows:
    squares = np.einsum("ij,ij->i", X, X).astype(np.float64)
    variance = float(squares.sum() / X.size - X.mean(dtype=np.float64) ** 2)
    return Rows(X, squares, 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0, at_a_time)


def _precision(X: Any) -> type[np.floating]:
    return np.float64 if X.size <= _SMALL else np.float32
