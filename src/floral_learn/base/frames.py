"""Frames of pandas, polars or pyarrow as plain typed columns, and tables handed back in the caller's own kind.

narwhals reads them all; nothing here imports a frame library of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from floral_learn.base.alignment import refuse_repeated_columns
from floral_learn.base.cells import MissingColumn, TableError, is_missing, objects, short, some, typed_values


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
    else:  # polars, pyarrow; a list of all names for each column would be slow in a wide table
        native = X.to_series(position) if hasattr(X, "to_series") else X.column(position)
    return nw.from_native(native, series_only=True)


def place_of(columns: list[str], column: Any, where: str) -> int:
    """The place of `column`; a missing or repeated one is an error that names the columns."""
    name = str(column)
    places = [place for place, known in enumerate(columns) if known == name]
    if len(places) == 1:
        return places[0]
    known = f"{short(name)}; its columns are: {some(columns)}"
    if places:
        raise TableError(f"{where} has {len(places)} columns named {known}")
    hint = "; if that is one column only, give the separator with --sep" if len(columns) == 1 else ""
    alike = [known for known in columns if known.strip().casefold() == name.strip().casefold()]
    if near := alike or (get_close_matches(name, columns, 1, 0.7) if short(name) == repr(name) else []):
        hint = f"; did you mean {short(near[0])}?"
    raise MissingColumn(f"{where} has no column {known}{hint}")


def column_named(X: Any, name: Any) -> list[Any] | None:
    """The values of a frame's column of this name; None where X is no frame or has none."""
    if not is_frame(X) or str(name) not in frame_columns(X):
        return None
    return column_at(X, place_of(frame_columns(X), name, "X")).to_list()


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
    refuse_repeated_columns(X)
    if hasattr(X, "iloc") and set(X.dtypes) == {np.dtype(float)}:  # one block: a wide table of numbers
        return dict(zip(names, np.array(X.to_numpy().T, order="C"), strict=True))
    columns: dict[str, np.ndarray] = {}
    for position, name in enumerate(names):
        typed = typed_column(column_at(X, position))
        if typed is not None:
            columns[name] = typed
            continue
        spread = spread_vectors(column_at(X, position).to_list())
        if spread is None:
            raise TableError(
                f"column {short(name)} holds lists, structs or complex numbers, which are no feature; drop it, or "
                "spread it over columns of its own"
            )
        columns |= {f"{name}[{number}]": values for number, values in enumerate(spread.T)}
    return columns


def spread_vectors(values: list[Any]) -> np.ndarray | None:
    """Embeddings (n, d), where every value is a list of d numbers; None where they are not."""
    lists = [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
    if not lists or not all(isinstance(one, list | tuple) and len(one) > 0 for one in lists):
        return None
    if any(len(one) != len(lists[0]) or not set(map(type, one)) <= {int, float} for one in lists):
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
    texts = {name: objects(v) for name, v in columns.items() if isinstance(v, list)}
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
    return isinstance(values, np.ndarray) and values.dtype.kind == "O"


def _floats(series: Any) -> np.ndarray:
    values = series.to_numpy()
    if values.dtype.kind == "O":  # holes among whole numbers or truth values, or decimals
        return np.array([np.nan if is_missing(value) else float(value) for value in values])
    return values.astype(float)


def _dates(series: Any) -> np.ndarray:
    return series.to_numpy().astype("datetime64[us]")
