"""Excel workbooks: the first sheet, with a header in its first row that is not empty."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np

from floral_learn.base.extras import install_line

from . import TableError
from .source import Source, pairs, reason

MOST_BYTES = 2**28  # that the parts of a workbook may unpack to, and cells that its sheet may have
MOST_CELLS = 20_000_000
MOST_ROWS = 2**20  # of a sheet in Excel; a few bytes can claim a row far below, with empty ones up to it


class WorkbookSource(Source):
    """The values of a sheet, as Excel last computed them."""

    def __init__(self, name: str, raw: bytes, sheet: str, header: list[str], rows: list[tuple[int, list[Any]]]) -> None:
        self.name, self.raw, self.sheet, self.columns, self.rows = name, raw, sheet, header, rows
        self.n_rows, self.notes = len(rows), []

    def cells(self, position: int) -> list[Any]:
        """Python values, None where empty."""
        return [row[position] for _, row in self.rows]

    def relabelled(self, position: int, rows: np.ndarray, new: np.ndarray) -> bytes:
        """The workbook with new labels; formulas, formats and other sheets stay as far as openpyxl keeps them."""
        try:  # all of it is read here, other sheets and formats too, of which reading took the cells alone
            book = _openpyxl().load_workbook(io.BytesIO(self.raw))
        except Exception as error:
            if isinstance(error, MemoryError | ImportError):
                raise
            raise TableError(f"{self.name} cannot be copied with other labels ({reason(error)})") from None
        sheet, known = book[self.sheet], self.spelled(position, self.cells(position))
        for row, label in pairs(rows, new):
            cell = sheet.cell(row=self.rows[row][0], column=position + 1)
            cell.value = known.get(label, label)
            if isinstance(cell.value, str):
                cell.data_type = "s"  # text that begins with "=" stays text
        stream = io.BytesIO()
        book.save(stream)
        return stream.getvalue()


def read_workbook(name: str, raw: bytes) -> WorkbookSource:
    """The first sheet of a workbook; one that would unpack to too much is refused before it is read."""
    openpyxl = _openpyxl()
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
        header, rows = _read(sheet.iter_rows(values_only=True), name)
    except TableError:
        raise
    except Exception as error:  # openpyxl lets through what its XML, zip and date readers raise
        if isinstance(error, MemoryError):
            raise
        raise TableError(f"{name} is not a readable .xlsx workbook ({reason(error)})") from None
    source = WorkbookSource(name, raw, sheet.title, header, rows)
    if len(book.worksheets) > 1:
        source.notes.append(f"sheet {sheet.title!r}, the first of {len(book.worksheets)}")
    return source


def _read(lines: Any, name: str) -> tuple[list[str], list[tuple[int, list[Any]]]]:
    """Names of the columns, and number (from 1) and values of every row that is not empty."""
    header: list[str] = []
    rows: list[tuple[int, list[Any]]] = []
    for number, line in enumerate(lines, 1):
        if number > MOST_ROWS:
            raise TableError(f"{name} has rows below {MOST_ROWS:,}, where Excel's sheets end")
        values = list(line)
        while values and values[-1] is None:
            values.pop()
        if not values:
            continue
        if not header:
            header = ["" if value is None else str(value).strip() for value in values]
            continue
        if len(values) > len(header):
            raise TableError(f"{name}, row {number}: {len(values)} cells where the header has {len(header)}")
        rows.append((number, values + [None] * (len(header) - len(values))))
        if len(rows) * len(header) > MOST_CELLS:
            raise TableError(f"{name} has more than {MOST_CELLS:,} cells; save it as .csv or .parquet")
    if not rows:
        raise TableError(f"{name} has a header and no data rows" if header else f"{name} is empty")
    return header, rows


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError:
        raise ImportError(f".xlsx files need openpyxl: {install_line('excel')}") from None
    return openpyxl
