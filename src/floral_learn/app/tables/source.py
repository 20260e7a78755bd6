"""Open a table, whatever it is: columns, cells, labels of one type, and a copy with new labels."""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from floral_learn.base.cells import (
    CODE,
    MISSING,
    NUMBER,
    TableError,
    is_missing,
    objects,
    plain,
    reason,
    short,
    unguarded,
)
from floral_learn.base.files import MOST_BYTES
from floral_learn.base.frames import column_at, frame_columns, place_of, typed_column

KINDS = ".csv, .tsv, .txt, .jsonl or .json of Label Studio (each also as .gz), .parquet or .xlsx"
_CODE = re.compile(CODE)
_TRUE, _FALSE = {"true", "yes", "y", "t", "1", "x"}, {"false", "no", "n", "f", "0", ""}
_FOREIGN = {b"PK\x03\x04": "an Excel", b"PAR1": "a Parquet", b"\x1f\x8b": "a compressed"}


@dataclass
class Source:
    """A table before anyone decided what its columns are.

    Attributes
    ----------
    name : str
        The file, for messages.
    frame : frame
        Its columns, found by their places: names may repeat.
    write : callable
        ``write(place, values)`` is the table with other values in one column: bytes of a file, or a frame.
    notes : list of str
        What was found, one line each, for people.
    typed_text : callable, optional
        Of a text file, whose cells are all text: how a column of these becomes numbers or texts.
    like : frame or None
        In whose library features are made; pandas where it is None.
    choice : str, optional
        The label's column, where the kind of the file says it.
    no_features : set of int
        Places of columns that say nothing about a row itself.
    export : object, optional
        What a bridge needs to write the same kind again.
    packed : bool
        Whether the file is a .gz, and a copy has to be one.
    """

    name: str
    frame: Any
    write: Callable[[int, list[Any]], Any]
    notes: list[str] = field(default_factory=list)
    typed_text: Callable[[str, Any], Any] | None = None
    like: Any = None
    choice: str | None = None
    no_features: frozenset[int] = frozenset()
    export: Any = None
    packed: bool = False

    def __post_init__(self) -> None:
        self.columns, self.n_rows = frame_columns(self.frame), self.frame.shape[0]
        if not self.n_rows or not self.columns:
            raise TableError(f"{self.name} has no data rows")

    def cells(self, position: int, rows: Any = None) -> list[Any]:
        """The cells of a column, or of some rows of it: text, Python values, None where missing."""
        # a table of pyarrow, whose columns take longer to wrap than to read
        if self.typed_text is not None:
            column = self.frame.column(position)
            return (column if rows is None else column.take(rows)).to_pylist()
        return self._read(position, lambda column: (column if rows is None else column[rows]).to_list())

    def typed(self, position: int, as_text: bool = False) -> Any:
        """The column as floats, dates or text (missing where it is); None where its values are nested.

        As text, pictures inside the table are their names.
        """
        if self.typed_text is not None and not as_text:
            return self.typed_text(self.columns[position], self.frame.column(position))
        typed = self._read(position, lambda column: typed_column(column, as_text))
        if typed is None and as_text and (names := picture_names(self.cells(position))) is not None:
            return objects(names)
        return typed

    def _read(self, position: int, read: Callable[[Any], Any]) -> Any:
        """What `read` makes of a column; values that Python cannot hold are one line."""
        try:
            return read(column_at(self.frame, position))
        except MemoryError:
            raise
        except Exception as error:  # each library has exceptions of its own
            where = f"{self.name}: column {short(self.columns[position])}"
            raise TableError(f"{where} cannot be read ({reason(error)})") from None

    def position(self, column: Any) -> int:
        """The place of `column`; a missing or repeated one is an error that names the columns."""
        return place_of(self.columns, column, self.name)

    def relabelled(self, position: int, rows: np.ndarray, new: np.ndarray) -> Any:
        """The table with new labels in `rows`, each spelled as most rows of that class spell it; other values stay."""
        values = self.cells(position)
        labels, blank = as_labels(values, self.name)
        counts: dict[Any, Counter[Any]] = {}
        for value, label, missing in zip(values, labels.tolist(), blank, strict=True):
            if not missing:
                counts.setdefault(label, Counter())[value] += 1
        known = {label: spelled.most_common(1)[0][0] for label, spelled in counts.items()}
        for row, label in zip(rows.tolist(), new.tolist(), strict=True):
            values[row] = known.get(label, label)
        made = self.write(position, values)
        return gzip.compress(made, mtime=0) if self.packed else made


