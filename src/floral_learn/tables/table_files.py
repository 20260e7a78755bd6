"""Files and frames behind one face: column names by position, cells by position, and a copy with other labels."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.base.extras import install_line
from floral_learn.tables.table_error import TableError

from .cells import as_labels, as_numbers, as_texts
from .delimited import Delimited, decode, parse, unquoted_all

TEXT_FILES, PARQUET_FILES = (".csv", ".tsv", ".txt"), (".parquet", ".pq")


class Source(ABC):
    """A table before anyone decided what its columns are."""

    name: str
    columns: list[str]
    n_rows: int
    notes: list[str]

    @abstractmethod
    def cells(self, position: int) -> list[Any]:
        """The cells of a column: text, Python values, None where missing."""

    @abstractmethod
    def typed(self, position: int, as_text: bool = False) -> Any:
        """The column as a pandas Series: floats, dates or text (None where missing); None where it is nested."""

    @abstractmethod
    def relabelled(self, position: int, rows: np.ndarray, new: np.ndarray) -> Any:
        """The table with the labels of `rows` replaced by `new`, all else as it was: bytes of a file, or a frame."""

    def position(self, column: Any) -> int:
        """The place of `column`; a missing or repeated one is an error that names the columns."""
        places = [place for place, name in enumerate(self.columns) if name == str(column)]
        if len(places) == 1:
            return places[0]
        names = ", ".join(map(repr, self.columns[:12])) + (", ..." if len(self.columns) > 12 else "")
        problem = f"has {len(places)} columns named" if places else "has no column"
        hint = "; if that is one column only, give the separator with --sep" if len(self.columns) == 1 else ""
        if near := get_close_matches(str(column), self.columns, 1):
            hint = f"; did you mean {near[0]!r}?" if not places else ""
        raise TableError(f"{self.name} {problem} {str(column)!r}; its columns are: {names}{hint}")


def open_source(source: Any, sep: str | None, encoding: str | None) -> Source:
    """A path of a .csv, .tsv, .txt or .parquet file, or a pandas frame."""
    if not isinstance(source, str | os.PathLike):
        import pandas as pd

        if not isinstance(source, pd.DataFrame):
            raise TableError(f"a table is a path or a pandas DataFrame, not {type(source).__name__}")
        return FrameSource(source)
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix not in (*TEXT_FILES, *PARQUET_FILES):
        raise TableError(f"{path}: cannot read {suffix or 'a file without extension'}; use .csv, .tsv or .parquet")
    try:
        raw = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL inside the path
        raise TableError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if suffix in PARQUET_FILES:
        return ParquetSource(str(path), raw)
    if raw[:4] in (b"PK\x03\x04", b"PAR1") or raw[:2] == b"\x1f\x8b":
        raise TableError(f"{path} is not text: it looks like a spreadsheet, Parquet or compressed file")
    text, known = decode(raw, encoding, str(path))
    return TextSource(str(path), parse(text, sep, known, str(path), "\t" if suffix == ".tsv" else ","))


class TextSource(Source):
    """A delimited text file."""

    def __init__(self, name: str, file: Delimited) -> None:
        self.name, self.file = name, file
        self.columns, self.n_rows, self.notes = file.header, len(file.rows), []
        if file.found_sep:
            self.notes.append(f"the separator is {file.sep!r}")

    def cells(self, position: int) -> list[Any]:
        """Fields without quotes and outer blanks."""
        return unquoted_all([row[position] for row in self.file.rows])

    def typed(self, position: int, as_text: bool = False) -> Any:
        """Numbers where every field is one, else text."""
        import pandas as pd

        fields = self.cells(position)
        if not as_text and (found := as_numbers(fields, comma=self.file.sep != ",")) is not None:
            if found[1]:
                self.notes.append(f"decimal commas in {self.columns[position]}")
            return pd.Series(found[0])
        return pd.Series(as_texts(fields), dtype=object)

    def relabelled(self, position: int, rows: np.ndarray, new: np.ndarray) -> bytes:
        """The text with new labels, each spelled as most rows of that class spell it."""
        labels, blank = as_labels(self.cells(position), self.name)
        spellings: dict[Any, Counter[str]] = {}
        for row, label, missing in zip(self.file.rows, labels.tolist(), blank, strict=True):
            if not missing:
                spellings.setdefault(label, Counter())[row[position]] += 1
        changed = {}
        for row, label in zip(np.asarray(rows).tolist(), np.asarray(new).tolist(), strict=True):
            known = spellings.get(label)
            changed[row] = known.most_common(1)[0][0] if known else _quoted(str(label), self.file.sep)
        return self.file.replaced(position, changed)


class ParquetSource(Source):
    """A Parquet file through pyarrow; an index that pandas stored is a column like any other."""

    def __init__(self, name: str, raw: bytes) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise ImportError(f"Parquet files need pyarrow: {install_line('cli')}") from None
        try:
            self.table = pq.read_table(io.BytesIO(raw))
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise TableError(f"{name} is not a readable Parquet file ({reason})") from None
        self.name, self.columns = name, list(self.table.column_names)
        self.n_rows, self.notes = self.table.num_rows, []
        if not self.n_rows or not self.columns:
            raise TableError(f"{name} has no data rows")

    def cells(self, position: int) -> list[Any]:
        """Python values."""
        return self._guarded(position, lambda column: column.to_pylist())

    def typed(self, position: int, as_text: bool = False) -> Any:
        """As pandas sees the column, without its index."""
        import pyarrow as pa

        kind = self.table.schema.field(position).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if pa.types.is_nested(kind):
            return None
        if pa.types.is_decimal(kind):
            return typed_series(self._guarded(position, lambda column: column.cast(pa.float64()).to_pandas()), as_text)
        return typed_series(self._guarded(position, lambda column: column.to_pandas()), as_text)

    def _guarded(self, position: int, read: Any) -> Any:
        """What `read` makes of a column; values that Python cannot hold are one line."""
        import pyarrow as pa

        try:
            return read(self.table.column(position))
        except (pa.ArrowException, ValueError, OverflowError, NotImplementedError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise TableError(f"{self.name}: column {self.columns[position]!r} cannot be read ({reason})") from None

    def relabelled(self, position: int, rows: np.ndarray, new: np.ndarray) -> bytes:
        """The table with new labels in the column's own type."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        field, values = self.table.schema.field(position), self.cells(position)
        known: dict[Any, Any] = {}
        for value, label in zip(values, as_labels(values, self.name)[0].tolist(), strict=True):
            known.setdefault(label, value)
        for row, label in zip(np.asarray(rows).tolist(), np.asarray(new).tolist(), strict=True):
            values[row] = known.get(label, label)
        if pa.types.is_dictionary(field.type):
            changed = pa.array(values, type=field.type.value_type).dictionary_encode().cast(field.type)
        else:
            changed = pa.array(values, type=field.type)
        stream = io.BytesIO()
        pq.write_table(self.table.set_column(position, field, changed), stream)
        return stream.getvalue()


