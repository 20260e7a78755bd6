"""Frames of pandas, polars and pyarrow as tables; a Parquet file is a pyarrow frame."""

from __future__ import annotations

import io
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from floral_learn.base.extras import install_line

from .frames import column_at, frame_columns, is_frame, typed_column
from .source import Source, pairs
from .table_error import TableError

MOST_CELLS = 2**27  # of a Parquet file: a few bytes can stand for a billion equal rows


class FrameSource(Source):
    """A frame in memory; a named index of a pandas frame counts as a column in front."""

    def __init__(self, frame: Any, name: str = "the table") -> None:
        if not is_frame(frame):
            raise TableError(f"a table is a path, or a pandas or polars DataFrame, not {type(frame).__name__}")
        self.name, self.notes, self.frame = name, [], frame
        self.n_rows, self.like = frame.shape[0], frame
        index = frame.index if hasattr(frame, "iloc") else None
        self.n_index = 0 if index is None or all(level is None for level in index.names) else index.nlevels
        self.columns = [*map(str, index.names[: self.n_index] if index is not None else ()), *frame_columns(frame)]
        if not self.n_rows or not frame.shape[1]:
            raise TableError(f"{name} has no data rows")

    def _series(self, position: int) -> Any:
        if position < self.n_index:
            return nw.from_native(self.frame.index.get_level_values(position).to_series(), series_only=True)
        return column_at(self.frame, position - self.n_index)

    def cells(self, position: int) -> list[Any]:
        """Python values."""
        return self._guarded(position, lambda: self._series(position).to_list())

    def typed(self, position: int, as_text: bool = False) -> np.ndarray | None:
        """Numbers and dates as they are, everything else as text."""
        return self._guarded(position, lambda: typed_column(self._series(position), as_text))

    def _guarded(self, position: int, read: Any) -> Any:
        """What `read` makes of a column; values that Python cannot hold are one line."""
        try:
            return read()
        except Exception as error:  # each library has exceptions of its own
            if isinstance(error, MemoryError):
                raise
            where = f"{self.name}: column {self.columns[position]!r}"
            raise TableError(f"{where} cannot be read ({_first(error)})") from None

    def relabelled(self, position: int, rows: np.ndarray, new: np.ndarray) -> Any:
        """A copy of the frame with new labels."""
        if position < self.n_index:
            raise TableError("labels in the index of a frame cannot be replaced; use frame.reset_index()")
        place = position - self.n_index
        if not hasattr(self.frame, "iloc"):
            return self._with_column(place, self._new_values(position, rows, new))
        out = self.frame.copy()
        column = out.iloc[:, place].astype(object)
        column.iloc[np.asarray(rows)] = np.asarray(new).tolist()
        out.isetitem(place, column.infer_objects())
        return out

    def _new_values(self, position: int, rows: np.ndarray, new: np.ndarray) -> list[Any]:
        values = self.cells(position)
        known = self.spelled(position, values)
        for row, label in pairs(rows, new):
            values[row] = known.get(label, label)
        return values

    def _with_column(self, place: int, values: list[Any]) -> Any:
        old, frame = column_at(self.frame, place), nw.from_native(self.frame, eager_only=True)
        made = nw.new_series(old.name, values, dtype=old.dtype, backend=frame.implementation)
        return frame.with_columns(made).to_native()


class ParquetSource(FrameSource):
    """A Parquet file; an index that pandas stored is a column like any other."""

    def relabelled(self, position: int, rows: np.ndarray, new: np.ndarray) -> bytes:
        """The file with new labels in the column's own type."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        field, values = self.frame.schema.field(position), self._new_values(position, rows, new)
        if pa.types.is_dictionary(field.type):
            changed = pa.array(values, type=field.type.value_type).dictionary_encode().cast(field.type)
        else:
            changed = pa.array(values, type=field.type)
        stream = io.BytesIO()
        pq.write_table(self.frame.set_column(position, field, changed), stream)
        return stream.getvalue()


def read_parquet(name: str, raw: bytes) -> ParquetSource:
    """A Parquet file through pyarrow."""
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
        source = ParquetSource(file.read(), name)
    except (pa.ArrowException, OSError, ValueError, OverflowError, NotImplementedError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{name} is not a readable Parquet file ({_first(error)})") from None
    source.like = None  # features of files are pandas frames
    return source


def _first(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
