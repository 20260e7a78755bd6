"""Cells of a label column as labels of one type, and of a column of flags as truth values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from floral_learn.base.cells import CODE, MISSING, NUMBER, TableError, is_missing, plain, short, unguarded

_CODE = re.compile(CODE)
_TRUE, _FALSE = {"true", "yes", "y", "t", "1", "x"}, {"false", "no", "n", "f", "0", ""}


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
            return np.array([bool(value) for value in values]), np.array([value is None for value in values])
    texts = [_spelled(value) for value in values]
    kept = set(texts) - MISSING
    numeric = {text for text in kept if NUMBER.fullmatch(text)}
    if kept and numeric == kept and not any(map(_CODE.match, numeric)):
        blank = np.array([text in MISSING for text in texts])
        return _number_labels(texts, blank)[codes], blank[codes]
    blank = np.array([text == "" for text in texts])
    if numeric and numeric != kept:
        shares = np.bincount(codes, minlength=len(texts))
        few = 2 * shares[[text in numeric for text in texts]].sum() < shares[~blank].sum()
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
        if isinstance(cell, list | tuple) and cell and all(isinstance(part, list | tuple | dict) for part in cell):
            raise TableError(f"{where} holds spans or boxes (row {row}), which are not supported; one label per row is")
        if isinstance(cell, list | tuple):
            raise TableError(f"{where} holds {len(cell)} labels at once (row {row}); one label per row is supported")
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
        if whole := sorted(label for label, found in several.items() if known.issuperset(found)):
            raise TableError(
                f"{where} holds several labels at once, such as {short(whole[0])}; one label per row is supported. If "
                f"this is one class, write it without {sign!r}"
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
