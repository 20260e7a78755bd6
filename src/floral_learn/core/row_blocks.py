"""Rows of features read in blocks, so that X need not fit in memory: memory-mapped .npy, Parquet, lists of chunks.

Every pass over the rows goes through `RowBlocks.blocks`; single rows (landmarks) come from `take`. Nothing here keeps
more than one block in memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

BLOCK_BYTES = 2**24  # features held at once; a block also has its kernel values beside it


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
                raise ValueError(f"Input X contains NaN or infinity, first in row {bad}")
            spread = float(share @ ((rows - mean.mean()) ** 2).sum(axis=1))
            part = Moments(float(share.sum()), mean, spread)
            total = part if total is None else total + part
        if total is None:
            raise ValueError("X has no rows")
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
            raise ValueError(f"the blocks of X have different numbers of columns: {sorted(widths)}")
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


class ParquetBlocks(RowBlocks):
    """The numeric columns of a Parquet file, or of all Parquet files of a folder, in order of their names."""

    def __init__(
        self, path: str | os.PathLike[str], without: Sequence[str] = (), columns: Sequence[str] | None = None
    ) -> None:
        self.files = [_parquet().ParquetFile(name) for name in parquet_files(path)]
        schema = self.files[0].schema_arrow
        missing = [name for name in (*without, *(columns or ())) if name not in schema.names]
        if missing:
            raise ValueError(f"{path} has no column {missing[0]!r}; it has {', '.join(schema.names)}")
        self.names = [name for name in columns or schema.names if name not in without]
        types = [np.dtype(_numeric(schema.field(name), path)) for name in self.names]
        self.dtype = np.result_type(np.float32, *types)
        self.starts = np.cumsum([0, *(file.metadata.num_rows for file in self.files)])
        self.shape = (int(self.starts[-1]), len(self.names))

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """(first row, block) over all rows, in order."""
        start = 0
        for file in self.files:
            for batch in file.iter_batches(batch_size=self.block_rows, columns=self.names):
                yield start, self._matrix(batch)
                start += batch.num_rows

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The given rows, in the given order; only the row groups that hold them are read."""
        rows = np.asarray(rows, dtype=np.int64)
        out = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        for file, begin in zip(self.files, self.starts):
            for group in range(file.num_row_groups):
                end = begin + file.metadata.row_group(group).num_rows
                here = (rows >= begin) & (rows < end)
                if here.any():
                    table = file.read_row_group(group, columns=self.names)
                    out[here] = self._matrix(table.take(rows[here] - begin))
                begin = end
        return out

    def _matrix(self, batch: Any) -> np.ndarray:
        columns = [batch.column(name).to_numpy(zero_copy_only=False) for name in self.names or ()]
        return np.stack(columns, axis=1).astype(self.dtype, copy=False)


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


def open_rows(source: Any, without: Sequence[str] = (), columns: Sequence[str] | None = None) -> RowBlocks:
    """`RowBlocks` of a path (.npy, .parquet or a folder of Parquet files), a memory map or an array.

    Of Parquet files, `columns` are the features, in that order (all by default), less those in `without`.
    """
    if isinstance(source, RowBlocks):
        return source
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.exists():
            raise FileNotFoundError(f"no file or folder {path}")
        if path.is_dir() or path.suffix in (".parquet", ".pq"):
            return ParquetBlocks(path, without, columns)
        if path.suffix != ".npy":
            raise ValueError(f"{path} cannot be read in blocks; use .npy, .parquet or a folder of Parquet files")
        source = np.load(path, mmap_mode="r")
    if source.ndim != 2 or not np.issubdtype(source.dtype, np.number):
        raise ValueError(f"X must be a numeric matrix; got {source.dtype} of shape {source.shape}")
    return ArrayBlocks([source])


def read_column(source: Any, name: str) -> np.ndarray:
    """One column of a Parquet file or folder, whole: the labels."""
    if not isinstance(source, str | os.PathLike):
        raise ValueError(f"y={name!r} names a column, which only a Parquet file as X has")
    tables = [_parquet().read_table(path, columns=[name]) for path in parquet_files(source)]
    if not tables[0].num_columns:
        raise ValueError(f"{source} has no column {name!r}")
    return np.concatenate([table.column(name).to_numpy() for table in tables])


def parquet_files(path: str | os.PathLike[str]) -> list[Path]:
    """The file itself, or the Parquet files of a folder by name."""
    path = Path(path)
    found = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not found:
        raise FileNotFoundError(f"no .parquet files in {path}")
    return found


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install 'floral-learn[cli]'") from error
    return pyarrow.parquet


def _numeric(field: Any, path: Any) -> Any:
    kind = field.type.to_pandas_dtype()
    if not (np.issubdtype(kind, np.number) or kind is np.bool_):
        raise ValueError(f"column {field.name!r} of {path} is {field.type}, not a number")
    return kind


def gamma_of(gamma: float | str, found: Moments) -> float:
    """The number behind ``gamma`` ("scale", "auto" or itself), as `resolve_gamma` has it for a matrix in memory."""
    if not isinstance(gamma, str):
        return float(gamma)
    width = len(found.mean)
    if gamma == "auto":
        return 1.0 / width
    return 1.0 / (width * found.variance) if found.variance > 0 else 1.0
