"""Decisions that people made about labels: read from the file that the page writes, checked against the data."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.base.cells import unguarded

COLUMNS = ("row", "id", "given", "decision", "label", "reviewer", "note")
KINDS = ("wrong", "right", "unsure")


@dataclass(frozen=True)
class Decision:
    """What one person said of one label."""

    position: int  # in the labels at hand
    kind: str  # one of KINDS
    label: Any  # the new label where wrong, else the given one
    given: str = ""  # the label that was decided on, as it stands in the file
    reviewer: str = ""
    note: str = ""


def read_decisions(source: Any, labels: np.ndarray, *, rows: np.ndarray | None = None) -> list[Decision]:
    """Read decisions and refuse what does not fit the data.

    Parameters
    ----------
    source : path, DataFrame or list of dict
        With the columns row, given, decision ("wrong", "right" or "unsure") and label; reviewer and note are optional.
        The last line about a row counts.
    labels : ndarray of shape (n,)
        The labels as given.
    rows : int ndarray of shape (n,), optional
        The number of each row in its file; by default 0 to n - 1.

    Returns
    -------
    list of Decision
        In the order of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.audit.decisions import read_decisions
    >>> lines = [{"row": 1, "given": "cat", "decision": "wrong", "label": "dog"}]
    >>> read_decisions(lines, np.array(["dog", "cat"]))[0].label
    'dog'
    """
    where, lines = _lines(source)
    number_of = np.arange(len(labels)) if rows is None else rows
    position = {int(row): place for place, row in enumerate(number_of)}
    known = {str(value): value for value in np.unique(labels).tolist()}
    found: dict[int, Decision] = {}
    for number, line in enumerate(lines, start=2):
        place = f"{where}, line {number}"
        cells = {}
        for name, value in line.items():
            cells[name] = "" if value is None or value != value else unguarded(str(value))
        text = cells["row"].strip().removesuffix(".0")
        if not text.isdecimal() or int(text) not in position:
            raise ValueError(f"{place}: row {text!r} is not in the data, whose rows are 0 to {int(number_of.max())}")
        at = position[int(text)]
        given, kind = labels[at], cells["decision"].strip()
        if kind not in KINDS:
            raise ValueError(f"{place}: the decision {kind!r} must be 'wrong', 'right' or 'unsure'")
        who, note = cells.get("reviewer", "").strip(), cells.get("note", "").strip()
        # A label that was replaced by this very decision is no longer as it was on the page: the file was applied.
        applied = kind == "wrong" and cells["label"] == str(given)
        if cells["given"] != str(given) and not applied:
            raise ValueError(
                f"{place}: row {text} had the label {cells['given']!r} when it was decided and has {str(given)!r} in "
                "the data; the data changed since"
            )
        if kind == "wrong" and cells["label"] not in known:
            raise ValueError(f"{place}: {cells['label']!r} is not a label of the data: {', '.join(list(known)[:12])}")
        label = known[cells["label"]] if kind == "wrong" else known[str(given)]
        found[at] = Decision(at, kind, label, str(given), who, note)
    return [found[at] for at in sorted(found)]


def settle(
    labels: np.ndarray, trusted: np.ndarray | None, decisions: list[Decision]
) -> tuple[np.ndarray, np.ndarray | None]:
    """The labels (n,) after people's decisions, and the mask of those that are trusted: what was decided is, too."""
    settled = [decision for decision in decisions if decision.kind != "unsure"]
    if not settled:
        return labels, trusted
    labels = labels.copy()
    sure = np.zeros(len(labels), dtype=bool) if trusted is None else trusted.copy()
    for decision in settled:
        labels[decision.position], sure[decision.position] = decision.label, True
    return labels, sure


def _lines(source: Any) -> tuple[str, list[dict[str, Any]]]:
    """Where the decisions come from, and one dictionary per line."""
    if isinstance(source, (str, os.PathLike)):
        where = str(source)
        try:
            reader = csv.DictReader(io.StringIO(Path(source).read_text(encoding="utf-8-sig")))
            lines: list[dict[str, Any]] = list(reader)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"cannot read {where}: {getattr(error, 'strerror', None) or error}") from None
        names = set(reader.fieldnames or [])
    else:
        records = source.to_dict(orient="records") if hasattr(source, "to_dict") else source
        where, lines = "decisions", [dict(line) for line in records]
        names = set(lines[0]) if lines else {"row", "given", "decision", "label"}
    if not {"row", "given", "decision", "label"} <= names:
        raise ValueError(f"{where} is not a list of decisions: it needs the columns row, given, decision and label")
    return where, lines
