"""Cells of a column as numbers, texts or labels; what counts as missing is said here and nowhere else."""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np

from . import TableError

NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
# What a spreadsheet may take for a formula. Apostrophes in front count, so that guarding twice and undoing once
# gives back what was guarded.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_SPLITS = re.compile(r'[,;|\t"\r\n]')
_EMPTY = '""'  # a row of one empty cell, which would be no line else


def guarded(value: Any) -> Any:
    """`value` as a cell: text that a spreadsheet would run gets an apostrophe in front, all else stays.

    Examples
    --------
    >>> from floral_learn.tables.cells import guarded, unguarded
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


# Spellings of "no value", as spreadsheets, R, pandas and databases write it.
MISSING = frozenset(
    {"", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NULL", "null", "None", "NaT", "NaN", "nan", "-NaN"}
    | {"-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)
_LEADING_ZERO = re.compile(r"[+-]?0[0-9]")
_CODE = re.compile(r"\n[+-]?0[0-9]")  # in cells joined by line ends: one search in place of one per cell
_NO_NUMBER = re.compile(r"[^0-9+\-.eE\ninftyINFTY]")  # signs that no number has; float() would allow 1_000 and more
_DECIMAL_COMMA = re.compile(r"[+-]?([0-9]+|[0-9]{1,3}(\.[0-9]{3})+)?(,[0-9]+)?([eE][+-]?[0-9]+)?")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")
_TRUE, _FALSE = {"true", "yes", "y", "t", "1", "x"}, {"false", "no", "n", "f", "0", ""}


def is_missing(value: Any) -> bool:
    """None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA compares to NA, an array to an array
        return type(value).__name__ == "NAType"


def as_numbers(texts: Sequence[str], *, comma: bool) -> tuple[np.ndarray, bool] | None:
    """Floats (n,), NaN where missing, and whether commas were decimal; None where some text is not a number.

    `comma` says that a comma may be the decimal sign: it may where it is not the separator of the file. Codes such as
    007 are no numbers. Infinite values stay infinite.
    """
    filled = kept = texts
    if not MISSING.isdisjoint(texts):
        filled = [("nan" if text in MISSING else text) for text in texts]
        kept = [text for text in filled if text != "nan"]
    if not kept or _CODE.search(whole := "\n".join(["", *kept])):
        return None
    if not _NO_NUMBER.search(whole):
        with contextlib.suppress(ValueError):
            return np.fromiter(map(float, filled), float, len(filled)), False
    if comma and all(_DECIMAL_COMMA.fullmatch(text) and text[-1:].isdigit() for text in kept):
        return np.array([float(text.replace(".", "").replace(",", ".")) for text in filled]), True
    if all(NUMBER.fullmatch(text) or _THOUSANDS.fullmatch(text) for text in kept):
        return np.array([float(text.replace(",", "")) for text in filled]), False
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
    """Python values, None where missing, as `typed_column` types them; the type is that of all values together."""
    if any(isinstance(value, list | dict | set | tuple | np.ndarray | complex) for value in values):
        return None
    texts = as_texts(values)
    present = [value for value, text in zip(values, texts, strict=True) if text is not None]
    if not as_text and present and not any(isinstance(value, str) for value in present):
        if all(isinstance(value, bool | np.bool_) for value in present):
            return np.array([np.nan if text is None else float(v) for v, text in zip(values, texts, strict=True)])
        if all(isinstance(value, date) and getattr(value, "tzinfo", None) is None for value in present):
            return np.array([None if t is None else v for v, t in zip(values, texts, strict=True)], "datetime64[us]")
        # numbers beside None, as databases give them
        found = as_numbers(["" if text is None else text for text in texts], comma=False)
        if found is not None:
            return found[0]
    return np.array([*texts, None], dtype=object)[:-1]  # the None keeps numpy from making it a matrix of letters


