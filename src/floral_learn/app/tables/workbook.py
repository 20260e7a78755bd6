"""Excel workbooks: the first sheet, with a header in its first row that is not empty."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from typing import Any

import pandas as pd

from floral_learn.base.cells import TableError, reason
from floral_learn.base.extras import install_line
from floral_learn.base.files import MOST_BYTES

from .frames import MOST_CELLS
from .source import Source

MOST_ROWS = 2**20  # of a sheet in Excel; a few bytes can claim a row far below, with empty ones up to it


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
    frame = pd.DataFrame({place: pd.Series(cells, dtype=object) for place, cells in enumerate(zip(*rows, strict=True))})
    frame.columns = pd.Index(header, dtype=object)

    def write(place: int, values: list[Any]) -> bytes:
        """All of it is read here, other sheets and formats too, of which reading took the cells alone."""
        try:
            whole = openpyxl.load_workbook(io.BytesIO(raw))
        except MemoryError:
            raise
        except Exception as error:
            raise TableError(f"{name} cannot be copied with other labels ({reason(error)})") from None
        for number, value, old in zip(numbers, values, (row[place] for row in rows), strict=True):
            if value != old or type(value) is not type(old):
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
        width = max((place for place, value in enumerate(line, 1) if value is not None), default=0)
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
