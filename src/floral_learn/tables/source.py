"""Open a table, whatever it is: what every kind has in common (columns, cells, a copy with new labels), and text files.

Of a delimited text every field is known by its place, so that one column can be replaced and all else stays byte for
byte. Other kinds of tables have files of their own.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from . import TableError
from .cells import as_labels, as_numbers, as_texts, typed_values

TEXT_FILES, JSON_FILES, STUDIO_FILES = (".csv", ".tsv", ".txt"), (".jsonl", ".ndjson"), (".json",)
PARQUET_FILES, EXCEL_FILES = (".parquet", ".pq"), (".xlsx",)
KINDS = ".csv, .tsv, .txt, .jsonl or .json of Label Studio (each also as .gz), .parquet or .xlsx"
MOST_BYTES = 2**30  # that a .gz may unpack to
SEPARATORS = (",", ";", "\t", "|")
_NEWLINE = re.compile(r"\r\n|\n|\r")
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_SAMPLE = 200_000  # characters from which a separator is guessed
_FOREIGN = {b"PK\x03\x04": "an Excel", b"PAR1": "a Parquet", b"\x1f\x8b": "a compressed"}


class Source(ABC):
    """A table before anyone decided what its columns are."""

    name: str
    columns: list[str]
    n_rows: int
    notes: list[str]
    like: Any = None  # a frame in whose library `Table.features` is made; pandas where it is None
    choice: str | None = None  # the label's column, where the kind of the file says it
    no_features: frozenset[int] | set[int] = frozenset()  # places of columns that say nothing about a row itself
    packed: bool = False  # whether the file is a .gz, and a relabelled copy has to be one

    @abstractmethod
    def cells(self, position: int) -> list[Any]:
        """The cells of a column: text, Python values, None where missing."""

    def typed(self, position: int, as_text: bool = False) -> np.ndarray | None:
        """The column as floats, dates or text (None where missing); None where its values are nested."""
        return typed_values(self.cells(position), as_text)

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
        alike = [name for name in self.columns if name.strip().casefold() == str(column).strip().casefold()]
        if near := alike or get_close_matches(str(column), self.columns, 1, 0.7):
            hint = f"; did you mean {near[0]!r}?" if not places else ""
        raise TableError(f"{self.name} {problem} {str(column)!r}; its columns are: {names}{hint}")

    def spelled(self, position: int, spellings: Iterable[Any]) -> dict[Any, Any]:
        """Label -> how most rows of that class spell it; `spellings` has one entry per row."""
        labels, blank = as_labels(self.cells(position), self.name)
        counts: dict[Any, Counter[Any]] = {}
        for spelling, label, missing in zip(spellings, labels.tolist(), blank, strict=True):
            if not missing:
                counts.setdefault(label, Counter())[spelling] += 1
        return {label: found.most_common(1)[0][0] for label, found in counts.items()}


def pairs(rows: np.ndarray, new: np.ndarray) -> list[tuple[int, Any]]:
    """Rows with their new labels as Python values."""
    return list(zip(np.asarray(rows).tolist(), np.asarray(new).tolist(), strict=True))


def reason(error: BaseException) -> str:
    """What an error of another library says, in its first line; its name where it says nothing."""
    return (str(error).splitlines() or [""])[0] or type(error).__name__


def table_suffix(path: str | os.PathLike[str]) -> str:
    """What says the kind of a file: its extension, with the one before .gz; empty where there is none."""
    if _is_dataset_folder(path):
        return ".parquet"
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def open_source(source: Any, sep: str | None, encoding: str | None, label: Any = None) -> Source:
    """A frame of pandas, polars or pyarrow, a Hugging Face data set, or the path of a file of one of the `KINDS`."""
    if not isinstance(source, str | os.PathLike):
        from . import frames, hugging_face

        a_dataset = type(source).__module__.split(".")[0] == "datasets"  # nothing is imported to find out
        return hugging_face.DatasetSource(source) if a_dataset else frames.FrameSource(source)
    if _is_dataset_folder(source):
        from .hugging_face import read_dataset_folder

        return read_dataset_folder(source)
    path, name = Path(source), str(source)
    suffix = table_suffix(path)
    packed = suffix.endswith(".gz")
    kind = suffix.removesuffix(".gz")
    if kind not in (*TEXT_FILES, *JSON_FILES, *STUDIO_FILES, *(() if packed else (*PARQUET_FILES, *EXCEL_FILES))):
        raise TableError(f"{path}: cannot read {suffix or 'a file without extension'}; use {KINDS}")
    opened = _opened(name, kind, _content(path), sep, encoding, label)
    opened.packed = packed
    return opened


def read_text(path: Path, encoding: str | None = None) -> str:
    """The text of a file, unpacked where it is a .gz."""
    return decode(_content(path), encoding, str(path))[0]


def _content(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL inside the path
        raise TableError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    return unpacked(raw, str(path)) if path.suffix.lower() == ".gz" else raw


def unpacked(raw: bytes, name: str) -> bytes:
    """The content of a .gz file, up to `MOST_BYTES`: a bomb is refused before it fills the memory."""
    try:
        content = gzip.GzipFile(fileobj=io.BytesIO(raw)).read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(f"{name} is not a readable .gz file ({error})") from None
    if len(content) > MOST_BYTES:
        raise TableError(f"{name} unpacks to more than {MOST_BYTES // 2**20:,} MiB; unpack it yourself if it is yours")
    return content


def _is_dataset_folder(path: str | os.PathLike[str]) -> bool:
    """Whether `save_to_disk` of a Hugging Face data set wrote this folder."""
    folder = Path(path)
    return folder.is_dir() and any((folder / name).is_file() for name in ("state.json", "dataset_dict.json"))


def _opened(name: str, kind: str, raw: bytes, sep: str | None, encoding: str | None, label: Any) -> Source:
    from . import frames, json_lines, label_studio, workbook  # each of them is a Source

    if kind in PARQUET_FILES:
        return frames.read_parquet(name, raw)
    if kind in EXCEL_FILES:
        return workbook.read_workbook(name, raw)
    if foreign := next((what for mark, what in _FOREIGN.items() if raw.startswith(mark)), None):
        raise TableError(f"{name} is not text: it looks like {foreign} file under another name; use {KINDS}")
    text, known = decode(raw, encoding, name)
    if kind in STUDIO_FILES:
        return label_studio.read_label_studio(name, text, label)
    if kind in JSON_FILES:
        return json_lines.read_json_lines(name, text, known)
    return read_delimited(name, text, known, sep, "\t" if kind == ".tsv" else ",")


Record = tuple[int, list[str]]  # where it begins, and its fields with quotes


class TextSource(Source):
    """A delimited text file: its text, its rows (fields with their quotes), and where each row begins in the text."""

    def __init__(self, name: str, text: str, encoding: str, sep: str, header: list[str], rows: list[Record]) -> None:
        self.name, self.text, self.encoding, self.sep = name, text, encoding, sep
        self.columns, self.n_rows, self.notes = header, len(rows), []
        self.starts, self.rows = [start for start, _ in rows], [fields for _, fields in rows]
        self.quoted = '"' in text
        self.last: tuple[int, list[str]] = (-1, [])  # a column is asked for twice in a row: as numbers, and as it is

    def cells(self, position: int) -> list[Any]:
        """Fields without quotes and outer blanks."""
        if self.last[0] != position:
            fields = [row[position] for row in self.rows]
            quoted = self.quoted and '"' in "".join(fields)
            self.last = position, list(map(unquoted if quoted else str.strip, fields))
        return self.last[1]

    def typed(self, position: int, as_text: bool = False) -> np.ndarray | None:
        """Numbers where every field is one, else text."""
        fields = self.cells(position)
        if not as_text and (found := as_numbers(fields, comma=self.sep != ",")) is not None:
            if found[1]:
                self.notes.append(f"decimal commas in {self.columns[position]}")
            return found[0]
        return np.array([*as_texts(fields), None], dtype=object)[:-1]

    def relabelled(self, position: int, rows: np.ndarray, new: np.ndarray) -> bytes:
        """The text with new labels, each spelled as most rows of that class spell it; all else byte for byte."""
        known = self.spelled(position, [row[position] for row in self.rows])
        parts, done = [], 0
        for row, label in sorted(dict(pairs(rows, new)).items()):
            fields = self.rows[row]
            begin = self.starts[row] + sum(map(len, fields[:position])) + position
            parts += [self.text[done:begin], known.get(label) or _quoted(str(label), self.sep)]
            done = begin + len(fields[position])
        try:
            return "".join([*parts, self.text[done:]]).encode(self.encoding)
        except UnicodeError as error:
            raise TableError(f"the new labels cannot be written as {self.encoding}: {error}") from None


def decode(raw: bytes, encoding: str | None, name: str) -> tuple[str, str]:
    """The text and the encoding that gives `raw` back; without `encoding`, a byte order mark decides, else UTF-8."""
    chosen = encoding or next((known for mark, known in _MARKS if raw.startswith(mark)), "utf-8")
    try:
        return raw.decode(chosen), chosen
    except UnicodeDecodeError as error:
        raise TableError(
            f"{name} is not {chosen} text (byte {error.start:,}); give its encoding, such as --encoding cp1252"
        ) from None
    except (LookupError, ValueError) as error:
        raise TableError(f"--encoding {encoding!r} cannot be used: {error}") from None


def read_delimited(name: str, text: str, encoding: str, sep: str | None, usual: str = ",") -> TextSource:
    """Split `text`; without `sep` the `usual` one, or another common one where the first lines fit only that."""
    guessed = sep is None
    sep = _guess(text, usual) if sep is None else sep
    if len(sep) != 1 or sep in '"\r\n':
        raise TableError(f"--sep {sep!r} must be one character, other than a quote or a line end")
    records = list(_records(text, sep, name))
    if not records:
        raise TableError(f"{name} is empty")
    header = [unquoted(cell) for cell in records[0][1]]
    rows = [record for record in records[1:] if len(header) == 1 or len(record[1]) > 1 or record[1][0].strip()]
    if not rows:
        raise TableError(f"{name} has a header and no data rows")
    for number, (start, fields) in enumerate(rows):
        if len(fields) != len(header):
            line = len(_NEWLINE.findall(text, 0, start)) + 1
            hint = "; give the separator with --sep" if len(header) == 1 or len(fields) == 1 else ""
            raise TableError(
                f"{name}, line {line} (row {number}): {len(fields)} fields where the header has {len(header)}{hint}"
            )
    source = TextSource(name, text, encoding, sep, header, rows)
    if guessed and sep != usual:
        source.notes.append(f"the separator is {sep!r}")
    return source


def unquoted(cell: str) -> str:
    """A field without its quotes and outer blanks."""
    if len(cell) > 1 and cell[0] == cell[-1] == '"':
        cell = cell[1:-1].replace('""', '"')
    return cell.strip()


def _guess(text: str, usual: str) -> str:
    """`usual` where the header has it; else the common separator that cuts header and first rows alike."""
    sample = text[:_SAMPLE]
    if len(text) > _SAMPLE:
        sample = sample[: max(sample.rfind("\n"), sample.rfind("\r"), 0)] or sample
    for sep in (usual, *SEPARATORS):
        try:
            widths = [len(fields) for _, fields in _records(sample, sep, "")][:50]
        except TableError:
            continue
        if widths and widths[0] > 1 and (sep == usual or len(set(widths)) == 1):
            return sep
    return usual


def _records(text: str, sep: str, name: str) -> Iterator[Record]:
    """Yield begin and raw fields of every record that is not an empty line (RFC 4180)."""
    field_of = _field_pattern(sep).match
    position, end = (1 if text.startswith("\ufeff") else 0), len(text)
    if '"' not in text and "\r" not in text:  # most files: lines are records
        for line in (text[1:] if position else text).split("\n"):
            if line:
                yield position, line.split(sep)
            position += len(line) + 1
        return
    while position < end:
        match = _NEWLINE.search(text, position)
        line = text[position : match.start() if match else end]
        if '"' in line:
            fields, following = _quoted_record(text, sep, position, name, field_of)
        else:
            fields, following = line.split(sep), match.end() if match else end
        if line or len(fields) > 1:
            yield position, fields
        position = following


def _field_pattern(sep: str) -> re.Pattern[str]:
    """A quoted field up to the quote before a separator or line end; else everything up to there."""
    ends = f"[{re.escape(sep)}\r\n]"
    return re.compile(rf'"[^"]*(?:""[^"]*)*"(?={ends}|\Z)|[^{re.escape(sep)}\r\n]*')


def _quoted_record(text: str, sep: str, position: int, name: str, field_of: Any) -> tuple[list[str], int]:
    """Raw fields of one record that has quotes, and where the next one begins."""
    begin, fields = position, []
    while True:
        match = field_of(text, position)
        field, stop = match.group(), match.end()
        if field[:1] == '"' and (len(field) < 2 or field[-1] != '"') and text.find('"', position + 1) < 0:
            line = len(_NEWLINE.findall(text, 0, begin)) + 1
            raise TableError(f"{name}, line {line}: a quote is opened and never closed")
        fields.append(field)
        if text[stop : stop + 1] != sep:
            return fields, stop + (2 if text.startswith("\r\n", stop) else 1)
        position = stop + 1


def _quoted(text: str, sep: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in (sep, '"', "\n", "\r")) else text
