"""What every kind of table has in common: column names and cells by position, and a copy with other labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np

from .cells import as_labels
from .table_error import TableError


class Source(ABC):
    """A table before anyone decided what its columns are."""

    name: str
    columns: list[str]
    n_rows: int
    notes: list[str]
    like: Any = None  # a frame in whose library `Table.features` is made; pandas where it is None
    no_features: frozenset[int] | set[int] = frozenset()  # places of columns that say nothing about a row itself
    packed: bool = False  # whether the file is a .gz, and a relabelled copy has to be one

    @abstractmethod
    def cells(self, position: int) -> list[Any]:
        """The cells of a column: text, Python values, None where missing."""

    @abstractmethod
    def typed(self, position: int, as_text: bool = False) -> np.ndarray | None:
        """The column as floats, dates or text (None where missing); None where its values are nested."""

    @abstractmethod
    def relabelled(self, position: int, rows: np.ndarray, new: np.ndarray) -> Any:
        """The table with the labels of `rows` replaced by `new`, all else as it was: bytes of a file, or a frame."""

    def position(self, column: Any) -> int:
        """The place of `column`; a missing or repeated one is an error that names the columns."""
        places = [place for place, name in enumerate(self.columns) if name == str(column)]
        if len(places) == 1:
            return places[0]
        names = ", ".join(map(repr, self.columns[:12])) + (", ..." if len(self.columns) > 12 else "")
        problem = f"has {len(places)} columns named" if places else "has no column"
        hint = "; if that is one column only, give the separator with --sep" if len(self.columns) == 1 else ""
        if near := get_close_matches(str(column), self.columns, 1):
            hint = f"; did you mean {near[0]!r}?" if not places else ""
        raise TableError(f"{self.name} {problem} {str(column)!r}; its columns are: {names}{hint}")

    def spelled(self, position: int, spellings: Iterable[Any]) -> dict[Any, Any]:
        """Label -> how most rows of that class spell it; `spellings` has one entry per row."""
        labels, blank = as_labels(self.cells(position), self.name)
        counts: dict[Any, Counter[Any]] = {}
        for spelling, label, missing in zip(spellings, labels.tolist(), blank, strict=True):
            if not missing:
                counts.setdefault(label, Counter())[spelling] += 1
        return {label: found.most_common(1)[0][0] for label, found in counts.items()}


def pairs(rows: np.ndarray, new: np.ndarray) -> list[tuple[int, Any]]:
    """Rows with their new labels as Python values."""
    return list(zip(np.asarray(rows).tolist(), np.asarray(new).tolist(), strict=True))
