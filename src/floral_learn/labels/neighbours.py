"""The nearest other rows of every row, and what their labels say: one search for every room."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

_BLOCK_ENTRIES = 4_000_000  # indices and distances held at once: 64 MB
_TREES = 8  # columns from which a tree is slower than comparing all rows
_DEVICE: ContextVar[str | None] = ContextVar("neighbour_device", default=None)

Block = tuple[slice, np.ndarray, np.ndarray]


@contextmanager
def neighbours_on(device: str | None) -> Iterator[None]:
    """Search neighbours by brute force with torch on `device` inside, such as ``"cuda"``; None is scikit-learn."""
    token = _DEVICE.set(device)
    try:
        yield
    finally:
        _DEVICE.reset(token)


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
    >>> from floral_learn.labels.neighbours import nearest_others
    >>> [indices.tolist() for _, indices, _ in nearest_others(np.array([[0.0], [1.0], [1.5]]), 1)]
    [[[1], [2], [1]]]
    """
    n = X.shape[0]
    some = np.arange(n) if among is None else among
    k = min(k, len(some) - 1)
    if _DEVICE.get() is not None and among is None:
        yield from _torch_blocks(X, k, str(_DEVICE.get()))
        return
    algorithm = "auto" if X.shape[1] < _TREES else "brute"
    search = NearestNeighbors(n_neighbors=k + 1, algorithm=algorithm).fit(X[some])
    size = max(1, _BLOCK_ENTRIES // (k + 1))
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
    size = max(1, _BLOCK_ENTRIES // max(1, near.shape[1]))
    for start in range(0, len(near), size):
        block = near[start : start + size]
        place = codes[block] + n_classes * np.arange(len(block))[:, None]
        counts = np.bincount(place.ravel(), minlength=len(block) * n_classes)
        votes[start : start + size] = counts.reshape(len(block), n_classes)
    return votes


def _torch_blocks(X: np.ndarray, k: int, device: str) -> Iterator[Block]:
    """All distances of a block of rows at once, the smallest kept; float32, centred so that it loses little."""
    import torch

    rows_all = torch.as_tensor(X - X.mean(axis=0), dtype=torch.float32, device=device)
    squares = (rows_all**2).sum(1)
    size = max(1, min(_BLOCK_ENTRIES // (k + 1), 40_000_000 // len(X)))
    for start in range(0, len(X), size):
        rows = slice(start, min(start + size, len(X)))
        far = squares[rows, None] + squares - 2 * rows_all[rows] @ rows_all.T
        far[torch.arange(rows.stop - start), torch.arange(start, rows.stop)] = torch.inf
        found = torch.topk(far, k, dim=1, largest=False)
        distances = found.values.clamp(min=0).sqrt().double()
        yield rows, found.indices.cpu().numpy(), distances.cpu().numpy()
