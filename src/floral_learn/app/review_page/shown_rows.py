"""A row as a person would read it: texts in full, numbers with their place among the others, pictures by name."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.base.encoder import find_date_format

MOST_NUMBERS, FEW_NUMBERS = 12, 5  # shown at once, and beside a text or picture; the others are one press away
TICKS = 120  # other rows drawn in a strip
NEAREST = 5
_RARE = 0.005  # share of the rows below which a value is called rare
_LONG = 60  # characters from which a value is read as a text
_DATES = 100  # values by which dates are told
_IMAGE_NAMES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff")
_THUMBNAIL, _LARGE = 160, 1600  # pixels a side
_IMAGE_BYTES = 20_000_000


@dataclass(frozen=True)
class Column:
    """What a column is to a reader, and how its values are spread (strips: shares of the shown range in [0, 1])."""

    name: str
    kind: str  # "text", "number", "category" or "image"
    ticks: list[float] = field(default_factory=list)
    low: float = 0.0
    high: float = 1.0
    sorted_values: np.ndarray | None = None
    main: bool = True
    common: bool = True  # whether most rows share their value with others: else "rare" says nothing (dates)


class ShownRows:
    """The table behind the questions.

    Parameters
    ----------
    frame : pandas.DataFrame of n rows
        The columns to show, without the label.
    labels : ndarray of shape (n,)
        Labels as given.
    X : ndarray of shape (n, d) or None
        The same rows as numbers, to find the nearest ones.
    folder : path
        The table's folder; a column that names files in it is shown as pictures.
    ids : sequence of n texts, optional
        Names of the rows.
    numbers : int ndarray of shape (n,), optional
        Rows of the file, from 0, where some of its rows are not among these.
    """

    def __init__(
        self, frame: Any, labels: np.ndarray, X: Any, *, folder: Path, ids: Any = None, numbers: Any = None
    ) -> None:
        self.frame, self.labels, self.folder, self.ids = frame, labels, Path(folder), ids
        self.numbers = np.arange(len(labels)) if numbers is None else numbers
        self.classes = np.unique(labels)
        self.X = X
        self.columns = [self._column(name) for name in frame.columns]
        self._choose_main()
        self._near: Any = None

    def _column(self, name: Any) -> Column:
        import pandas as pd

        column = self.frame[name]
        if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            values = np.sort(column.dropna().to_numpy(dtype=float))
            values = values[np.isfinite(values)]
            if not len(values):
                return Column(str(name), "category")
            low, high = np.quantile(values, [0.005, 0.995])
            if high <= low:
                low, high = values[0], values[-1] if values[-1] > values[0] else values[0] + 1
            shown = values[np.linspace(0, len(values) - 1, min(TICKS, len(values))).round().astype(int)]
            ticks = np.clip((shown - low) / (high - low), 0, 1).round(3).tolist()
            return Column(str(name), "number", ticks, float(low), float(high), values)
        texts = column.dropna().astype(str)
        if len(texts) and self._names_images(texts):
            return Column(str(name), "image")
        many = texts.nunique() > max(50, len(texts) // 2)  # of short values, dates are not read as prose
        dates = bool(many) and find_date_format(texts.head(_DATES).tolist()) is not None
        long = len(texts) and (texts.str.len().max() > _LONG or (many and not dates))
        counts = texts.map(texts.value_counts())
        common = bool(len(texts)) and float((counts >= _RARE * len(texts)).mean()) > 0.5
        return Column(str(name), "text" if long else "category", common=common)

    def _names_images(self, texts: Any) -> bool:
        some = texts.iloc[:20].tolist()
        named = [text for text in some if text.lower().endswith(_IMAGE_NAMES)]
        return len(named) > len(some) // 2 and any(inside(self.folder, text) is not None for text in named)

    def _choose_main(self) -> None:
        """Of a wide table, the number columns that differ most between the classes are shown first."""
        numbers = [i for i, column in enumerate(self.columns) if column.kind == "number"]
        most = FEW_NUMBERS if any(column.kind in ("text", "image") for column in self.columns) else MOST_NUMBERS
        if len(numbers) <= MOST_NUMBERS:
            return
        values = self.frame.iloc[:, numbers].to_numpy(dtype=float)
        values = np.where(np.isfinite(values), values, np.nan)
        spread = np.nanstd(values, axis=0)
        means = np.stack([np.nanmean(values[self.labels == c], axis=0) for c in self.classes])
        telling = np.nan_to_num(np.nanstd(means, axis=0) / np.where(spread > 0, spread, np.inf))
        first = {numbers[i] for i in np.argsort(-telling, kind="stable")[:most]}
        for i in numbers:
            if i not in first:
                self.columns[i] = replace(self.columns[i], main=False)

    def nearest(self, row: int) -> np.ndarray:
        """Row numbers of the nearest other rows; none where the rows are not known as numbers."""
        if self.X is None:
            return np.array([], dtype=int)
        if self._near is None:
            from sklearn.neighbors import NearestNeighbors

            self._near = NearestNeighbors(n_neighbors=min(NEAREST + 1, len(self.labels))).fit(self.X)
        found = self._near.kneighbors(self.X[[row]], return_distance=False)[0]
        return found[found != row][:NEAREST]

    def name(self, row: int) -> str:
        """What a person calls the row."""
        return str(self.ids[row]) if self.ids is not None else f"row {self.numbers[row]:,}"

    def card(self, row: int) -> dict[str, Any]:
        """All that the page shows of one row."""
        fields = [self._field(i, column, row) for i, column in enumerate(self.columns)]
        pictures = [i for i, column in enumerate(self.columns) if column.kind == "image"]
        near = [
            {"row": int(r), "name": self.name(r), "line": self.line(r), "column": pictures[0] if pictures else None}
            for r in self.nearest(row)
        ]
        return {"row": row, "name": self.name(row), "fields": fields, "nearest": near}

    def _field(self, i: int, column: Column, row: int) -> dict[str, Any]:
        value = self.frame.iat[row, i]
        shown: dict[str, Any] = {"name": column.name, "kind": column.kind, "value": as_text(value), "main": column.main}
        if missing(value):
            return {**shown, "kind": "category", "value": "", "note": "missing"}
        if column.kind == "number" and column.sorted_values is not None and np.isfinite(value):
            values = column.sorted_values
            below = np.searchsorted(values, value, "left") / len(values)
            above = 1 - np.searchsorted(values, value, "right") / len(values)
            place = float(np.clip((value - column.low) / (column.high - column.low), 0, 1))
            return {**shown, "ticks": column.ticks, "place": round(place, 3), "note": _standing(below, above)}
        if column.kind == "image":
            return {**shown, "image": inside(self.folder, str(value)) is not None, "column": i}
        if column.kind == "category":
            same = float((self.frame.iloc[:, i] == value).mean())
            if same >= _RARE:
                return {**shown, "note": f"as in {_percent(same)} of the rows"}
            return {**shown, "note": "rare" if column.common else ""}
        return shown

    def line(self, row: int, most: int = 140) -> str:
        """One line that stands for a row: its texts, or its first values with their names."""
        texts = [i for i, column in enumerate(self.columns) if column.kind == "text"]
        if texts:
            line = " ".join(as_text(self.frame.iat[row, i]) for i in texts)
        else:
            main = [i for i, column in enumerate(self.columns) if column.main and column.kind != "image"][:5]
            line = ", ".join(f"{self.columns[i].name} {as_text(self.frame.iat[row, i]) or '?'}" for i in main)
        line = " ".join(line.split())
        return line if len(line) <= most else line[: most - 1] + "…"

    def image(self, row: int, i: int, small: bool = False) -> tuple[bytes, str] | None:
        """The bytes and the type of the picture that a cell names; None where there is none to show.

        Small ones, and kinds of pictures that browsers do not show (TIFF), come as JPEG.
        """
        if not (0 <= row < len(self.labels) and 0 <= i < len(self.columns)) or self.columns[i].kind != "image":
            return None
        path = inside(self.folder, str(self.frame.iat[row, i]))
        if path is None or path.stat().st_size > _IMAGE_BYTES:
            return None
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(handle, "rb") as stream:
            content = stream.read(_IMAGE_BYTES)
        kind = image_type(content)
        if small or content[:4] in (b"II*\0", b"MM\0*"):
            from floral_learn.encoders.pictures import Unreadable, thumbnail

            try:
                return thumbnail(content, _THUMBNAIL if small else _LARGE), "image/jpeg"
            except (Unreadable, ImportError):
                return None if kind is None else (content, kind)
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
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    if content[:2] == b"BM":
        return "image/bmp"
    return None


def missing(value: Any) -> bool:
    """Whether a cell is empty."""
    return (
        value is None or (isinstance(value, (float, np.floating)) and np.isnan(value)) or str(value) in ("NaT", "<NA>")
    )


def as_text(value: Any) -> str:
    """A cell as a person would write it."""
    if missing(value):
        return ""
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.6g}"
    return str(value)


def _standing(below: float, above: float) -> str:
    same = 1 - below - above
    if below == 0 and above == 0:
        return "the same in all rows"
    if above == 0 or below == 0:
        end = "the highest" if above == 0 else "the lowest"
        return end if round(100 * same) <= 1 else f"{end}, as in {_percent(same)} of the rows"
    if below >= 0.5:
        return f"higher than {_percent(below)}"
    if above >= 0.5:
        return f"lower than {_percent(above)}"
    return "in the middle"


def _percent(share: float) -> str:
    return f"{min(max(round(100 * share), 1), 99)}\u00a0%"
