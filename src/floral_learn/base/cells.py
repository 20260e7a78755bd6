"""Cells of a column as numbers or texts; what counts as missing is said here and nowhere else."""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

import numpy as np


class TableError(ValueError):
    """A table cannot be used; the message is one line for its owner and names the option that fixes it.

    Examples
    --------
    >>> import pandas as pd
    >>> from floral_learn.base import TableEncoder, TableError
    >>> try:
    ...     TableEncoder(text=["review"]).fit(pd.DataFrame({"a": [1.0, 2.0]}))
    ... except TableError as error:
    ...     print(error)
    text='review' is not a column; the columns are: 'a'
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(" ".join(str(message).splitlines()))  # a column's name, too, may have line ends


class MissingColumn(TableError):
    """A table has no column of a name that was asked for."""


# Spellings of "no value", as spreadsheets, R, pandas and databases write it.
MISSING = frozenset(
    {"", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NULL", "null", "None", "NaT", "NaN", "nan", "-NaN"}
    | {"-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
CODE = r"^[+-]?0[0-9]"  # 007 is no number
_NO_NUMBER = re.compile(r"[^0-9+\-.eEinftyINFTY]")  # signs that no number has; float() would allow 1_000 and more
_DECIMAL_COMMA = re.compile(r"[+-]?([0-9]+|[0-9]{1,3}(\.[0-9]{3})+)?(,[0-9]+)?([eE][+-]?[0-9]+)?")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")
# What a spreadsheet may take for a formula. Apostrophes in front count, so that guarding twice and undoing once
# gives back what was guarded.
FORMULA = "'*[=+\\-@\\t\\r\\n\uff1d\uff0b\uff0d\uff20]"
_FORMULA = re.compile(FORMULA)
_SPLITS = re.compile(r'[,;|\t"\r\n]')
_EMPTY = '""'  # a row of one empty cell, which would be no line else


def is_missing(value: Any) -> bool:
    """None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA compares to NA, an array to an array
        return type(value).__name__ == "NAType"


def short(value: Any, most: int = 60) -> str:
    """A name or label for a message, in quotes, cut where it is long."""
    text = str(value)
    return repr(text if len(text) <= most else text[: most - 3] + "...")


def some(names: Iterable[Any]) -> str:
    """The first twelve names for a message, and how many more there are."""
    shown = list(map(short, names))
    return ", ".join(shown[:12]) + (f" and {len(shown) - 12:,} more" if len(shown) > 12 else "")


def reason(error: BaseException) -> str:
    """What an error of another library says, in its first line; its name where it says nothing."""
    return (str(error).splitlines() or [""])[0] or type(error).__name__


def as_numbers(texts: Sequence[str], *, comma: bool) -> tuple[np.ndarray, bool] | None:
    """Floats (n,), NaN where missing, and whether commas were decimal; None where some text is not a number.

    `comma` says that a comma may be the decimal sign: it may where it is not the separator of the file. Codes such as
    007 are no numbers. Infinite values stay infinite.
    """
    kept = [text for text in texts if text not in MISSING]
    if not kept or any(map(re.compile(CODE).match, kept)):
        return None

    def filled(read: Any) -> np.ndarray:
        return np.array([np.nan if text in MISSING else read(text) for text in texts], dtype=float)

    if not any(map(_NO_NUMBER.search, kept)):
        with contextlib.suppress(ValueError):
            return filled(float), False
    if comma and all(_DECIMAL_COMMA.fullmatch(text) and text[-1:].isdigit() for text in kept):
        return filled(lambda text: float(text.replace(".", "").replace(",", "."))), True
    if all(NUMBER.fullmatch(text) or _THOUSANDS.fullmatch(text) for text in kept):
        return filled(lambda text: float(text.replace(",", ""))), False
    return None


def as_texts(values: Iterable[Any]) -> list[str | None]:
    """Cells as text, None where missing."""
    out: list[str | None] = []
    for value in values:
        if isinstance(value, str):
            text = unguarded(value.strip())
            out.append(None if text in MISSING else text)
        else:
            out.append(None if is_missing(value) else plain(value))
    return out


