"""Class names that differ in case, spaces or the like only: almost always one class, spelled in two ways."""

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np


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
    >>> from floral_learn.tables.class_names import merge_alike
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