def picture_names(cells: list[Any]) -> list[str] | None:
    """Names of pictures that lie inside a table, {"bytes": ..., "path": ...} as Hugging Face writes them; else None."""
    given = [cell for cell in cells if cell is not None]
    wanted = {"bytes", "path"}
    fits = [isinstance(cell, dict) and cell.keys() >= wanted for cell in given]
    if not given or not all(fits):
        return None
    names = []
    for row, cell in enumerate(cells):
        path = str((cell or {}).get("path") or "")
        if path and cell.get("bytes") is None:  # the picture lies elsewhere
            names.append(path)
        else:
            # the row makes it unique; what else a name may do on a disk or in a page is left out of it
            names.append(f"{row}-{re.sub(r'[^0-9A-Za-z._-]', '_', PurePath(path).name)[-60:]}")
    return names


def table_suffix(path: str | os.PathLike[str]) -> str:
    """What says the kind of a file: its extension, with the one before .gz; empty where there is none."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def open_source(source: Any, sep: str | None, encoding: str | None, label: Any = None) -> Source:
    """A frame of pandas, polars or pyarrow, a Hugging Face data set, or the path of a file of one of the `KINDS`."""
    from . import frames  # this and others make a Source; they are imported where they are needed

    if not isinstance(source, str | os.PathLike):
        # nothing is imported to find out
        a_dataset = type(source).__module__.split(".")[0] == "datasets"
        return frames.dataset_source(source) if a_dataset else frames.from_frame(source)
    from . import delimited, label_studio, row_files

    path, name = Path(source), str(source)
    suffix = table_suffix(path)
    kind = suffix.removesuffix(".gz")
    binary = {".parquet": frames.read_parquet, ".pq": frames.read_parquet, ".xlsx": row_files.read_workbook}
    if suffix in binary:
        return binary[suffix](name, read_content(path))
    if kind not in (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json"):
        raise TableError(f"{path}: cannot read {suffix or 'a file without extension'}; use {KINDS}")
    raw = read_content(path)
    if foreign := [what for mark, what in _FOREIGN.items() if raw.startswith(mark)]:
        like = f"it looks like {foreign[0]} file under another name"
        raise TableError(f"{name} is not text: {like}; use {KINDS}")
    if kind in (".csv", ".tsv", ".txt"):
        opened = delimited.read_delimited(name, raw, sep, encoding, "\t" if kind == ".tsv" else ",")
    else:
        text, _ = delimited.decode(raw, encoding, name)
        if kind == ".json":
            opened = label_studio.read_label_studio(name, text, label)
        else:
            opened = row_files.read_json_lines(name, text)
    opened.packed = kind != suffix
    return opened


def read_content(path: Path) -> bytes:
    """The bytes of a file, unpacked where it is a .gz, up to `MOST_BYTES`: a bomb is refused before it fills memory."""
    try:
        raw = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL inside the path
        raise TableError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if path.suffix.lower() != ".gz":
        return raw
    try:
        content = gzip.GzipFile(fileobj=io.BytesIO(raw)).read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(f"{path} is not a readable .gz file ({error})") from None
    if len(content) > MOST_BYTES:
        raise TableError(f"{path} unpacks to more than {MOST_BYTES // 2**20:,} MiB; unpack it yourself if it is yours")
    return content


def as_labels(values: Sequence[Any], where: str) -> tuple[np.ndarray, np.ndarray]:
    """Labels of one type and the mask (n,) of blank ones (whose entries mean nothing).

    An empty cell is blank; in a column of numbers so are NA, nan and the like. Labels that are all numbers become
    integers or floats, but codes such as 007, and numbers that a float would merge, stay text.
    """
    codes = np.arange(len(values))
    if set(map(type, values)) <= {str, type(None)}:  # each text is looked at once
        place = {value: code for code, value in enumerate(dict.fromkeys(values))}
        codes = np.fromiter(map(place.__getitem__, values), np.intp, len(values))
        values = list(place)
    else:
        _refuse_nested(values, where)
        values = [None if is_missing(value) else value for value in values]
        if all(value is None or isinstance(value, bool | np.bool_) for value in values):
            blank = np.array([value is None for value in values])
            return np.array([bool(value) for value in values]), blank
    texts = [_spelled(value) for value in values]
    kept = set(texts) - MISSING
    numeric = {text for text in kept if NUMBER.fullmatch(text)}
    if kept and numeric == kept and not any(map(_CODE.match, numeric)):
        blank = np.array([text in MISSING for text in texts])
        return _number_labels(texts, blank)[codes], blank[codes]
    blank = np.array([text == "" for text in texts])
    if numeric and numeric != kept:
        shares = np.bincount(codes, minlength=len(texts))
        numbers = [text in numeric for text in texts]
        few = 2 * shares[numbers].sum() < shares[~blank].sum()
        odd = [text in (numeric if few else kept - numeric) for text in texts]
        row = int(np.argmax(np.array(odd)[codes]))
        raise TableError(f"{where} mixes numbers and text (row {row} is {short(texts[codes[row]])})")
    _refuse_several(kept, where)
    return np.array(texts, dtype=str)[codes], blank[codes]


def as_flags(values: Sequence[Any], where: str) -> np.ndarray:
    """A column of yes and no as booleans (n,); blank is no."""
    flags = []
    for row, value in enumerate(values):
        text = "" if is_missing(value) else plain(value).strip().lower()
        if text not in _TRUE | _FALSE:
            raise TableError(f"{where} must hold true or false (yes, no, 1, 0, blank); row {row} is {short(value)}")
        flags.append(text in _TRUE)
    return np.array(flags, dtype=bool)


def _refuse_nested(values: Sequence[Any], where: str) -> None:
    for row, cell in enumerate(values):
        if isinstance(cell, list | tuple):
            spans = cell and all(isinstance(part, list | tuple | dict) for part in cell)
            what = "spans or boxes" if spans else f"{len(cell)} labels at once"
            raise TableError(f"{where} holds {what} (row {row}); one label per row is supported")
        if isinstance(cell, dict | set | np.ndarray | bytes):
            raise TableError(f"{where} holds {type(cell).__name__} (row {row}), not labels")


def _refuse_several(labels: set[str], where: str) -> None:
    """Labels such as a;b beside a and b are several in one cell: each part is a label, or part of another such cell."""
    for sign in ";|,":
        several = {label: [part.strip() for part in label.split(sign)] for label in labels if sign in label}
        if sign == ",":  # a decimal comma
            several = {label: parts for label, parts in several.items() if not all(map(str.isdigit, parts))}
        parts = [part for found in several.values() for part in set(found)]
        known = labels | {part for part in parts if parts.count(part) > 1}
        whole = [label for label, found in several.items() if known.issuperset(found)]
        if whole:
            raise TableError(
                f"{where} holds several labels at once, such as {short(min(whole))}; one label per row is supported. "
                f"If this is one class, write it without {sign!r}"
            )


def _spelled(value: Any) -> str:
    if isinstance(value, str):
        return unguarded(value.strip())
    if value is None:
        return ""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, Decimal):
        return format(value, "f")
    return repr(float(value)) if isinstance(value, float | np.floating) else str(value)


def _number_labels(texts: list[str], blank: np.ndarray) -> np.ndarray:
    """Exact integers, else floats, else text where a float would merge labels or become infinite."""
    filled = ["0" if missing else text for text, missing in zip(texts, blank, strict=True)]
    try:
        exact = [int(text) for text in filled]
    except ValueError:
        values = np.array([float(text) for text in filled])
        if not np.isfinite(values).all():
            return np.array(texts)
        whole = (values == np.floor(values)).all() and np.abs(values).max() < 2**53
        return values.astype(np.int64) if whole else values
    if max(exact) < 2**63 and min(exact) >= -(2**63):
        return np.array(exact, dtype=np.int64)
    return np.array(texts)
