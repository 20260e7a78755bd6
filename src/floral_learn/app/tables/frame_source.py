"""Frames in memory, and Parquet files through pyarrow."""

from __future__ import annotations

import io
from typing import Any

import narwhals.stable.v2 as nw

from floral_learn.base.cells import TableError, reason
from floral_learn.base.extras import install_line
from floral_learn.base.frames import column_at, is_frame

from .source import Source

MOST_CELLS = 2**27  # of a Parquet file or a workbook: a few bytes can stand for a billion equal or empty rows


def from_frame(frame: Any, name: str = "the table") -> Source:
    """A frame of pandas, polars or pyarrow; a named index of a pandas frame counts as a column in front."""
    if not is_frame(frame):
        raise TableError(f"a table is a path, or a pandas or polars DataFrame, not {type(frame).__name__}")
    index: Any = frame.index if hasattr(frame, "iloc") else None
    n_index = 0 if index is None or all(level is None for level in index.names) else index.nlevels
    if not frame.shape[1]:
        raise TableError(f"{name} has no data rows")

    def write(place: int, values: list[Any]) -> Any:
        if place < n_index:
            raise TableError("labels in the index of a frame cannot be replaced; use frame.reset_index()")
        return with_column(frame, place - n_index, values)

    whole = frame
    if n_index:
        names = [str(level) for level in index.names]
        whole = frame.reset_index(allow_duplicates=True, names=names)
    return Source(name, whole, write, like=frame)


def with_column(frame: Any, place: int, values: list[Any]) -> Any:
    """A copy of a frame with other values in one column; its type stays where the values allow it."""
    if hasattr(frame, "iloc"):
        import pandas as pd

        out = frame.copy()
        out.isetitem(place, pd.Series(values, index=frame.index, dtype=object).infer_objects())
        return out
    old, whole = column_at(frame, place), nw.from_native(frame, eager_only=True)
    made = nw.new_series(old.name, values, dtype=old.dtype, backend=whole.implementation)
    return whole.with_columns(made).to_native()


def read_parquet(name: str, raw: bytes) -> Source:
    """A Parquet file; an index that pandas stored is a column like any other."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError(f"Parquet files need pyarrow: {install_line('cli')}") from None
    try:
        file = pq.ParquetFile(io.BytesIO(raw))
        size = (file.metadata.num_rows, file.metadata.num_columns)
        if size[0] * size[1] > MOST_CELLS:
            raise TableError(f"{name} has {size[0]:,} rows and {size[1]:,} columns, more than {MOST_CELLS:,} cells")
        table = file.read()
    except (pa.ArrowException, OSError, ValueError, OverflowError, NotImplementedError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{name} is not a readable Parquet file ({reason(error)})") from None

    def write(place: int, values: list[Any]) -> bytes:
        kind = table.schema.field(place).type
        if pa.types.is_dictionary(kind):
            changed = pa.array(values, type=kind.value_type).dictionary_encode().cast(kind)
        else:
            changed = pa.array(values, type=kind)
        stream = io.BytesIO()
        pq.write_table(table.set_column(place, table.schema.field(place), changed), stream)
        return stream.getvalue()

    return Source(name, table, write)
