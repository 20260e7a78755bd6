"""Read a table for learning, and write it back with nothing but its label column changed.

A CSV file is kept as text: every field's place is known, so that changed labels are spliced in and all else
(quotes, "007", 1.50, line ends) stays byte for byte. A Parquet file keeps its schema and metadata.
"""

import io
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn import atomic_files

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_LEADING_ZERO = re.compile(r"[+-]?0\d")
MANY_VALUES = 50


class TableError(ValueError):
    """Something is wrong with a file; the message is one line for its owner."""


class Table(ABC):
    """A data file: its column names and rows, its labels, and a copy with other labels."""

    path: Path
    columns: list[str]

    @abstractmethod
    def labels(self, column: str) -> np.ndarray:
        """Return the labels (n,) of ``column``, all of one type, none missing."""

    @abstractmethod
    def texts(self, column: str) -> list[str]:
        """Return the values (n,) of ``column`` as text; missing ones are empty."""

    @abstractmethod
    def frame(self) -> Any:
        """Return a pandas DataFrame with inferred types."""

    @abstractmethod
    def relabelled(self, column: str, indices: np.ndarray, new: np.ndarray) -> bytes:
        """Return the file with the labels of rows ``indices`` replaced by ``new`` (values from ``labels``)."""

    def require(self, column: str) -> int:
        """Return the position of ``column``; a missing or repeated one is an error that names the columns."""
        if (times := self.columns.count(column)) != 1:
            names = ", ".join(map(repr, self.columns[:12])) + (", ..." if len(self.columns) > 12 else "")
            problem = f"has no column {column!r}" if not times else f"has {times} columns named {column!r}"
            raise TableError(f"{self.path} {problem}; its columns are: {names}")
        return self.columns.index(column)


def read_table(path: Path, *, sep: str | None = None, encoding: str = "utf-8") -> Table:
    """Open a .csv, .tsv, .txt or .parquet file."""
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".tsv", ".txt", ".parquet", ".pq"):
        raise TableError(f"{path}: cannot read {suffix or 'a file without extension'}; use .csv, .tsv or .parquet")
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise TableError(f"cannot read {path}: {error.strerror or error}") from None
    if suffix in (".parquet", ".pq"):
        return ParquetTable(path, raw)
    try:
        text = raw.decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        raise TableError(f"{path} is not {encoding} text ({error}); give its encoding") from None
    return CSVTable(path, text, sep or ("\t" if suffix == ".tsv" else ","), encoding)


class CSVTable(Table):
    """A delimited text file; fields are known by their place in the text."""

    def __init__(self, path: Path, text: str, sep: str, encoding: str) -> None:
        self.path, self.text, self.sep, self.encoding = path, text, sep, encoding
        if len(sep) != 1:
            raise TableError(f"the separator must be one character, got {sep!r}")
        start = 1 if text.startswith("\ufeff") else 0
        records = [record for record in _records(text, sep, start) if record != [(record[0][0],) * 2]]
        if len(records) < 2:
            raise TableError(f"{path} has no data rows")
        self.columns = [_unquote(text[a:b]) for a, b in records[0]]
        self.rows = records[1:]
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                line = text.count("\n", 0, row[0][0]) + 1
                raise TableError(
                    f"{path}, line {line} (row {number}): {len(row)} fields where the header has {len(self.columns)}"
                )

    def labels(self, column: str) -> np.ndarray:
        """Return numbers where every label is one, else text; "007" counts as text."""
        texts = self.texts(column)
        if missing := [number for number, text in enumerate(texts) if not text]:
            raise TableError(
                f"{self.path}: column {column!r} has {len(missing)} missing labels (first: row {missing[0]})"
            )
        numeric = [bool(_NUMBER.fullmatch(text)) for text in texts]
        if all(numeric) and not any(_LEADING_ZERO.match(text) for text in texts):
            return _numbers(texts)
        if any(numeric) and not all(numeric):
            odd = Counter(numeric).most_common()[-1][0]
            row = numeric.index(odd)
            raise TableError(f"{self.path}: column {column!r} mixes numbers and text (row {row} is {texts[row]!r})")
        return np.array(texts)

    def texts(self, column: str) -> list[str]:
        """Return the fields without quotes and outer blanks."""
        position = self.require(column)
        return [_unquote(self.text[slice(*row[position])]).strip() for row in self.rows]

    def frame(self) -> Any:
        """Return the rows as pandas reads them, but columns with values such as 007 as text."""
        import pandas as pd

        codes = {
            name: str
            for name in self.columns
            if self.columns.count(name) == 1 and any(map(_LEADING_ZERO.match, self.texts(name)))
        }
        frame = pd.read_csv(io.StringIO(self.text.removeprefix("\ufeff")), sep=self.sep, dtype=codes)
        if len(frame) != len(self.rows):
            raise TableError(
                f"{self.path}: {len(self.rows)} rows, of which pandas reads {len(frame)}; check the quotes"
            )
        return frame

    def relabelled(self, column: str, indices: np.ndarray, new: np.ndarray) -> bytes:
        """Return the text with new labels, each spelled as most rows of that class spell it."""
        position = self.require(column)
        spellings: dict[Any, Counter[str]] = {}
        for row, label in zip(self.rows, self.labels(column).tolist(), strict=True):
            spellings.setdefault(label, Counter())[self.text[slice(*row[position])]] += 1
        parts, done = [], 0
        for index, label in sorted(zip(indices.tolist(), new.tolist(), strict=True)):
            begin, end = self.rows[index][position]
            parts += [self.text[done:begin], spellings[label].most_common(1)[0][0]]
            done = end
        return "".join([*parts, self.text[done:]]).encode(self.encoding)


