"""JSON Lines: one object per line, one column per name; a label is replaced inside its object, other lines stay."""

from __future__ import annotations

import json
import re
from typing import Any

import pandas as pd

from floral_learn.base.cells import TableError, reason, short

from .source import Source

# What only Prodigy puts beside a task, and its three answers.
_PRODIGY = {"_input_hash", "_task_hash", "_session_id", "_annotator_id", "_view_id"}
_ANSWERS = ("accept", "reject", "ignore")
# A line ends in a line feed or carriage return alone: JSON strings may hold Unicode's other line ends.
_LINE_END = re.compile(r"\r\n|\n|\r")


def read_json_lines(name: str, text: str) -> Source:
    """The objects of a JSON Lines file; a line that is none is an error with its number."""
    lines, rows = [], []
    for number, line in enumerate(_LINE_END.split(text.removeprefix("\ufeff")), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            problem = getattr(error, "msg", None) or reason(error)
            raise TableError(f"{name}, line {number}: not a JSON object ({problem})") from None
        if not isinstance(row, dict):
            raise TableError(f"{name}, line {number}: an object {{...}} is needed, not {type(row).__name__}")
        lines.append(line)
        rows.append(row)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if len(columns) * len(rows) > 100 * len(text):  # else a small file of other names on every line fills the memory
        raise TableError(f"{name} has {len(columns):,} different names in its objects, too many for columns")
    of_prodigy = bool(rows) and all(_PRODIGY & row.keys() and row.get("answer") in _ANSWERS for row in rows)
    cells = {column: _cells(rows, column, of_prodigy) for column in columns}

    def write(place: int, values: list[Any]) -> bytes:
        column, out = columns[place], list(lines)
        for number, (row, value, old) in enumerate(zip(rows, values, cells[columns[place]], strict=True)):
            if value != old or type(value) is not type(old):
                made = [value] if isinstance(row.get(column), list) else value
                out[number] = json.dumps(row | {column: made}, ensure_ascii=False)
        return "".join(f"{line}\n" for line in out).encode("utf-8", "surrogatepass")

    frame = pd.DataFrame({number: pd.Series(cells[column], dtype=object) for number, column in enumerate(columns)})
    frame.columns = pd.Index(columns, dtype=object)
    source = Source(name, frame, write)
    if of_prodigy:
        source.notes.append("written by Prodigy: choices of rejected tasks, and answers 'ignore', are left blank")
    return source


def _cells(rows: list[dict[str, Any]], name: str, of_prodigy: bool) -> list[Any]:
    """Python values, None where an object lacks the name; lists of one text, as doccano has them, are texts."""
    values = [row.get(name) for row in rows]
    if of_prodigy and name == "accept":  # choices count where the answer is to accept them
        values = [row.get(name) if row["answer"] == "accept" else None for row in rows]
    if of_prodigy and name == "answer":
        values = [None if value == "ignore" else value for value in values]
    if not all(value is None or _one_text(value) for value in values):
        return values
    return [value[0] if value else None for value in values]


def _one_text(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= 1 and all(isinstance(part, str) for part in value)


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in members:
        if key in found:
            raise ValueError(f"the name {short(key)} stands twice in one object")
        found[key] = value
    return found
