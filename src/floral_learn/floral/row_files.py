"""Files of features read in blocks: memory-mapped .npy, Parquet files and folders of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.base.extras import install_line
from floral_learn.game.row_blocks import ArrayBlocks, RowBlocks


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
        raise ImportError(f"Parquet files need pyarrow: {install_line('cli')}") from error
    return pyarrow.parquet


def _numeric(field: Any, path: Any) -> Any:
    kind = field.type.to_pandas_dtype()
    if not (np.issubdtype(kind, np.number) or kind is np.bool_):
        raise ValueError(f"column {field.name!r} of {path} is {field.type}, not a number")
    return kind