class ParquetTable(Table):
    """A Parquet file through pyarrow."""

    def __init__(self, path: Path, raw: bytes) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            self.table = pq.read_table(io.BytesIO(raw))
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{path} is not a readable Parquet file ({str(error).splitlines()[0]})") from None
        self.path, self.columns = path, list(self.table.column_names)
        if not self.table.num_rows:
            raise TableError(f"{path} has no data rows")

    def labels(self, column: str) -> np.ndarray:
        """Return the column's values."""
        values = self.table.column(self.require(column)).to_pylist()
        if missing := [number for number, value in enumerate(values) if value is None]:
            raise TableError(
                f"{self.path}: column {column!r} has {len(missing)} missing labels (first: row {missing[0]})"
            )
        if not isinstance(values[0], (str, bool, int, float)):
            raise TableError(f"{self.path}: column {column!r} holds {type(values[0]).__name__}, not labels")
        return np.array(values)

    def texts(self, column: str) -> list[str]:
        """Return the values as Python writes them."""
        values = self.table.column(self.require(column)).to_pylist()
        return ["" if value is None else str(value) for value in values]

    def frame(self) -> Any:
        """Return the rows as pandas sees them."""
        return self.table.to_pandas()

    def relabelled(self, column: str, indices: np.ndarray, new: np.ndarray) -> bytes:
        """Return the table with new labels in the column's own type."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        position = self.require(column)
        field, values = self.table.schema.field(position), self.table.column(position).to_pylist()
        for index, label in zip(indices.tolist(), new.tolist(), strict=True):
            values[index] = label
        if pa.types.is_dictionary(field.type):
            changed = pa.array(values, type=field.type.value_type).dictionary_encode().cast(field.type)
        else:
            changed = pa.array(values, type=field.type)
        stream = io.BytesIO()
        pq.write_table(self.table.set_column(position, field, changed), stream)
        return stream.getvalue()


@dataclass(frozen=True)
class Features:
    """Numbers made from a table for an algorithm's own use: (n, d), and one line on what was done."""

    X: np.ndarray
    note: str


def _numbers(texts: list[str]) -> np.ndarray:
    """Labels that are all numbers: exact integers, else floats, else text where a float would merge or lose labels."""
    try:
        exact = [int(text) for text in texts]
    except ValueError:
        values = np.array([float(text) for text in texts])
        if not np.isfinite(values).all():
            return np.array(texts)
        whole = (values == np.floor(values)).all() and np.abs(values).max() < 2**53
        return values.astype(np.int64) if whole else values
    if max(exact) < 2**63 and min(exact) >= -(2**63):
        return np.array(exact, dtype=np.int64)
    return np.array(texts)


def encode_features(frame: Any, leave_out: list[str]) -> Features:
    """Return standardised numbers: missing ones become the median, categories become indicator columns."""
    import pandas as pd
    from sklearn.preprocessing import StandardScaler

    frame = frame.drop(columns=leave_out)
    nested = [c for c in frame if frame[c].map(lambda value: isinstance(value, list | dict | np.ndarray)).any()]
    frame = frame.drop(columns=nested)
    numbers = [c for c in frame if pd.api.types.is_numeric_dtype(frame[c]) and not frame[c].isna().all()]
    others = [c for c in frame if c not in numbers]
    categories = [c for c in others if 1 < frame[c].nunique() <= MANY_VALUES]
    ignored = [str(c) for c in others if c not in categories] + [f"{c} (lists)" for c in nested]
    if not numbers and not categories:
        raise TableError("there is no usable feature column beside the label")
    values = frame[numbers].astype(float)
    if not np.isfinite(values.to_numpy()[~values.isna().to_numpy()]).all():
        raise TableError("a number column has infinite values")
    missing = int(values.isna().sum().sum())
    values = values.fillna(values.median())
    blocks = [values.to_numpy()]
    for column in categories:
        texts = frame[column].astype(object).where(frame[column].notna(), "(missing)").astype(str)
        blocks.append(pd.get_dummies(texts, dtype=float).to_numpy())
    X = StandardScaler().fit_transform(np.hstack(blocks))
    note = f"features for the attack: {len(numbers)} number columns"
    if missing:
        note += f" ({missing} missing values as the median)"
    if categories:
        note += f", {len(categories)} category columns as {X.shape[1] - len(numbers)} indicators"
    if ignored:
        note += f", ignored: {', '.join(ignored[:6])}{', ...' if len(ignored) > 6 else ''}"
    return Features(X, note + "; standardised")


def write_all(files: dict[Path, bytes]) -> None:
    """Write all files or none; what goes wrong is one line for the user."""
    try:
        atomic_files.write_all(files)
    except OSError as error:
        raise TableError(f"cannot write {error.filename or 'the output'}: {error.strerror}") from None


def _records(text: str, sep: str, start: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the (begin, end) of every field, record by record, quotes included (RFC 4180)."""
    field = re.compile(rf'"(?:[^"]|"")*"(?=[{re.escape(sep)}\r\n]|\Z)|[^{re.escape(sep)}\r\n]*')
    position, record = start, []
    while position <= len(text):
        match = field.match(text, position)
        assert match is not None  # the second branch matches the empty string
        record.append(match.span())
        position = match.end()
        if position < len(text) and text[position] == sep:
            position += 1
            continue
        yield record
        record = []
        if position >= len(text):
            return
        position += 2 if text.startswith("\r\n", position) else 1
        if position == len(text):
            return


def _unquote(field: str) -> str:
    return field[1:-1].replace('""', '"') if len(field) > 1 and field[0] == field[-1] == '"' else field
