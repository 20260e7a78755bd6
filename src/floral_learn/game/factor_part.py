"""The rows of a low-rank factor that one process holds: F there, and what K - F F' has left on their diagonal.

Randomly pivoted Cholesky (game/low_rank.py) grows F block by block; all it needs to know of the rows comes through
`pick`, `columns` and `extend`, whose answers are of the size of a block of pivots. One part makes a factor in memory,
many parts on many machines make the same factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from floral_learn.game.arrays import NUMPY, Array, NumpyBackend
from floral_learn.game.kernels import Kernel
from floral_learn.game.row_blocks import RowBlocks

_TILE = 2**14  # rows of an in-memory matrix whose kernel values are computed at once


@dataclass(frozen=True)
class Picked:
    """Rows drawn as pivots and all that other parts must know about them."""

    rows: np.ndarray  # (m,), numbers among all rows
    left: np.ndarray  # (m,), diagonal of K - F F'
    features: Any  # (m, d), prepared for the kernel
    factor: np.ndarray  # (m, rank so far)


@dataclass(frozen=True)
class PivotBlock:
    """One block of pivots: enough to grow F on any rows, now or when a lost part is built again."""

    features: Any
    factor: np.ndarray
    rows: np.ndarray
    kept: np.ndarray  # which of the m were accepted
    inverse: np.ndarray  # of the triangle that the accepted ones make


class FactorPart:
    """F for the rows of `X`, which are the rows ``start ..`` of all."""

    def __init__(self, X: Any, backend: NumpyBackend = NUMPY) -> None:
        self.X = X
        self.backend = backend
        self.n = X.shape[0]

    def begin_factor(
        self, start: int, kernel: Kernel, rank: int, dtype: str, sample: np.ndarray | None = None
    ) -> tuple[float, float]:
        """Make room for `rank` columns; the sum and the maximum of the diagonal of K.

        `sample` are rows (numbers among all) whose new entries of F `extend` reports.
        """
        backend = self.backend
        self.kernel, self.dtype, self.start, self.rank = kernel, dtype, start, 0
        self.prepared = None if isinstance(self.X, RowBlocks) else kernel.prepare(self.X, backend, dtype)
        self.squares: Any = None if self.prepared is None else kernel.squares(self.prepared)
        self.factor = backend.zeros((self.n, rank), backend.dtype(dtype))
        self.left = backend.zeros((self.n,), backend.float64)
        for here, rows in self._tiles():
            self.left[here] = kernel.diagonal(rows, backend)
        self.sample = self._own(np.zeros(0, np.int64) if sample is None else sample)
        return float(self.left.sum()), float(self.left.max())

    def pick(self, positions: np.ndarray) -> Picked:
        """The rows at which the running sum of the diagonal left passes `positions`."""
        left = self.backend.numpy(self.left)
        local = np.minimum(np.searchsorted(np.cumsum(left), positions, side="right"), self.n - 1)
        known = self.backend.numpy(self.factor[self.backend.array(local), : self.rank])
        return Picked(local + self.start, left[local], self._features(local), known)

    def columns(self, features: Any, known: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Columns of K - F F' at the pivots: their squared lengths and their entries at those `rows` that lie here."""
        backend, storage = self.backend, self.backend.dtype(self.dtype)
        pivots = features if sparse.issparse(features) or callable(self.kernel.name) else backend.array(features)
        old = backend.cast(backend.array(known), storage)
        self.fresh = backend.zeros((self.n, len(rows)), storage)
        squares = np.zeros(len(rows))
        for here, tile in self._tiles():
            known_squares = None if self.squares is None else self.squares[here]
            values = backend.cast(self.kernel(tile, pivots, backend, known_squares), storage)
            if self.rank:
                values = values - self.factor[here, : self.rank] @ old.T
            squares += backend.numpy((values * values).sum(0))
            self.fresh[here] = values
        return squares, backend.numpy(self.fresh[backend.array(self._own(rows))])

    def extend(self, block: PivotBlock) -> tuple[np.ndarray, float, float, np.ndarray]:
        """Append the block's columns: F'F for them, sum and maximum of the diagonal left, F at the sample."""
        backend, storage = self.backend, self.backend.dtype(self.dtype)
        done, new = self.rank, self.rank + len(block.kept)
        inverse = backend.cast(backend.array(np.ascontiguousarray(block.inverse.T)), storage)
        kept = backend.array(block.kept)
        step = self.n if self.prepared is not None and backend.name == "torch" else _TILE
        product = np.zeros((new, new - done))
        for start in range(0, self.n, step):  # tiles: no second copy of the columns
            here = slice(start, min(start + step, self.n))
            added = self.fresh[here][:, kept] @ inverse
            self.factor[here, done:new] = added
            exact = backend.cast(added, backend.float64)
            self.left[here] = (self.left[here] - (exact * exact).sum(1)).clip(0, None)
            tile = self.factor[here, :new]
            product += backend.numpy(tile.T @ added)
        self.left[backend.array(self._own(block.rows[block.kept]))] = 0
        self.rank = new
        del self.fresh
        entries = backend.numpy(self.factor[backend.array(self.sample), done:new])
        return product, float(self.left.sum()), float(self.left.max()), entries

    def replay(self, blocks: Sequence[PivotBlock]) -> None:
        """Grow F by blocks that were chosen before."""
        for block in blocks:
            self.columns(block.features, block.factor, block.rows)
            self.extend(block)

    def inner(self, columns: Array) -> Array:
        """``F' columns``, (rank, c)."""
        columns = self.backend.cast(columns, self.factor.dtype)
        return self.backend.product(self.factor[:, : self.rank].T, columns)

    def outer(self, inner: Array) -> Array:
        """``F inner`` as float64, (n, c)."""
        product = self.backend.product(self.factor[:, : self.rank], self.backend.cast(inner, self.factor.dtype))
        return self.backend.cast(product, self.backend.float64)

    def row_squares(self) -> np.ndarray:
        """Squared norm of each row of F, (n,): what of the diagonal of K is not left."""
        out = self.backend.zeros((self.n,), self.backend.float64)
        for here, rows in self._tiles():
            out[here] = self.kernel.diagonal(rows, self.backend)
        return self.backend.numpy(out - self.left)

    def weighted_square(self, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """F'WF and F'w, in float64; ones for no `weight`."""
        backend = self.backend
        square, sums = np.zeros((self.rank, self.rank)), np.zeros(self.rank)
        step = max(_TILE, self.n // 64)
        for start in range(0, self.n, step):
            tile = self.factor[start : start + step, : self.rank]
            exact = backend.cast(tile, backend.float64)
            scaled = exact if weight is None else exact * backend.array(weight[start : start + step])[:, None]
            if weight is not None:
                square += backend.numpy(exact.T @ scaled)
            sums += backend.numpy(scaled.sum(0))
        return square, sums

    def _own(self, rows: np.ndarray) -> np.ndarray:
        """Which of `rows` lie here, as numbers of this part."""
        return rows[(rows >= self.start) & (rows < self.start + self.n)] - self.start

    def _features(self, local: np.ndarray) -> Any:
        if self.prepared is None:
            rows = self.kernel.prepare(self.X.take(local), self.backend, self.dtype)
        else:
            rows = self.prepared[local]
        return rows if sparse.issparse(rows) else self.backend.numpy(rows)

    def _tiles(self) -> Iterator[tuple[slice, Any]]:
        if self.prepared is None:
            for start, block in self.X.blocks():
                yield (
                    slice(start, start + block.shape[0]),
                    self.kernel.prepare(block, self.backend, self.dtype),
                )
            return
        step = self.n if self.backend.name == "torch" else _TILE
        for start in range(0, self.n, max(step, 1)):
            yield slice(start, start + step), self.prepared[start : start + step]
