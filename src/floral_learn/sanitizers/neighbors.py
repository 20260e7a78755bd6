"""The k nearest other rows of every row, block by block, so that memory does not grow with n * k."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

_BLOCK_ENTRIES = 4_000_000  # indices and distances held at once: 64 MB
_DEVICE: ContextVar[str | None] = ContextVar("neighbor_device", default=None)


@contextmanager
def neighbors_on(device: str | None) -> Iterator[None]:
    """Search neighbours by brute force with torch on `device` inside, such as ``"cuda"``; None is scikit-learn."""
    token = _DEVICE.set(device)
    try:
        yield
    finally:
        _DEVICE.reset(token)


def neighbor_blocks(
    X: NDArray[np.float64], n_neighbors: int, metric: str = "minkowski"
) -> Iterator[tuple[slice, NDArray[np.intp], NDArray[np.float64]]]:
    """Yield (rows, indices (b, k), distances (b, k)) over blocks of rows; a row is never its own neighbour.

    ``k = min(n_neighbors, n - 1)``. The distance matrix itself is tiled inside scikit-learn.
    """
    n = len(X)
    k = min(n_neighbors, n - 1)
    if _DEVICE.get() is not None and metric == "minkowski":
        yield from _torch_blocks(X, k, str(_DEVICE.get()))
        return
    search = NearestNeighbors(n_neighbors=k + 1, metric=metric).fit(X)
    size = max(1, _BLOCK_ENTRIES // (k + 1))
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        distances, indices = search.kneighbors(X[rows])
        indices, distances = _without_self(indices, distances, np.arange(rows.start, rows.stop))
        yield rows, indices, distances


def _without_self(
    indices: NDArray[np.intp], distances: NDArray[np.float64], rows: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    keep = indices != rows[:, None]
    # Among many duplicates a row may be missing from its own list: then the farthest entry goes.
    keep[keep.all(axis=1), -1] = False
    shape = (len(rows), indices.shape[1] - 1)
    return indices[keep].reshape(shape), distances[keep].reshape(shape)


def _torch_blocks(
    X: NDArray[np.float64], k: int, device: str
) -> Iterator[tuple[slice, NDArray[np.intp], NDArray[np.float64]]]:
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
