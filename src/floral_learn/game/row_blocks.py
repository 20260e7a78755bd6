"""Rows of features that come in blocks, so that X need not fit in memory: a memory map, the chunks of a worker.

Every pass over the rows goes through `RowBlocks.blocks`; single rows (landmarks) come from `take`. Nothing here keeps
more than one block in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

BLOCK_BYTES = 2**24  # features held at once; a block also has its kernel values beside it


class RowsRefused(ValueError):
    """Rows or labels that cannot be used; wherever they were looked at, no machine is at fault."""


@dataclass(frozen=True)
class Moments:
    """Weighted mean of each feature and squared deviation of all entries; parts add up with ``+``."""

    weight: float  # sum of the row weights
    mean: np.ndarray  # (d,)
    spread: float  # sum of weight * (x - grand mean)^2 over all entries

    @property
    def variance(self) -> float:
        """Of all entries of X together, as ``X.var()`` has it."""
        return self.spread / (self.weight * len(self.mean))

    def __add__(self, other: Moments) -> Moments:
        weight = self.weight + other.weight
        share = other.weight / weight
        apart = float(other.mean.mean() - self.mean.mean())
        spread = self.spread + other.spread + apart**2 * self.weight * share * len(self.mean)
        return Moments(weight, self.mean + (other.mean - self.mean) * share, spread)


class RowBlocks:
    """An (n, d) matrix that is read a block of rows at a time; ``np.asarray`` reads all of it."""

    shape: tuple[int, int]
    dtype: np.dtype
    names: list[str] | None = None  # of the columns, where the file has them
    ndim = 2
    sparse = False  # whether blocks are CSR matrices

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        whole = np.empty(self.shape, dtype=self.dtype)
        for start, block in self.blocks():
            whole[start : start + block.shape[0]] = block.toarray() if self.sparse else block
        return whole if dtype is None else whole.astype(dtype, copy=False)

    @property
    def block_rows(self) -> int:
        """Rows of one block."""
        return max(1, BLOCK_BYTES // max(1, self.shape[1] * self.dtype.itemsize))

    def blocks(self) -> Iterator[tuple[int, Any]]:
        """(first row, block) over all rows, in order."""
        raise NotImplementedError

    def take(self, rows: np.ndarray) -> Any:
        """The given rows, in the given order, in memory."""
        raise NotImplementedError

    def moments(self, weight: np.ndarray | None = None) -> Moments:
        """Mean and variance in one pass; NaN or infinity in X is an error that names the row."""
        total: Moments | None = None
        for start, block in self.blocks():
            rows = block.toarray() if self.sparse else block
            share = np.ones(len(rows)) if weight is None else weight[start : start + len(rows)]
            mean = (share @ rows) / share.sum()
            if not np.isfinite(mean).all():
                bad = start + int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
                raise RowsRefused(f"Input X contains NaN or infinity, first in row {bad}")
            spread = float(share @ ((rows - mean.mean()) ** 2).sum(axis=1))
            part = Moments(float(share.sum()), mean, spread)
            total = part if total is None else total + part
        if total is None:
            raise RowsRefused("X has no rows")
        return total

    def keep(self, rows: np.ndarray) -> RowBlocks:
        """The same source with only `rows` (ascending) in it; nothing is read."""
        return _Kept(self, rows)


class ArrayBlocks(RowBlocks):
    """Arrays (a memory map, the chunks of a worker; dense or CSR) that follow one another."""

    def __init__(self, arrays: Sequence[Any]) -> None:
        self.arrays = list(arrays)
        widths = {array.shape[1] for array in self.arrays}
        if len(widths) != 1:
            raise RowsRefused(f"the blocks of X have different numbers of columns: {sorted(widths)}")
        self.starts = np.cumsum([0, *(array.shape[0] for array in self.arrays)])
        self.shape = (int(self.starts[-1]), widths.pop())
        self.sparse = sparse.issparse(self.arrays[0])
        self.dtype = np.result_type(*(array.dtype for array in self.arrays))

    def blocks(self) -> Iterator[tuple[int, Any]]:
        """(first row, block) over all rows, in order."""
        size = self.block_rows
        for begin, array in zip(self.starts, self.arrays):
            for start in range(0, array.shape[0], size):
                block = array[start : start + size]
                yield int(begin) + start, block if self.sparse else np.asarray(block)

    def take(self, rows: np.ndarray) -> Any:
        """The given rows, in the given order, in memory."""
        rows = np.asarray(rows, dtype=np.int64)
        part = np.searchsorted(self.starts, rows, side="right") - 1
        if self.sparse:
            picked = [self.arrays[p][row - self.starts[p]] for p, row in zip(part, rows)]
            return sparse.vstack(picked).tocsr() if picked else self.arrays[0][:0]
        out = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        for p in np.unique(part):
            here = part == p
            out[here] = self.arrays[p][rows[here] - self.starts[p]]
        return out


class _Kept(RowBlocks):
    def __init__(self, whole: RowBlocks, rows: np.ndarray) -> None:
        self.whole, self.rows = whole, np.asarray(rows)
        self.shape, self.dtype, self.names = (len(rows), whole.shape[1]), whole.dtype, whole.names
        self.sparse = whole.sparse

    def blocks(self) -> Iterator[tuple[int, Any]]:
        """(first row, block) over the kept rows, in order."""
        for start, block in self.whole.blocks():
            first, last = np.searchsorted(self.rows, [start, start + block.shape[0]])
            if last > first:
                yield int(first), block[self.rows[first:last] - start]

    def take(self, rows: np.ndarray) -> Any:
        """The given ones of the kept rows."""
        return self.whole.take(self.rows[rows])


def gamma_of(gamma: float | str, found: Moments) -> float:
    """The number behind ``gamma`` ("scale", "auto" or itself), as `resolve_gamma` has it for a matrix in memory."""
    if not isinstance(gamma, str):
        return float(gamma)
    width = len(found.mean)
    if gamma == "auto":
        return 1.0 / width
    return 1.0 / (width * found.variance) if found.variance > 0 else 1.0
