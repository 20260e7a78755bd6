"""Rows in the scale in which labels are judged (squared distances on demand, never n x n), and their nearest others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

MOST_VALUES = 4_000_000  # numbers held at a time, 32 MB: more are not faster

Block = tuple[slice, np.ndarray, np.ndarray]


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
    """Return `X` (n, d), checked already, as `Rows`: columns standardised and cut at five deviations.

    Missing values stand at their column's mean. Sparse rows are only multiplied by one power of two, which brings their
    root mean square norm near 1, that of tf-idf: linear models and forests depend on the scale of what they see.
    """
    if sparse.issparse(X):
        X = X.tocsr().astype(np.float64)
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        if squares.any():
            unit = 2.0 ** -np.round(np.log2(squares.mean()) / 2)
            X, squares = X * unit, squares * unit**2
        variance = float(squares.sum() / np.prod(X.shape) - X.mean() ** 2)
        return Rows(X, squares, 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0, at_a_time)
    X, spread = _centred(X, at_a_time)
    X /= np.where(spread > 0, spread, 1.0).astype(X.dtype)
    np.clip(X, -5, 5, out=X)  # beyond five deviations a value is just far out
    return _as_rows(X, at_a_time)


def evenly_scaled_rows(X: Any, at_a_time: int = MOST_VALUES) -> Rows:
    """Return dense `X` (n, d) as `Rows`, all columns centred and divided by the same number."""
    X, spread = _centred(X, at_a_time)
    scale = np.sqrt(np.mean(spread**2))
    X /= X.dtype.type(scale if scale > 0 else 1.0)
    return _as_rows(X, at_a_time)


def _centred(X: Any, at_a_time: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a copy of `X` with its columns centred, and their standard deviations."""
    single = X.size > MOST_VALUES
    # by a power of two, so that float32 holds rows of any scale
    if single and X.dtype == np.float64:
        _, exponent = np.frexp(max(np.fmax.reduce(X, axis=None), -np.fmin.reduce(X, axis=None)))
        X = np.ldexp(X, -exponent)
    X = np.array(X, dtype=np.float32 if single else np.float64, order="C")
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


def nearest_others(X: Any, k: int, *, among: np.ndarray | None = None) -> Iterator[Block]:
    """Yield (rows, indices (b, k), distances (b, k)) over blocks of rows; a row is never its own neighbour.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Rows.
    k : int
        Neighbours per row; at most one less than the rows that may be neighbours.
    among : int ndarray, optional
        The rows that may be neighbours; all by default. Indices are row numbers of `X` in either case.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.labels.rows import nearest_others
    >>> [indices.tolist() for _, indices, _ in nearest_others(np.array([[0.0], [1.0], [1.5]]), 1)]
    [[[1], [2], [1]]]
    """
    n = X.shape[0]
    some = np.arange(n) if among is None else among
    k = min(k, len(some) - 1)
    # from eight columns on a tree is slower than all pairs
    algorithm = "auto" if X.shape[1] < 8 else "brute"
    search = NearestNeighbors(n_neighbors=k + 1, algorithm=algorithm).fit(X[some])
    size = max(1, MOST_VALUES // (k + 1))
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        distances, found = search.kneighbors(X[rows])
        indices = some[found]
        other = indices != np.arange(rows.start, rows.stop)[:, None]
        # A row that may not be a neighbour, or is lost among its duplicates, drops the farthest instead of itself.
        other[other.all(axis=1), -1] = False
        shape = (rows.stop - rows.start, k)
        yield rows, indices[other].reshape(shape), distances[other].reshape(shape)


def nearest_rows(X: Any, k: int, *, among: np.ndarray | None = None) -> np.ndarray:
    """Return the row numbers of the k nearest other rows, nearest first, (n, k)."""
    return np.concatenate([indices for _, indices, _ in nearest_others(X, k, among=among)])


def label_votes(near: np.ndarray, codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Count the labels among the neighbours of each row, (n, n_classes)."""
    votes = np.empty((len(near), n_classes))
    size = max(1, MOST_VALUES // max(1, near.shape[1]))
    for start in range(0, len(near), size):
        block = near[start : start + size]
        place = codes[block] + n_classes * np.arange(len(block))[:, None]
        counts = np.bincount(place.ravel(), minlength=len(block) * n_classes)
        votes[start : start + size] = counts.reshape(len(block), n_classes)
    return votes
