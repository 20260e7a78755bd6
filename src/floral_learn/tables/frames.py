"""Frames of pandas, polars or pyarrow as plain typed columns, and tables handed back in the caller's own kind.

narwhals reads them all; nothing here imports a frame library of its own.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from floral_learn.base.extras import install_line

from . import TableError
from .cells import is_missing, typed_values
from .source import Source, pairs, reason

MOST_NUMBERS = 4096  # of an embedding


def is_frame(X: Any) -> bool:
    """Whether X is a table with named columns in memory: pandas, polars, pyarrow and what else narwhals reads."""
    if nw.dependencies.is_into_dataframe(X):
        return True
    if type(X).__name__ == "LazyFrame":
        raise TableError("X is a LazyFrame, whose rows are not in memory; give X.collect()")
    return False


def frame_columns(X: Any) -> list[str]:
    """The names of a frame's columns as text, in order."""
    return [str(name) for name in (X.column_names if hasattr(X, "column_names") else X.columns)]


def column_at(X: Any, position: int) -> Any:
    """A column of a frame as a narwhals Series; by its place, since pandas and pyarrow allow two of one name."""
    if hasattr(X, "iloc"):
        native = X.iloc[:, position]
    else:
        native = X.column(position) if hasattr(X, "column_names") else X[frame_columns(X)[position]]
    return nw.from_native(native, series_only=True)


def column_named(X: Any, name: Any) -> list[Any] | None:
    """The values of a frame's column of this name; None where X is no frame or has none."""
    if not is_frame(X) or str(name) not in frame_columns(X):
        return None
    return column_at(X, frame_columns(X).index(str(name))).to_list()


def without_columns(X: Any, *names: Any) -> Any:
    """A frame without these columns, those that it has; what is no frame, as it is."""
    given = [name for name in names if is_frame(X) and str(name) in frame_columns(X)]
    return nw.from_native(X, eager_only=True).drop(given).to_native() if given else X


def typed_column(series: Any, as_text: bool = False) -> np.ndarray | None:
    """A column as float64 (booleans and durations too), datetime64, or texts with None where missing.

    None where its values are nested (lists, structs) or complex. Categories are texts whatever they are made of.
    """
    series = nw.from_native(series, series_only=True)
    dtype = series.dtype
    if dtype.is_nested():
        return None
    if not as_text:
        if dtype.is_numeric() or isinstance(dtype, nw.Boolean):
            return _floats(series)
        if isinstance(dtype, nw.Datetime):
            return _dates(series.dt.replace_time_zone(None))
        if isinstance(dtype, nw.Date):
            return _dates(series.cast(nw.Datetime))
        if isinstance(dtype, nw.Duration):
            return _floats(series.dt.total_microseconds()) / 1e6
    return typed_values(series.to_list(), as_text or isinstance(dtype, nw.Categorical | nw.Enum))


def typed_columns(X: Any) -> dict[str, np.ndarray]:
    """Every column of a frame, typed; two columns of one name, and nested values, are errors that name the column."""
    if not is_frame(X):
        raise TableError(f"a pandas or polars DataFrame is needed, not {type(X).__name__}")
    names = frame_columns(X)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TableError(f"there are two columns named {twice!r}; rename one of them")
    columns: dict[str, np.ndarray] = {}
    for position, name in enumerate(names):
        typed = typed_column(column_at(X, position))
        if typed is None and (spread := spread_vectors(column_at(X, position).to_list())) is not None:
            columns |= {f"{name}[{number}]": values for number, values in enumerate(spread.T)}
            continue
        if typed is None:
            raise TableError(
                f"column {name!r} holds lists, structs or complex numbers, which are no feature; drop it, or spread it "
                "over columns of its own"
            )
        columns[name] = typed
    return columns


def spread_vectors(values: list[Any]) -> np.ndarray | None:
    """Embeddings (n, d), where every value is a list of d numbers; None where they are not."""
    lists = [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
    if not lists or not all(isinstance(one, list | tuple) and 0 < len(one) <= MOST_NUMBERS for one in lists):
        return None
    if any(len(one) != len(lists[0]) or not all(type(part) in (int, float) for part in one) for one in lists):
        return None
    return np.array(lists, dtype=float)


def frame_of(columns: Mapping[str, Any], like: Any = None, n_rows: int | None = None) -> Any:
    """A frame of these columns in the library of the frame `like`; of pandas (with `n_rows`) where `like` is none."""
    if like is None or not is_frame(like) or hasattr(like, "iloc"):
        import pandas as pd

        # pandas would turn None into NaN in columns of texts, were they not said to be objects
        made = {name: pd.Series(v, dtype=object) if _is_object(v) else v for name, v in columns.items()}
        return pd.DataFrame(made, index=None if n_rows is None else pd.RangeIndex(n_rows))
    library = nw.from_native(like, eager_only=True).implementation
    return nw.from_dict(_plain_columns(columns), backend=library).to_native()


def frame_parts(X: Any) -> dict[str, Any]:
    """A frame as plain values for a file: the name of its library, and its columns, typed."""
    library = nw.from_native(X, eager_only=True).implementation.value
    return {"library": library, "columns": _plain_columns(typed_columns(X))}


def frame_from_parts(parts: Mapping[str, Any]) -> Any:
    """The frame behind `frame_parts`: truth values have become numbers, and categories texts."""
    columns = parts["columns"]
    if parts["library"] != "pandas":
        return nw.from_dict(columns, backend=parts["library"]).to_native()
    texts = {name: np.array([*v, None], dtype=object)[:-1] for name, v in columns.items() if isinstance(v, list)}
    return frame_of({**columns, **texts})


def _plain_columns(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of texts as lists, in which None stays None."""
    return {name: values.tolist() if _is_object(values) else values for name, values in columns.items()}


def as_pandas(X: Any) -> Any:
    """A frame of any library as a pandas frame with typed columns."""
    return X if hasattr(X, "iloc") else frame_of(typed_columns(X))


def same_kind(frame: Any, like: Any) -> Any:
    """A pandas frame as it is, or in the library of `like` where that is another frame (the index is left out)."""
    if like is None or not is_frame(like) or hasattr(like, "iloc"):
        return frame
    return frame_of({str(name): frame[name].to_numpy() for name in frame.columns}, like)


def _is_object(values: Any) -> bool:
    return getattr(getattr(values, "dtype", None), "kind", "") == "O"


def _floats(series: Any) -> np.ndarray:
    values = series.to_numpy()
    if values.dtype.kind == "O":  # holes among whole numbers or truth values, or decimals
        return np.array([np.nan if is_missing(value) else float(value) for value in values])
    return values.astype(float)


def _dates(series: Any) -> np.ndarray:
    return series.to_numpy().astype("datetime64[us]")


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
            raise TableError(f"{where} cannot be read ({reason(error)})") from None

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
        raise TableError(f"{name} is not a readable Parquet file ({reason(error)})") from None
    source.like = None  # features of files are pandas frames
    return source