class FrameSource(Source):
    """A pandas frame; a named index counts as a column in front."""

    def __init__(self, frame: Any) -> None:
        self.name, self.notes, self.frame = "the table", [], frame
        self.n_rows = len(frame)
        self.n_index = frame.index.nlevels if any(name is not None for name in frame.index.names) else 0
        self.columns = [str(name) for name in [*frame.index.names[: self.n_index], *frame.columns]]
        if not self.n_rows or not len(frame.columns):
            raise TableError("the table has no data rows")

    def _series(self, position: int) -> Any:
        import pandas as pd

        if position < self.n_index:
            return pd.Series(self.frame.index.get_level_values(position))
        return self.frame.iloc[:, position - self.n_index].reset_index(drop=True)

    def cells(self, position: int) -> list[Any]:
        """Python values."""
        return self._series(position).tolist()

    def typed(self, position: int, as_text: bool = False) -> Any:
        """Numbers and dates as they are, everything else as text."""
        return typed_series(self._series(position), as_text)

    def relabelled(self, position: int, rows: np.ndarray, new: np.ndarray) -> Any:
        """A copy of the frame with new labels."""
        if position < self.n_index:
            raise TableError("labels in the index of a frame cannot be replaced; use frame.reset_index()")
        out, place = self.frame.copy(), position - self.n_index
        column = out.iloc[:, place].astype(object)
        column.iloc[np.asarray(rows)] = np.asarray(new).tolist()
        out.isetitem(place, column.infer_objects())
        return out


def typed_series(column: Any, as_text: bool = False) -> Any:
    """A pandas column as floats, dates or text with None where missing; None where it is nested."""
    import pandas as pd

    types = pd.api.types
    if not as_text:
        if types.is_complex_dtype(column):
            return None
        if types.is_bool_dtype(column) or types.is_numeric_dtype(column):
            return pd.Series(column.astype("Float64").to_numpy(dtype=float, na_value=np.nan))
        if types.is_datetime64_any_dtype(column):
            return column.dt.tz_localize(None) if isinstance(column.dtype, pd.DatetimeTZDtype) else column
        if types.is_timedelta64_dtype(column):
            return column.dt.total_seconds()
    values: Sequence[Any] = column.tolist()
    if any(isinstance(value, list | dict | set | np.ndarray) for value in values):
        return None
    texts = as_texts(values)
    if not as_text and any(not isinstance(value, str | None) for value in values):
        # an object column that holds numbers beside None, as databases give it
        found = as_numbers(["" if text is None else text for text in texts], comma=False)
        if found is not None:
            return pd.Series(found[0])
    return pd.Series(texts, dtype=object)


def _quoted(text: str, sep: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in (sep, '"', "\n", "\r")) else text
