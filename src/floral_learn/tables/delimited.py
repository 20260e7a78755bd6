"""A delimited text file whose every field is known by its place, so that one column can be replaced in the text."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import TableError
from .cells import as_numbers, as_texts
from .source import Source, pairs

SEPARATORS = (",", ";", "\t", "|")
_NEWLINE = re.compile(r"\r\n|\n|\r")
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_SAMPLE = 200_000  # characters from which a separator is guessed

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
