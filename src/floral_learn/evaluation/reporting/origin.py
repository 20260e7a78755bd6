"""Which run made each cell of a store, told by the times of cells and of the notes that runs leave."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from floral_learn.evaluation.plan import family_of
from floral_learn.evaluation.spec import Cell
from floral_learn.evaluation.store import Store

_OF_A_MACHINE = ("commit", "system", "python", "numpy", "scikit-learn", "torch", "results_version")


@dataclass
class Part:
    """Cells that were computed at one commit on one machine."""

    environment: dict[str, str]  # of the latest of its runs
    commands: dict[str, None] = field(default_factory=dict)  # in their order
    started: str = ""
    cells: int = 0

    def plain(self) -> dict[str, Any]:
        """What a note says of a part."""
        return {name: self.environment.get(name, "") for name in _OF_A_MACHINE} | {"cells": self.cells}


def parts_of(store: Store, name: str, cells: Mapping[str, Sequence[Cell]]) -> list[Part]:
    """The parts of suite `name`, largest first; `cells` are those of every suite that shares the store.

    A cell belongs to the last run that began before the cell was finished, of a suite and of families that have this
    cell: suites of a store share their cells. Cells that no run accounts for are a ValueError.
    """
    home: dict[str, set[str]] = {}
    for suite, members in cells.items():
        for cell in members:
            home.setdefault(cell.key, set()).add(suite)
    runs = sorted(store.runs(), key=lambda run: run["started"])
    family = {cell.key: family_of(cell) for cell in cells[name]}
    parts: dict[tuple[str, ...], Part] = {}
    for key, finished in sorted(store.finished(family).items(), key=lambda item: item[1]):
        able = [run for run in runs if run["suite"] in home[key] and _does(run["info"]["command"], family[key])]
        before = [run for run in able if run["started"] <= finished]
        if not before:
            raise ValueError(f"{name}: no run of the store accounts for a cell that was finished at {finished}")
        info = before[-1]["info"]
        machine = tuple(info["environment"].get(entry, "") for entry in _OF_A_MACHINE)
        part = parts.setdefault(machine, Part(info["environment"], started=before[-1]["started"]))
        part.environment = info["environment"]
        part.commands[info["command"]] = None
        part.started = min(part.started, before[-1]["started"])
        part.cells += 1
    return sorted(parts.values(), key=lambda part: -part.cells)


def _does(command: str, family: str) -> bool:
    named = re.search(r"--families[ =](\S+)", command)
    return named is None or family in named[1].split(",")
