"""Which run made each cell of a store, told by the times of cells and of the notes that runs leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from floral_bench.reporting.environment import publishable
from floral_bench.spec import Cell
from floral_bench.store import Store

NOT_RECORDED = "not recorded"
_OF_A_MACHINE = ("commit", "system", "python", "numpy", "scikit-learn", "torch", "gpu", "results_version")


@dataclass
class Part:
    """Cells that were computed at one commit on one machine."""

    environment: dict[str, str]  # of the latest of its runs
    commands: dict[str, None] = field(default_factory=dict)  # in their order
    started: str = ""
    cells: int = 0
    seconds: float | None = None  # of all its processes together, where that was recorded
    about: str = ""  # what a reader should know of this part

    @property
    def machine(self) -> tuple[str, ...]:
        """What all cells of a part have in common."""
        return tuple(self.environment.get(entry, "") for entry in _OF_A_MACHINE)

    def join(self, other: Part) -> None:
        """Take in the cells of another run at the same commit on the same machine."""
        self.environment = max(self.environment, other.environment, key=lambda where: where.get("date", ""))
        self.commands |= other.commands
        self.started = min(self.started, other.started)
        self.cells += other.cells
        known = None not in (self.seconds, other.seconds)
        self.seconds = (self.seconds or 0) + (other.seconds or 0) if known else None

    def plain(self) -> dict[str, Any]:
        """What a note says of a part."""
        found: dict[str, Any] = {name: self.environment.get(name, "") for name in _OF_A_MACHINE if name != "gpu"}
        found |= {"gpu": self.environment["gpu"]} if "gpu" in self.environment else {}
        found |= {"started": self.started, "cells": self.cells}
        found["seconds"] = NOT_RECORDED if self.seconds is None else round(self.seconds, 1)
        return found | ({"about": self.about} if self.about else {})


def gathered(found: Iterable[Part]) -> list[Part]:
    """One part per commit and machine, largest first."""
    parts: dict[tuple[str, ...], Part] = {}
    for one in found:
        if one.machine in parts:
            parts[one.machine].join(one)
        else:
            parts[one.machine] = one
    return sorted(parts.values(), key=lambda part: -part.cells)


def note_of(parts: Sequence[Part], *, trial: bool = False) -> dict[str, Any]:
    """The note of results: commands, environment, time and cells; and the parts, where there are several.

    Numbers that cannot be made again from a commit are a ValueError, unless they are those of a trial.
    """
    if not parts:
        raise ValueError("no run is known that made these numbers: results that are published have a note of it")
    for part in parts:
        if not trial:
            publishable(part.environment)
    known = [part.seconds for part in parts if part.seconds is not None]
    note = {
        "command": "; ".join(dict.fromkeys(command for part in parts for command in part.commands)),
        "environment": parts[0].environment,
        "started": min(part.started for part in parts),
        "seconds": round(sum(known), 1) if len(known) == len(parts) else NOT_RECORDED,
        "cells": sum(part.cells for part in parts),
    }
    return note | ({"parts": [part.plain() for part in parts]} if len(parts) > 1 else {})


def parts_of(store: Store, name: str, cells: Mapping[str, Sequence[Cell]]) -> list[Part]:
    """The parts of suite `name`, largest first; `cells` are those of every suite that shares the store.

    A cell belongs to the last run that began before the cell was finished, of a suite that has this cell: suites of
    a store share their cells. Cells that no run accounts for are a ValueError.
    """
    home: dict[str, set[str]] = {}
    for suite, members in cells.items():
        for cell in members:
            home.setdefault(cell.key, set()).add(suite)
    runs = sorted(store.runs(), key=lambda run: run["started"])
    mine = {cell.key: cell for cell in cells[name]}
    costs = store.costs(mine)
    found = []
    for key, finished in sorted(store.finished(mine).items(), key=lambda item: item[1]):
        before = [run for run in runs if run["suite"] in home[key] and run["started"] <= finished]
        if not before:
            raise ValueError(f"{name}: no run of the store accounts for a cell that was finished at {finished}")
        info = before[-1]["info"]
        found.append(Part(info["environment"], {info["command"]: None}, before[-1]["started"], 1, costs[key][0]))
    return gathered(found)
