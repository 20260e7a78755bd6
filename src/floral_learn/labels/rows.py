"""Rows in the scale in which labels are judged: squared distances on demand, never n x n."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

MOST_VALUES = 4_000_000  # kernel values held at a time; more are not faster
_SMALL = 2_000_000  # numbers up to which float64 costs nothing worth saving
_TAIL = 5.0  # standard deviations beyond which a value says no more than "far out"


@dataclass(frozen=True)
class Rows:
    """Rows (n, d), dense or CSR, with their squared norms and the inverse width of an rbf kernel.

    Attributes
    ----------
    values : ndarray or CSR matrix of shape (n, d)
        The rows in the scale in which they are compared.
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

    def blocks(self, width: int) -> list[slice]:
        """Slices of rows such that `width` values for each of them fit into what may be held at a time."""
        n, step = len(self), max(1, self.at_a_time // 2 // width)
        return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def standardised_rows(X: Any, at_a_time: int = MOST_VALUES) -> Rows:
    """Return `X` (n, d), checked already, as `Rows`: columns standardised and cut at five deviations; sparse as given.

    Missing values stand at their column's mean.
    """
    if sparse.issparse(X):
        X = X.tocsr().astype(np.float64)
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        variance = float(squares.sum() / np.prod(X.shape) - X.mean() ** 2)
        return Rows(X, squares, 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0, at_a_time)
    X, spread = _centred(X, at_a_time)
    X /= np.where(spread > 0, spread, 1.0).astype(X.dtype)
    np.clip(X, -_TAIL, _TAIL, out=X)
    return _as_rows(X, at_a_time)


def evenly_scaled_rows(X: Any, at_a_time: int = MOST_VALUES) -> Rows:
    """Return dense `X` (n, d) as `Rows`, all columns centred and divided by the same number."""
    X, spread = _centred(X, at_a_time)
    scale = np.sqrt(np.mean(spread**2))
    X /= X.dtype.type(scale if scale > 0 else 1.0)
    return _as_rows(X, at_a_time)


def _centred(X: Any, at_a_time: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a copy of `X` with its columns centred, and their standard deviations."""
    X = np.array(X, dtype=np.float64 if X.size <= _SMALL else np.float32, order="C")
    if missing := bool(np.isnan(X.sum())):
        X -= np.nan_to_num(np.nanmean(X, axis=0, dtype=np.float64)).astype(X.dtype)
        np.nan_to_num(X, copy=False, nan=0.0)
    if not missing:
        X -= X.mean(axis=0, dtype=np.float64).astype(X.dtype)
    step = max(1, at_a_time // X.shape[1])
    parts = [slice(start, start + step) for start in range(0, len(X), step)]
    return X, np.sqrt(sum((X[part].astype(np.float64) ** 2).sum(axis=0) for part in parts) / len(X))


def _as_rows(X: np.ndarray, at_a_time: int) -> Rows:
    squares = np.einsum("ij,ij->i", X, X).astype(np.float64)
    variance = float(squares.sum() / X.size - X.mean(dtype=np.float64) ** 2)
    return Rows(X, squares, 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0, at_a_time)
