"""Rows in the scale in which the review compares them: squared distances on demand, never n x n."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

_SMALL = 2_000_000  # numbers up to which float64 costs nothing worth saving
_TAIL = 5.0  # standard deviations beyond which a value says no more than "far out"


@dataclass(frozen=True)
class Rows:
    """The rows as the review measures them: (n, d) dense, or CSR, with their squared norms and the width's inverse.

    Parameters
    ----------
    values : ndarray or CSR matrix of shape (n, d)
        Columns standardised and cut off at five standard deviations where dense; as given where sparse.
    squares : ndarray of shape (n,)
        Squared norms.
    gamma : float
        1 / (d Var), the ``gamma="scale"`` of these values.
    """

    values: Any
    squares: np.ndarray
    gamma: float

    def __len__(self) -> int:
        return self.values.shape[0]

    def distances(self, left: np.ndarray | slice, right: np.ndarray | slice) -> np.ndarray:
        """Squared distances times gamma between two sets of rows, (len(left), len(right)) in float64."""
        product = self.values[left] @ self.values[right].T
        product = product.toarray() if sparse.issparse(product) else product
        far = self.squares[left][:, None] + self.squares[right][None, :] - 2.0 * product.astype(np.float64)
        return self.gamma * np.maximum(far, 0.0)


def measured_rows(X: Any) -> Rows:
    """`X` (n, d), dense or CSR, checked already, as `Rows`."""
    if sparse.issparse(X):
        X = X.tocsr().astype(np.float64)
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        variance = float(X.multiply(X).mean() - X.mean() ** 2)
        return Rows(X, squares, 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0)
    X = np.asarray(X)
    X = X.astype(np.float64 if X.size <= _SMALL else np.float32)
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0).astype(X.dtype)
    np.clip(X, -_TAIL, _TAIL, out=X)
    variance = float(X.var())
    squares = np.einsum("ij,ij->i", X, X).astype(np.float64)
    return Rows(X, squares, 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0)
