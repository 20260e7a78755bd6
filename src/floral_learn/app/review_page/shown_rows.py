"""A row as a person would read it: texts in full, numbers with their place among the others, pictures by name."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.app.pages import most_telling, percent
from floral_learn.encoders.pictures import PICTURE_NAMES, Unreadable, thumbnail

MOST_NUMBERS = 8  # number columns shown at once; the others are one press away
LINE = 60  # characters of a line: longer values are read as texts, and no reviewer's name is longer
_TYPES = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF87a": "gif", b"GIF89a": "gif", b"BM": "bmp"}


@dataclass(frozen=True)
class Column:
    """What a column is to a reader, and how its values are spread (strips: shares of the shown range in [0, 1])."""

    name: str
    kind: str  # "text", "number", "category" or "image"
    ticks: list[float] = field(default_factory=list)
    ends: tuple[float, float] = (0.0, 1.0)
    sorted_values: np.ndarray | None = None
    main: bool = True


class ShownRows:
    """The table behind the questions.

    Parameters
    ----------
    frame : pandas.DataFrame of n rows
        The columns to show, without the label.
    labels : ndarray of shape (n,)
        Labels as given.
    folder : path
        The table's folder; a column that names files in it is shown as pictures.
    ids : sequence of n texts, optional
        Names of the rows.
    numbers : int ndarray of shape (n,), optional
        Rows of the file, from 0, where some of its rows are not among these.
    """

    def __init__(self, frame: Any, labels: np.ndarray, *, folder: Path, ids: Any = None, numbers: Any = None) -> None:
        self.frame, self.labels, self.folder, self.ids = frame, labels, Path(folder), ids
        self.numbers = np.arange(len(labels)) if numbers is None else numbers
        self.classes = np.unique(labels)
        self.columns = [self._column(name) for name in frame.columns]
        kinds = [column.kind for column in self.columns]
        self.pictures = kinds.index("image") if "image" in kinds else None
        numeric = [i for i, kind in enumerate(kinds) if kind == "number"]
        if len(numeric) > MOST_NUMBERS:
            order = most_telling(frame.iloc[:, numeric], labels)
            for i in order[MOST_NUMBERS:]:
                self.columns[numeric[i]] = replace(self.columns[numeric[i]], main=False)

    def _column(self, name: Any) -> Column:
        import pandas as pd

        column = self.frame[name]
        if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            values = np.sort(column.dropna().to_numpy(dtype=float))
            values = values[np.isfinite(values)]
            if not len(values):
                return Column(str(name), "category")
            shown = np.percentile(values, np.arange(1, 100))
            low, high = shown[0], shown[-1]
            if high <= low:
                low, high = values[0], max(values[-1], values[0] + 1)
            ticks = np.clip((shown - low) / (high - low), 0, 1).round(3).tolist()
            return Column(str(name), "number", ticks, (float(low), float(high)), values)
        texts = column.dropna().astype(str)
        named = texts.str.lower().str.endswith(PICTURE_NAMES)
        mostly = 2 * named.sum() > len(texts)
        if mostly and any(inside(self.folder, text) for text in texts[named]):
            return Column(str(name), "image")
        long = len(texts) and texts.str.len().max() > LINE
        return Column(str(name), "text" if long else "category")

    def name(self, row: int) -> str:
        """What a person calls the row."""
        return str(self.ids[row]) if self.ids is not None else f"row {self.numbers[row]:,}"

    def names(self, row: int) -> list[str]:
        """The row's number in the file and its id, as the files of the end have them."""
        return [str(self.numbers[row]), "" if self.ids is None else str(self.ids[row])]

    def card(self, row: int, nearest: Sequence[int] = ()) -> dict[str, Any]:
        """All that the page shows of one row, and a line for each of the `nearest` ones."""
        fields = [self._field(i, column, row) for i, column in enumerate(self.columns)]
        near = [{"row": r, "name": self.name(r), "line": self.line(r), "column": self.pictures} for r in nearest]
        return {"row": row, "name": self.name(row), "fields": fields, "nearest": near}

    def _field(self, i: int, column: Column, row: int) -> dict[str, Any]:
        value = self.frame.iat[row, i]
        shown: dict[str, Any] = {"name": column.name, "kind": column.kind}
        shown |= {"value": as_text(value), "main": column.main}
        if missing(value):
            return {**shown, "kind": "category", "value": "", "note": "missing"}
        if column.kind == "number" and column.sorted_values is not None and np.isfinite(value):
            values, (low, high) = column.sorted_values, column.ends
            below = np.searchsorted(values, value, "left") / len(values)
            above = 1 - np.searchsorted(values, value, "right") / len(values)
            place = round(float(np.clip((value - low) / (high - low), 0, 1)), 3)
            note = _standing(below, above)
            return {**shown, "ticks": column.ticks, "place": place, "note": note}
        if column.kind == "image":
            return {**shown, "image": inside(self.folder, str(value)) is not None, "column": i}
        if column.kind == "category":
            same = self.frame.iloc[:, i] == value
            share = percent(float(same.mean()))
            return {**shown, "note": f"as in {share} of the rows" if same.sum() > 1 else ""}
        return shown

    def difference(self, row: int, other: int) -> str:
        """What the reader of `row` does not know of `other`: the values that differ, in full."""
        parts = []
        for i, column in enumerate(self.columns):
            known, new = as_text(self.frame.iat[row, i]), as_text(self.frame.iat[other, i])
            if known != new:
                parts.append(f"{column.name} {new or '?'}")
        return ", ".join(parts) or "the same in every column"

    def line(self, row: int, most: int = 140) -> str:
        """One line that stands for a row: its texts, or its first values with their names."""
        texts = [i for i, column in enumerate(self.columns) if column.kind == "text"]
        if texts:
            line = " ".join(as_text(self.frame.iat[row, i]) for i in texts)
        else:
            main = [i for i, column in enumerate(self.columns) if column.main and column.kind != "image"]
            line = ", ".join(f"{self.columns[i].name} {as_text(self.frame.iat[row, i]) or '?'}" for i in main)
        line = " ".join(line.split())
        return line if len(line) <= most else line[: most - 1] + "…"

    def image(self, row: int, i: int, small: bool = False) -> tuple[bytes, str] | None:
        """The bytes and the type of the picture that a cell names; None where there is none to show.

        Small ones, and kinds of pictures that browsers do not show (TIFF), come as JPEG.
        """
        if not (0 <= row < len(self.labels) and 0 <= i < len(self.columns)):
            return None
        if self.columns[i].kind != "image":
            return None
        path = inside(self.folder, str(self.frame.iat[row, i]))
        if path is None:
            return None
        with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as stream:
            start = stream.read(12)
            kind = image_type(start)
            if kind is None and start[:4] not in (b"II*\0", b"MM\0*"):
                return None
            content = start + stream.read()
        if small or kind is None:
            try:
                made = thumbnail(content) if small else thumbnail(content, sys.maxsize)
                return made, "image/jpeg"
            except (Unreadable, ImportError):
                pass
        return None if kind is None else (content, kind)