def plain(value: Any) -> str:
    """A value as people write it: 3.0 is 3, bytes are text where they can be."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float | np.floating) and float(value).is_integer() and abs(float(value)) < 2**53:
        return str(int(value))
    return str(value)


def as_labels(values: Sequence[Any], where: str) -> tuple[np.ndarray, np.ndarray]:
    """Labels of one type and the mask (n,) of blank ones (whose entries mean nothing).

    An empty cell is blank; in a column of numbers so are NA, nan and the like. Labels that are all numbers become
    integers or floats, but codes such as 007, and numbers that a float would merge, stay text.
    """
    cells = [unguarded(v.strip()) if isinstance(v, str) else None if is_missing(v) else v for v in values]
    for row, cell in enumerate(cells):
        if isinstance(cell, list | tuple) and cell and all(isinstance(part, list | tuple | dict) for part in cell):
            raise TableError(f"{where} holds spans or boxes (row {row}), which are not supported; one label per row is")
        if isinstance(cell, list | tuple):
            raise TableError(f"{where} holds {len(cell)} labels at once (row {row}); one label per row is supported")
        if isinstance(cell, dict | set | np.ndarray | bytes):
            raise TableError(f"{where} holds {type(cell).__name__} (row {row}), not labels")
    if all(cell is None or isinstance(cell, bool | np.bool_) for cell in cells):
        return np.array([bool(cell) for cell in cells]), np.array([cell is None for cell in cells])
    texts = ["" if cell is None else cell if isinstance(cell, str) else _spelled(cell) for cell in cells]
    kept = {text for text in texts if text not in MISSING}
    numeric = {text for text in kept if NUMBER.fullmatch(text)}
    codes = any(_LEADING_ZERO.match(text) for text in numeric)
    if kept and numeric == kept and not codes:
        blank = np.array([text in MISSING for text in texts])
        return _number_labels(texts, blank), blank
    blank = np.array([text == "" for text in texts])
    if numeric and numeric != kept:
        odd = numeric if 2 * sum(text in numeric for text in texts) < (~blank).sum() else kept - numeric
        row = next(i for i, text in enumerate(texts) if text in odd)
        raise TableError(f"{where} mixes numbers and text (row {row} is {texts[row]!r})")
    return np.array(texts, dtype=str), blank


def as_flags(values: Sequence[Any], where: str) -> np.ndarray:
    """A column of yes and no as booleans (n,); blank is no."""
    flags = []
    for row, value in enumerate(values):
        text = "" if is_missing(value) else plain(value).strip().lower()
        if text not in _TRUE | _FALSE:
            raise TableError(f"{where} must hold true or false (yes, no, 1, 0, blank); row {row} is {value!r}")
        flags.append(text in _TRUE)
    return np.array(flags, dtype=bool)


def _spelled(value: Any) -> str:
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


def plain_name(name: str) -> str:
    """A name without case, outer and repeated spaces, and with hyphens and underscores as spaces."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().replace("_", " ").replace("-", " ").split())


def name_of(classes: np.ndarray, counts: np.ndarray, number: int) -> str:
    """A class and its rows in words: 'stays' (60 rows)."""
    return f"{str(classes[number])!r} ({int(counts[number]):,} row{'s' if counts[number] != 1 else ''})"


def merge_alike(classes: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """For each class the most frequent one of the same plain name (its own number for most), and the finds in words.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.tables.cells import merge_alike
    >>> merged, lines = merge_alike(np.array(["Graduate", "drop-out", "graduate"]), np.array([60, 40, 1]))
    >>> merged.tolist(), lines
    ([0, 1, 0], ["'graduate' (1 row) and 'Graduate' (60 rows) differ only in case or spaces: probably one class"])
    """
    merged = np.arange(len(classes))
    by_name: dict[Any, list[int]] = {}
    for number, name in enumerate(classes.tolist()):
        if isinstance(name, str):
            by_name.setdefault(plain_name(name), []).append(number)
    lines = []
    for same in by_name.values():
        chief = max(same, key=lambda c: counts[c])
        merged[same] = chief
        lines += [
            f"{name_of(classes, counts, c)} and {name_of(classes, counts, chief)} differ only in case or spaces: "
            "probably one class"
            for c in same
            if c != chief
        ]
    return merged, lines
