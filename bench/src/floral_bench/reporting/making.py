"""How numbers were made: noted while they are made, so that a run that is cut off leaves a note of what it did, too."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from floral_bench.reporting.environment import environment, publishable
from floral_bench.spec import Cell
from floral_bench.store import Store
from floral_learn.base.files import write_atomically


@dataclass
class Making:
    """One run of a command at one commit on one machine, and what it has done so far."""

    command: str
    environment: dict[str, str]
    started: str
    cells: int = 0
    seconds: float = 0.0  # of all processes together
    path: Path | None = None  # where it is kept, if anywhere

    def add(self, seconds: float) -> None:
        """Count a finished cell and its time, and keep the new state."""
        self.cells += 1
        self.seconds = round(self.seconds + seconds, 2)
        if self.path is not None:
            write_atomically(self.path, json.dumps(note_of([self], trial=True), indent=1) + "\n")

    def beside(self, rows: Path) -> Making:
        """The same run, kept in run.json beside `rows`; a ValueError if these are of another commit."""
        made = replace(self, path=rows.with_name("run.json"))
        if rows.exists() and made.path is not None and made.path.exists():
            found = json.loads(made.path.read_text(encoding="utf-8"))
            other, here = found["environment"].get("commit"), self.environment.get("commit")
            if other != here:
                raise ValueError(f"{rows.name} has rows of commit {other}, this is {here}: give another file")
            made.started, made.cells, made.seconds = (found[name] for name in ("started", "cells", "seconds"))
        return made


def begin(*, trial: bool = False, device: str | None = None) -> Making:
    """A run that begins now; a ValueError if its tree has no commit or local changes, unless it is a trial."""
    here = environment(device)
    if not trial:
        publishable(here)
    return Making(typed(), here, here["date"])


def typed() -> str:
    """The command line of a benchmark; absolute paths by their last name: folders of a machine are nobody else's."""
    script, *rest = sys.argv
    parts = (word.partition("=") if word.startswith("--") and "=" in word else ("", "", word) for word in rest)
    shown = [f"{option}{equals}{Path(v).name if Path(v).is_absolute() else v}" for option, equals, v in parts]
    return shlex.join(["python", f"benchmarks/{Path(script).name}", *shown])


def note_of(runs: Sequence[Making], *, trial: bool = False) -> dict[str, Any]:
    """The note of results that some runs made together: commands, the latest environment, time and cells.

    Numbers that cannot be made again from one commit are a ValueError, unless they are those of a trial.
    """
    if not runs:
        raise ValueError("no run is known that made these numbers: results that are published have a note of it")
    for run in () if trial else runs:
        publishable(run.environment)
    commits = dict.fromkeys(run.environment.get("commit", "") for run in runs)
    if len(commits) > 1 and not trial:
        raise ValueError(f"cells of several commits ({', '.join(commits)}); run them at one")
    return {
        "command": "; ".join(dict.fromkeys(run.command for run in runs)),
        "environment": max((run.environment for run in runs), key=lambda where: where.get("date", "")),
        "started": min(run.started for run in runs),
        "seconds": round(sum(run.seconds for run in runs), 1),
        "cells": sum(run.cells for run in runs),
    }


def parts_of(store: Store, name: str, cells: Mapping[str, Sequence[Cell]]) -> list[Making]:
    """The runs that made suite `name`; `cells` are those of every suite that shares the store.

    A cell belongs to the last run that began before the cell was finished, of a suite that has this cell: suites of
    a store share their cells. Cells that no run accounts for are a ValueError.
    """
    home: dict[str, set[str]] = {}
    for suite, members in cells.items():
        for cell in members:
            home.setdefault(cell.key, set()).add(suite)
    runs = sorted(store.runs(), key=lambda run: run["started"])
    found: dict[tuple[str, str], Making] = {}
    mine = {cell.key: cell for cell in cells[name]}
    costs = store.costs(mine)
    for key, finished in sorted(store.finished(mine).items(), key=lambda item: item[1]):
        before = [run for run in runs if run["suite"] in home[key] and run["started"] <= finished]
        if not before:
            raise ValueError(f"{name}: no run of the store accounts for a cell that was finished at {finished}")
        info, started = before[-1]["info"], before[-1]["started"]
        run = found.setdefault((started, info["command"]), Making(info["command"], info["environment"], started))
        run.add(costs[key][0])
    return list(found.values())