def typed_values(values: list[Any], as_text: bool = False) -> np.ndarray | None:
    """Python values as floats, datetime64, or texts with None where missing; None where they are nested or complex.

    The type is that of all values together: whole numbers and truth values beside None, as databases give them, are
    floats.
    """
    if any(isinstance(value, list | dict | set | tuple | np.ndarray | complex) for value in values):
        return None
    texts = as_texts(values)
    known = [None if text is None else value for value, text in zip(values, texts, strict=True)]
    present = [value for value in known if value is not None]
    if not as_text and present and not any(isinstance(value, str) for value in present):
        if all(isinstance(value, bool | np.bool_) for value in present):
            return np.array([np.nan if value is None else float(value) for value in known])
        if all(isinstance(value, date) and getattr(value, "tzinfo", None) is None for value in present):
            return np.array(known, "datetime64[us]")
        found = as_numbers(["" if text is None else text for text in texts], comma=False)
        if found is not None:
            return found[0]
    return objects(texts)


def objects(values: Iterable[Any]) -> np.ndarray:
    """An array (n,) of Python objects, whatever they are."""
    return np.array([*values, None], dtype=object)[:-1]  # the None keeps numpy from making it a matrix of letters


def plain(value: Any) -> str:
    """A value as people write it: 3.0 is 3, bytes are text where they can be."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float | np.floating) and float(value).is_integer() and abs(float(value)) < 2**53:
        return str(int(value))
    return str(value)


def guarded(value: Any) -> Any:
    """`value` as a cell: text that a spreadsheet would run gets an apostrophe in front, all else stays.

    Examples
    --------
    >>> from floral_learn.base.cells import guarded, unguarded
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
    lines = [",".join(map(_field, cells)) for cells in (header, *rows)]
    return "".join(f"{line or _EMPTY}\n" for line in lines).encode()


def _field(value: Any) -> str:
    """A cell as it stands in the file, in quotes where it holds any separator that a spreadsheet may split at."""
    text = "" if value is None else str(guarded(value))
    if not text or not _SPLITS.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'


def frame_bytes(frame: Any) -> bytes:
    """A pandas frame as a CSV file without its index, every cell guarded, missing ones empty."""
    filled = frame.astype(object).where(frame.notna(), "")
    return csv_bytes(list(map(str, frame.columns)), filled.itertuples(index=False, name=None))


def plain_name(name: str) -> str:
    """A name without case, invisible letters, outer and repeated spaces; hyphens and underscores are spaces."""
    return " ".join(_visible(name).casefold().replace("_", " ").replace("-", " ").split())


def _visible(name: str) -> str:
    """A name as it looks: accents composed, letters without width left out."""
    composed = unicodedata.normalize("NFKC", name)
    return "".join(letter for letter in composed if unicodedata.category(letter) != "Cf")


def name_of(classes: np.ndarray, counts: np.ndarray, number: int) -> str:
    """A class and its rows in words: 'stays' (60 rows)."""
    rows = "row" if counts[number] == 1 else "rows"
    return f"{short(classes[number])} ({int(counts[number]):,} {rows})"


def merge_alike(classes: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """For each class the most frequent one of the same plain name (its own number for most), and a note on each pair.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.base.cells import merge_alike
    >>> merged, notes = merge_alike(np.array(["Graduate", "drop-out", "graduate"]), np.array([60, 40, 1]))
    >>> merged.tolist()
    [0, 1, 0]
    >>> print(notes[0])
    'graduate' (1 row) and 'Graduate' (60 rows) differ only in case or spaces: probably one class
    """
    merged = np.arange(len(classes))
    by_name: dict[Any, list[int]] = {}
    for number, name in enumerate(classes.tolist()):
        if isinstance(name, str):
            by_name.setdefault(plain_name(name), []).append(number)
    notes = []
    for same in by_name.values():
        chief = max(same, key=lambda c: counts[c])
        merged[same] = chief
        for c in same:
            if c != chief:
                look = _visible(classes[c]) == _visible(classes[chief])
                how = "look alike and are spelled with other letters" if look else "differ only in case or spaces"
                pair = f"{name_of(classes, counts, c)} and {name_of(classes, counts, chief)}"
                notes.append(f"{pair} {how}: probably one class")
    return merged, notes
