"""Files that are read row by row: Excel workbooks (the first sheet) and JSON lines, one object per line."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterable
from typing import Any

import pandas as pd

from floral_learn.base.cells import TableError, reason, short
from floral_learn.base.extras import install_line
from floral_learn.base.files import MOST_BYTES

from .frames import MOST_CELLS
from .source import Source

# of a sheet in Excel; a few bytes can claim a row far below, with empty ones up to it
MOST_ROWS = 2**20


# What only Prodigy puts beside a task, and its three answers.
_PRODIGY = {"_input_hash", "_task_hash", "_session_id", "_annotator_id", "_view_id"}
_ANSWERS = ("accept", "reject", "ignore")
# A line ends in a line feed or carriage return alone: JSON strings may hold Unicode's other line ends.
_LINE_END = re.compile(r"\r\n|\n|\r")


def read_workbook(name: str, raw: bytes) -> Source:
    """The first sheet of a workbook; one that would unpack to too much is refused before it is read."""
    try:
        import openpyxl
    except ImportError:
        raise ImportError(f".xlsx files need openpyxl: {install_line('excel')}") from None
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            size = sum(part.file_size for part in archive.infolist())
        if size > MOST_BYTES:
            raise TableError(f"{name} unpacks to {size // 2**20:,} MiB; at most {MOST_BYTES // 2**20:,} are read")
        book = openpyxl.load_workbook(io.BytesIO(raw), read_only=True, data_only=True)
        if not book.worksheets:
            raise TableError(f"{name} has no sheet with cells")
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # what the file says about its size may be wrong
        header, numbers, rows = _read(sheet.iter_rows(values_only=True), name)
    except (TableError, MemoryError):
        raise
    except Exception as error:  # openpyxl lets through what its XML, zip and date readers raise
        raise TableError(f"{name} is not a readable .xlsx workbook ({reason(error)})") from None
    frame = _frame(header, zip(*rows, strict=True))

    def write(place: int, values: list[Any]) -> bytes:
        """All of it is read here, other sheets and formats too, of which reading took the cells alone."""
        try:
            whole = openpyxl.load_workbook(io.BytesIO(raw))
        except MemoryError:
            raise
        except Exception as error:
            raise TableError(f"{name} cannot be copied with other labels ({reason(error)})") from None
        for number, value, row in zip(numbers, values, rows, strict=True):
            if value != row[place] or type(value) is not type(row[place]):
                cell = whole[sheet.title].cell(row=number, column=place + 1)
                cell.value = value
                if isinstance(value, str):
                    cell.data_type = "s"  # text that begins with "=" stays text
        stream = io.BytesIO()
        whole.save(stream)
        return stream.getvalue()

    source = Source(name, frame, write)
    if len(book.worksheets) > 1:
        source.notes.append(f"sheet {sheet.title!r}, the first of {len(book.worksheets)}")
    return source


def _read(lines: Iterable[tuple[Any, ...]], name: str) -> tuple[list[str], list[int], list[tuple[Any, ...]]]:
    """Names of the columns, and number (from 1) and values of every row that is not empty."""
    header: list[str] = []
    numbers: list[int] = []
    rows: list[tuple[Any, ...]] = []
    for number, line in enumerate(lines, 1):
        if number > MOST_ROWS:
            raise TableError(f"{name} has rows below {MOST_ROWS:,}, where Excel's sheets end")
        filled = [place for place, value in enumerate(line, 1) if value is not None]
        width = max(filled, default=0)
        if not header:
            header = ["" if value is None else str(value).strip() for value in line[:width]]
        elif width > len(header):
            raise TableError(f"{name}, row {number}: {width} cells where the header has {len(header)}")
        elif width:
            numbers.append(number)
            rows.append((*line[:width], *[None] * (len(header) - width)))
        if len(rows) * len(header) > MOST_CELLS:
            raise TableError(f"{name} has more than {MOST_CELLS:,} cells; save it as .csv or .parquet")
    if not rows:
        raise TableError(f"{name} has a header and no data rows" if header else f"{name} is empty")
    return header, numbers, rows


def _frame(names: list[str], columns: Iterable[Any]) -> pd.DataFrame:
    """Columns of Python values as they are; names may repeat."""
    series = [pd.Series(cells, dtype=object) for cells in columns]
    frame = pd.DataFrame(dict(enumerate(series)))
    frame.columns = pd.Index(names, dtype=object)
    return frame


def read_json_lines(name: str, text: str) -> Source:
    """The objects of a JSON Lines file; a line that is none is an error with its number."""
    lines, rows = [], []
    for number, line in enumerate(_LINE_END.split(text.removeprefix("\ufeff")), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            problem = getattr(error, "msg", None) or reason(error)
            raise TableError(f"{name}, line {number}: not a JSON object ({problem})") from None
        if not isinstance(row, dict):
            raise TableError(f"{name}, line {number}: an object {{...}} is needed, not {type(row).__name__}")
        lines.append(line)
        rows.append(row)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    # else a small file of other names on every line fills the memory
    if len(columns) * len(rows) > 100 * len(text):
        raise TableError(f"{name} has {len(columns):,} different names in its objects, too many for columns")
    of_prodigy = bool(rows) and all(_PRODIGY & row.keys() and row.get("answer") in _ANSWERS for row in rows)
    cells = {column: _cells(rows, column, of_prodigy) for column in columns}

    def write(place: int, values: list[Any]) -> bytes:
        column, out = columns[place], list(lines)
        changes = zip(rows, values, cells[column], strict=True)
        for number, (row, value, old) in enumerate(changes):
            if value != old or type(value) is not type(old):
                made = [value] if isinstance(row.get(column), list) else value
                out[number] = json.dumps(row | {column: made}, ensure_ascii=False)
        return "".join(f"{line}\n" for line in out).encode("utf-8", "surrogatepass")

    source = Source(name, _frame(columns, cells.values()), write)
    if of_prodigy:
        source.notes.append("written by Prodigy: choices of rejected tasks, and answers 'ignore', are left blank")
    return source


def _cells(rows: list[dict[str, Any]], name: str, of_prodigy: bool) -> list[Any]:
    """Python values, None where an object lacks the name; lists of one text, as doccano has them, are texts."""
    values = [row.get(name) for row in rows]
    if of_prodigy and name == "accept":  # choices count where the answer is to accept them
        values = [row.get(name) if row["answer"] == "accept" else None for row in rows]
    if of_prodigy and name == "answer":
        values = [None if value == "ignore" else value for value in values]
    if not all(value is None or _one_text(value) for value in values):
        return values
    return [value[0] if value else None for value in values]


def _one_text(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= 1 and all(isinstance(part, str) for part in value)


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in members:
        if key in found:
            raise ValueError(f"the name {short(key)} stands twice in one object")
        found[key] = value
    return found
