"""Cells of the CSV files that we write: no spreadsheet runs one as a formula, and our readers get the text back."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
# What a spreadsheet may take for a formula. Apostrophes in front count, so that guarding twice and undoing once
# gives back what was guarded.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def guarded(value: Any) -> Any:
    """`value` as a cell: text that a spreadsheet would run gets an apostrophe in front, all else stays.

    Examples
    --------
    >>> from floral_learn.tables.csv_cells import guarded, unguarded
    >>> guarded("=1+1"), guarded("-1.5"), guarded("spam")
    ("'=1+1", '-1.5', 'spam')
    >>> unguarded(guarded("=1+1"))
    '=1+1'
    """
    if not isinstance(value, str) or not _FORMULA.match(value) or NUMBER.fullmatch(value):
        return value
    return "'" + value


def unguarded(text: str) -> str:
    """The text behind a cell that `guarded` made."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def csv_bytes(header: Sequence[Any], rows: Iterable[Sequence[Any]]) -> bytes:
    """A CSV file as UTF-8, every cell guarded."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([guarded(name) for name in header])
    for row in rows:
        writer.writerow([guarded(value) for value in row])
    return stream.getvalue().encode()


def frame_bytes(frame: Any) -> bytes:
    """A pandas frame as a CSV file without its index, every cell guarded, missing ones empty."""
    filled = frame.astype(object).where(frame.notna(), "")
    return csv_bytes(list(map(str, frame.columns)), filled.itertuples(index=False, name=None))
