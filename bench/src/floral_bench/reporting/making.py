"""How numbers were made, kept while they are made: a run that is cut off leaves a note of what it did, too."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from floral_bench.reporting.environment import environment, publishable
from floral_bench.reporting.origin import Part, gathered, note_of
from floral_learn.files.atomic_files import write_atomically

FOLDER = "making"  # beside the rows of a benchmark


@dataclass
class Making:
    """One run of a command at one commit on one machine, and what it has done so far.

    Examples
    --------
    >>> run = Making("python benchmarks/example.py", {"commit": "abc1234", "system": "Linux, 2 CPUs"}, "2026-01-01")
    >>> run.add(1.5)
    >>> run.add(0.5, cells=2)
    >>> run.cells, run.seconds
    (3, 2.0)
    """

    command: str
    environment: dict[str, str]
    started: str
    cells: int = 0
    seconds: float = 0.0  # of all processes together
    path: Path | None = None  # where it is kept, if anywhere

    def add(self, seconds: float, cells: int = 1) -> None:
        """Count finished cells and their time, and keep the new state."""
        self.cells += cells
        self.seconds = round(self.seconds + seconds, 2)
        if self.path is not None:
            kept = {name: getattr(self, name) for name in ("command", "environment", "started", "cells", "seconds")}
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, json.dumps(kept, indent=1) + "\n")

    def beside(self, rows: Path) -> Making:
        """The same run, kept in a file of its own for what it adds to `rows`; processes share no file."""
        when = "".join(letter for letter in self.started if letter.isdigit())
        path = rows.parent / FOLDER / f"{rows.name}.{when}.{os.getpid()}.json"
        return Making(self.command, self.environment, self.started, path=path)

    def heading(self) -> str:
        """Date, commit, machine and command, for the first line of a page."""
        where = self.environment
        return f"{self.started[:10]}, commit {where.get('commit', 'unknown')}, {where['system']}: `{self.command}`"


def begin(*, trial: bool = False, command: str | None = None, device: str | None = None) -> Making:
    """A run that begins now; a ValueError if its tree has no commit or local changes, unless it is a trial."""
    here = environment(device)
    if not trial:
        publishable(here)
    return Making(command or typed(), here, here["date"])


def typed(words: Sequence[str] | None = None) -> str:
    """The command line of a benchmark, as a note tells it."""
    words = sys.argv if words is None else words
    return shortened(["python", f"benchmarks/{Path(words[0]).name}", *words[1:]])


def shortened(words: Sequence[str]) -> str:
    """A command line with absolute paths by their last name alone: folders of a machine are nobody else's."""
    parts = (word.partition("=") if word.startswith("--") and "=" in word else ("", "", word) for word in words)
    return shlex.join(f"{option}{equals}{_last(value)}" for option, equals, value in parts)


def _last(value: str) -> str:
    return Path(value).name if Path(value).is_absolute() else value


def makings(folder: Path, rows: str = "") -> list[Part]:
    """What was kept beside the rows in `folder`, as parts: one per commit and machine, largest first.

    With a name of `rows` only what was kept for that file.
    """
    paths = sorted((folder / FOLDER).glob(f"{rows}.*.json" if rows else "*.json"))
    return gathered(_part(json.loads(path.read_text(encoding="utf-8"))) for path in paths)


def one_commit(rows: Path, making: Making) -> None:
    """Raise a ValueError if `rows` has rows of another commit than this run's, by the notes that lie beside it."""
    known = {part.environment.get("commit", "") for part in makings(rows.parent, rows.name)}
    note = rows.with_name("run.json")
    if rows.exists() and not known and note.exists():
        found = json.loads(note.read_text(encoding="utf-8"))
        known = {where["commit"] for where in found.get("parts") or [found["environment"]]}
    if other := sorted(known - {making.environment.get("commit", "")}):
        here = making.environment.get("commit")
        raise ValueError(f"{rows.name} has rows of commit {', '.join(other)}, this is {here}: give another file")


def write_note(rows: Path) -> Path:
    """Write run.json beside `rows`, of the notes that its runs kept."""
    note = note_of(makings(rows.parent, rows.name))
    return write_atomically(rows.with_name("run.json"), json.dumps(note, indent=1) + "\n")


def _part(entry: dict[str, Any]) -> Part:
    return Part(
        entry["environment"],
        dict.fromkeys(entry["command"].split("; ")),
        entry["started"],
        entry["cells"],
        entry["seconds"],
        entry.get("about", ""),
    )
