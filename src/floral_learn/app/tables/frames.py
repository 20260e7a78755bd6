"""Frames in memory, Parquet files through pyarrow, and Hugging Face data sets."""

from __future__ import annotations

import io
import json
from typing import Any

import narwhals.stable.v2 as nw

from floral_learn.base.cells import TableError, reason
from floral_learn.base.extras import install_line
from floral_learn.base.frames import column_at, is_frame

from .source import Source

# of a Parquet file or a workbook: a few bytes can stand for a billion equal or empty rows
MOST_CELLS = 2**27


def from_frame(frame: Any, name: str = "the table") -> Source:
    """A frame of pandas, polars or pyarrow; a named index of a pandas frame counts as a column in front."""
    if not is_frame(frame):
        raise TableError(f"a table is a path, or a pandas or polars DataFrame, not {type(frame).__name__}")
    if not frame.shape[1]:
        raise TableError(f"{name} has no data rows")
    index: Any = frame.index if hasattr(frame, "iloc") else None
    named = index is not None and any(level is not None for level in index.names)
    n_index = index.nlevels if named else 0

    def write(place: int, values: list[Any]) -> Any:
        if place < n_index:
            raise TableError("labels in the index of a frame cannot be replaced; use frame.reset_index()")
        return with_column(frame, place - n_index, values)

    whole = frame
    if n_index:
        whole = frame.reset_index(allow_duplicates=True, names=list(map(str, index.names)))
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
        n_rows, n_columns = file.metadata.num_rows, file.metadata.num_columns
        if n_rows * n_columns > MOST_CELLS:
            raise TableError(f"{name} has {n_rows:,} rows and {n_columns:,} columns, more than {MOST_CELLS:,} cells")
        table = file.read()
    except TableError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError, NotImplementedError) as error:
        raise TableError(f"{name} is not a readable Parquet file ({reason(error)})") from None

    named = _class_names(table)

    def write(place: int, values: list[Any]) -> bytes:
        kind = table.schema.field(place).type
        if place in named:
            values = _codes(values, named[place])
        if pa.types.is_dictionary(kind):
            changed = pa.array(values, type=kind.value_type).dictionary_encode().cast(kind)
        else:
            changed = pa.array(values, type=kind)
        stream = io.BytesIO()
        pq.write_table(table.set_column(place, table.schema.field(place), changed), stream)
        return stream.getvalue()

    return Source(name, _by_names(table, named), write)


def dataset_source(dataset: Any, name: str = "the data set") -> Source:
    """A Hugging Face Dataset; class labels are read by their names, none where there is none (-1)."""
    if hasattr(dataset, "keys"):
        splits = ", ".join(dataset)
        raise TableError(f"{name} has the splits {splits}; give one of them, such as {next(iter(dataset))}")
    table = dataset.with_format("arrow")[:]
    columns = table.column_names
    found = {place: getattr(dataset.features[column], "names", None) for place, column in enumerate(columns)}
    named = {place: names for place, names in found.items() if names is not None}

    def write(place: int, values: list[Any]) -> Any:
        column = columns[place]
        if place in named:
            values = _codes(values, named[place])
        changed = dataset.remove_columns([column]).add_column(column, values)
        return changed.cast_column(column, dataset.features[column]).select_columns(columns)

    return Source(name, _by_names(table, named), write)


def _class_names(table: Any) -> dict[int, list[str]]:
    """Names of classes by the place of their column, where Hugging Face's `datasets` left them in the metadata."""
    try:
        features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
        kinds = [(place, features[column]) for place, column in enumerate(table.column_names)]
        named = {place: kind["names"] for place, kind in kinds if kind.get("_type") == "ClassLabel"}
        codes = {place: set(table.column(place).to_pylist()) - {None} for place in named}
        return {place: names for place, names in named.items() if codes[place] <= {-1, *range(len(names))}}
    except (AttributeError, KeyError, TypeError, ValueError):  # none, or written by somebody else
        return {}


def _by_names(table: Any, named: dict[int, list[str]]) -> Any:
    for place, names in named.items():
        codes = table.column(place).to_pylist()
        read = [None if code is None or code < 0 else names[code] for code in codes]
        table = table.set_column(place, table.column_names[place], [read])
    return table


def _codes(values: list[Any], names: list[str]) -> list[int]:
    return [-1 if value is None else names.index(value) for value in values]
