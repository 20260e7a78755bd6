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

from floral_learn.atomic_files import write_atomically
from floral_learn.evaluation.reporting.environment import environment, publishable
from floral_learn.evaluation.reporting.origin import Part

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


def begin(*, trial: bool = False, command: str | None = None) -> Making:
    """A run that begins now; a ValueError if its tree has no commit or local changes, unless it is a trial."""
    here = environment()
    if not trial:
        publishable(here)
    return Making(command or typed(), here, here["date"])


def typed(words: Sequence[str] | None = None) -> str:
    """The command line of a benchmark, folders by their last name alone: those of a machine are nobody else's."""
    words = sys.argv if words is None else words
    given = [Path(word).name if "/" in word else word for word in words[1:]]
    return shlex.join(["python", f"benchmarks/{Path(words[0]).name}", *given])


def makings(folder: Path) -> list[Part]:
    """What was kept beside the rows in `folder`, as parts: one per commit and machine, largest first."""
    parts: dict[tuple[str, ...], Part] = {}
    for path in sorted((folder / FOLDER).glob("*.json")):
        new = _part(json.loads(path.read_text(encoding="utf-8")))
        if new.machine in parts:
            parts[new.machine].join(new)
        else:
            parts[new.machine] = new
    return sorted(parts.values(), key=lambda part: -part.cells)


def keep_parts(parts: Sequence[Part], path: Path) -> Path:
    """Write parts beside rows that were merged into one file; `kept_parts` reads them."""
    entries = [
        {"command": "; ".join(part.commands), "environment": part.environment, "started": part.started}
        | {"cells": part.cells, "seconds": part.seconds, "about": part.about}
        for part in parts
    ]
    return write_atomically(path, json.dumps(entries, indent=1) + "\n")


def kept_parts(path: Path) -> list[Part]:
    """The parts that `keep_parts` wrote."""
    return [_part(entry) for entry in json.loads(path.read_text(encoding="utf-8"))]


def beside_merged(path: Path) -> Path:
    """Where the parts of a file of merged rows are kept: records.csv.gz has records.making.json."""
    return path.with_name(f"{path.name.split('.')[0]}.making.json")


def _part(entry: dict[str, Any]) -> Part:
    return Part(
        entry["environment"],
        dict.fromkeys(entry["command"].split("; ")),
        entry["started"],
        entry["cells"],
        entry["seconds"],
        entry.get("about", ""),
    )
