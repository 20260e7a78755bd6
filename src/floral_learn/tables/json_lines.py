"""JSON Lines: one object per line, one column per name; a label is replaced inside its line, all else stays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import TableError
from .source import Source, pairs, reason

MOST_COLUMNS = 10_000
_SPACE = re.compile(r"[ \t\r\n]*")
# What only Prodigy puts beside a task, and its three answers.
_PRODIGY = {"_input_hash", "_task_hash", "_session_id", "_annotator_id", "_view_id"}
_ANSWERS = ("accept", "reject", "ignore")
_scan = json.JSONDecoder().raw_decode


class JsonLinesSource(Source):
    """Objects, and the lines that they come from."""

    def __init__(
        self, name: str, lines: list[str], encoding: str, numbers: list[int], rows: list[dict[str, Any]]
    ) -> None:
        self.name, self.lines, self.encoding, self.numbers, self.rows = name, lines, encoding, numbers, rows
        self.columns, self.n_rows, self.notes = list(dict.fromkeys(key for row in rows for key in row)), len(rows), []
        if not self.n_rows or not self.columns:
            raise TableError(f"{name} has no data rows")
        if len(self.columns) > MOST_COLUMNS:
            raise TableError(f"{name} has {len(self.columns):,} different names in its objects, too many for columns")
        self.of_prodigy = all(_PRODIGY & row.keys() and row.get("answer") in _ANSWERS for row in rows)
        if self.of_prodigy:
            self.notes.append("written by Prodigy: choices of rejected tasks, and answers 'ignore', are left blank")

    def cells(self, position: int) -> list[Any]:
        """Python values, None where an object lacks the name; lists of one text, as doccano has them, are texts."""
        name = self.columns[position]
        values = [row.get(name) for row in self.rows]
        if self.of_prodigy and name == "accept":  # choices count where the answer is to accept them
            values = [row.get(name) if row["answer"] == "accept" else None for row in self.rows]
        if self.of_prodigy and name == "answer":
            values = [None if value == "ignore" else value for value in values]
        if not all(value is None or _one_text(value) for value in values):
            return values
        return [value[0] if value else None for value in values]

    def relabelled(self, position: int, rows: np.ndarray, new: np.ndarray) -> bytes:
        """The file with new labels, each spelled as most objects of that class spell it."""
        column, lines = self.columns[position], list(self.lines)
        spans = [_span(lines[number], column) for number in self.numbers]
        spelled = [lines[number][slice(*span)] for number, span in zip(self.numbers, spans, strict=True)]
        known = self.spelled(position, spelled)
        for row, label in pairs(rows, new):
            (begin, end), number = spans[row], self.numbers[row]
            token = known.get(label) or json.dumps(label, ensure_ascii=False)
            lines[number] = lines[number][:begin] + token + lines[number][end:]
        try:
            return "".join(lines).encode(self.encoding)
        except UnicodeError as error:
            raise TableError(f"the new labels cannot be written as {self.encoding}: {error}") from None


def read_json_lines(name: str, text: str, encoding: str) -> JsonLinesSource:
    """The objects of a JSON Lines file; a line that is none is an error with its number."""
    # A line ends in a line feed or carriage return alone: JSON strings may hold Unicode's other line ends.
    lines = re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z", text)
    numbers, rows = [], []
    for number, line in enumerate(lines):
        content = line.strip("\ufeff \t\r\n")
        if not content:
            continue
        try:
            row = json.loads(content, object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            problem = getattr(error, "msg", None) or reason(error)
            raise TableError(f"{name}, line {number + 1}: not a JSON object ({problem})") from None
        if not isinstance(row, dict):
            raise TableError(f"{name}, line {number + 1}: an object {{...}} is needed, not {type(row).__name__}")
        numbers.append(number)
        rows.append(row)
    return JsonLinesSource(name, lines, encoding, numbers, rows)


def _one_text(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= 1 and all(isinstance(part, str) for part in value)


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        names = [key for key, _ in members]
        raise ValueError(f"the name {next(n for n in names if names.count(n) > 1)!r} stands twice in one object")
    return found


def _span(line: str, name: str) -> tuple[int, int]:
    """Where the value of `name` begins and ends in the text of one object; (0, 0) where it has none."""
    return next(((begin, end) for key, begin, end in _members(line) if key == name), (0, 0))


def _members(line: str) -> Iterator[tuple[str, int, int]]:
    """Name, begin and end of every value of the object in `line`, which has been parsed once already."""
    at = line.index("{") + 1
    while True:
        at = _SPACE.match(line, at).end()  # type: ignore[union-attr]
        if line[at] == "}":
            return
        key, at = _scan(line, at)
        at = line.index(":", at) + 1
        begin = _SPACE.match(line, at).end()  # type: ignore[union-attr]
        _, at = _scan(line, begin)
        yield key, begin, at
        at = _SPACE.match(line, at).end()  # type: ignore[union-attr]
        if line[at] == ",":
            at += 1
