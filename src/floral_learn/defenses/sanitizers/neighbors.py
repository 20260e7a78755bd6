"""The k nearest other rows of every row, block by block, so that memory does not grow with n * k."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

_BLOCK_ENTRIES = 4_000_000  # indices and distances held at once: 64 MB


def neighbor_blocks(
    X: NDArray[np.float64], n_neighbors: int, metric: str = "minkowski"
) -> Iterator[tuple[slice, NDArray[np.intp], NDArray[np.float64]]]:
    """Yield (rows, indices (b, k), distances (b, k)) over blocks of rows; a row is never its own neighbour.

    ``k = min(n_neighbors, n - 1)``. The distance matrix itself is tiled inside scikit-learn.
    """
    n = len(X)
    k = min(n_neighbors, n - 1)
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