def inside(folder: Path, name: str) -> Path | None:
    """The regular file that `name` means within `folder`; None where it leads out of it, by dots or by a link."""
    if not name or "\0" in name:
        return None
    try:
        top = folder.resolve(strict=True)
        path = (top / name).resolve(strict=True)
        return path if path.is_relative_to(top) and path.is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None


def image_type(content: bytes) -> str | None:
    """The type of a picture by its first bytes, whatever its name says; drawings with scripts (SVG) are none."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    kinds = [kind for first, kind in _TYPES.items() if content.startswith(first)]
    return f"image/{kinds[0]}" if kinds else None


def missing(value: Any) -> bool:
    """Whether a cell is empty."""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or str(value) in ("NaT", "<NA>")


def as_text(value: Any) -> str:
    """A cell as a person would write it."""
    if missing(value):
        return ""
    return f"{float(value):.6g}" if isinstance(value, (float, np.floating)) else str(value)


def _standing(below: float, above: float) -> str:
    same = 1 - below - above
    if below == 0 and above == 0:
        return "the same in all rows"
    if above == 0 or below == 0:
        end = "the highest" if above == 0 else "the lowest"
        return end if round(100 * same) <= 1 else f"{end}, as in {percent(same)} of the rows"
    if below >= 0.5:
        return f"higher than {percent(below)}"
    return f"lower than {percent(above)}" if above >= 0.5 else "in the middle"
