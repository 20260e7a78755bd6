"""Sentences and tables about all suites, from the tidy accuracy tables that each of them leaves: who leads, how often.

Everything on the page is counted here. A cell is a poisoned level and kernel setting of a suite; ties to three digits
count for all that share them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from floral_learn.evaluation.spec import RESULTS_VERSION

if TYPE_CHECKING:
    import pandas as pd

PAPERS_METHODS = ("floral", "svm", "nn", "nn-pgd", "ln-svm", "curie", "ls-svm", "k-lid")
STATISTICS = ("best", "last", "average", "final")
# (heading, method, statistic, what it is compared with): the same C and kernel on both sides, or both as they come.
DIFFERENCES = (
    ("floral - svm, average", "floral", "average", "svm"),
    ("budget 2 % - svm", "floral (budget 2 %)", "final", "svm (libsvm)"),
    ("budget = level - svm", "floral (budget = level)", "final", "svm (libsvm)"),
    ("FloralClassifier() - SVC()", "FloralClassifier()", "final", "SVC()"),
)
_GROUP = ["attack", "C", "gamma", "level"]


@dataclass(frozen=True)
class Leads:
    """In how many of a suite's poisoned cells FLORAL is first among the paper's methods."""

    first: int
    cells: int

    def __str__(self) -> str:
        return f"{self.first} of {self.cells}" if self.cells else ""

    def __add__(self, other: Leads) -> Leads:
        return Leads(self.first + other.first, self.cells + other.cells)


def read_suites(folder: Path) -> dict[str, pd.DataFrame]:
    """name -> the accuracy table of every suite under `folder`, poisoned levels only.

    ``attrs["older"]`` says whether its numbers come from another version of the results than this one.
    """
    import pandas as pd

    found = {}
    for path in sorted(folder.glob("*/accuracy.csv")):
        table = pd.read_csv(path)
        table = table[table.level > 0]
        if len(table) and "floral" in set(table.method):
            table.attrs["older"] = _version(path.parent) != str(RESULTS_VERSION)
            found[path.parent.name] = table
    return found


def _version(folder: Path) -> str | None:
    """The version of the results that a suite's note names; the first suites that were published have no note."""
    note = folder / "run.json"
    if not note.is_file():
        return None
    version = json.loads(note.read_text(encoding="utf-8"))["environment"].get("results_version")
    return None if version is None else str(version)


def leads(table: pd.DataFrame, statistic: str, column: str = "mean") -> Leads:
    """How often FLORAL leads in `statistic`: in our numbers, or in the paper's with ``column="paper"``."""
    part = table[(table.statistic == statistic) & table.method.isin(PAPERS_METHODS)].dropna(subset=[column])
    first = cells = 0
    for _, cell in part.groupby(_GROUP):
        values = cell.set_index("method")[column].round(3)
        if "floral" not in values or len(values) < 2:
            continue
        cells += 1
        first += bool(values["floral"] >= values.max())
    return Leads(first, cells)


def differences(table: pd.DataFrame, method: str, statistic: str, other: str) -> list[float]:
    """`method` minus `other` in every cell that has both."""
    part = table[table.statistic == statistic].set_index(_GROUP)
    mine, theirs = (part[part.method == name]["mean"] for name in (method, other))
    return (mine - theirs).dropna().tolist()


def winners(table: pd.DataFrame, statistic: str) -> list[tuple[str, str, str]]:
    """(cell, who is first, who is next) of each cell, with their numbers."""
    out = []
    several = table[_GROUP[:3]].drop_duplicates().shape[0] > 1
    for (attack, C, gamma, level), cell in table[table.statistic == statistic].groupby(_GROUP, sort=False):
        values = cell.set_index("method")["mean"].round(3).sort_values(ascending=False, kind="stable")
        if len(values) < 2:
            continue
        top = values[values == values.iloc[0]]
        below = values[values < values.iloc[0]]
        place = f"{level:g} %" + (f" ({attack}, C={C:g}, gamma={gamma:g})" if several else "")
        second = f"{below.index[0]} {below.iloc[0]:.3f}" if len(below) else "level"
        out.append((place, f"{', '.join(top.index)} {top.iloc[0]:.3f}", second))
    return out


def to_markdown(suites: dict[str, pd.DataFrame]) -> str:
    """The page."""
    whole = {name: table for name, table in suites.items() if _has_the_papers_methods(table)}
    lines = [
        "# Who leads, counted",
        "",
        "<!-- Written by benchmarks/run_suites.py from the accuracy.csv of each suite; do not edit by hand. -->",
        "",
        *sentences(whole),
        *_older_sentence(suites, whole),
        "",
        "## How often FLORAL leads",
        "Among the paper's eight methods, in poisoned cells; ties to three digits count. Differences are means over "
        "cells, with the range; both sides have the same C and kernel.",
        "",
        *_leads_table(whole),
        "",
        "## Who won",
        "The highest mean of every method in the table, and the next. *best*, *last* and *average* were chosen on test "
        "labels; *final* is one fit.",
        "",
    ]
    for name, table in suites.items():
        shown = [statistic for statistic in STATISTICS if winners(table, statistic)]
        earlier = " (earlier version)" if table.attrs.get("older") else ""
        lines += [f"### {name}{earlier}", "", "| poisoned | " + " | ".join(f"{s}: first | next" for s in shown) + " |"]
        lines.append("|---|" + "---|---|" * len(shown))
        by_place: dict[str, dict[str, tuple[str, str]]] = {}
        for statistic in shown:
            for place, first, second in winners(table, statistic):
                by_place.setdefault(place, {})[statistic] = (first, second)
        for place, found in by_place.items():
            cells = [text for statistic in shown for text in found.get(statistic, ("", ""))]
            lines.append(f"| {place} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _older_sentence(suites: dict[str, pd.DataFrame], whole: dict[str, pd.DataFrame]) -> list[str]:
    """Which suites were not run again, and the counts without them."""
    older = [name for name, table in suites.items() if table.attrs.get("older")]
    if not older:
        return []
    new = [table for name, table in whole.items() if name not in older]
    counts = [
        f"{statistic} {sum((leads(table, statistic) for table in new), Leads(0, 0))}"
        for statistic in STATISTICS[:3]
        if any(leads(table, statistic).cells for table in new)
    ]
    without = f" Without them FLORAL is first in: {', '.join(counts)}." if counts else ""
    return [f"- Numbers of an earlier version, not yet run again: {', '.join(older)}.{without}"]


def _has_the_papers_methods(table: pd.DataFrame) -> bool:
    """Whether leading means something here: suites with two or three of the methods repeat cells of others."""
    return len(set(table.method) & set(PAPERS_METHODS)) > len(PAPERS_METHODS) // 2


def sentences(suites: dict[str, pd.DataFrame]) -> list[str]:
    """What the numbers say, as a list of points."""
    out = []
    words = {"best": "the peak over rounds", "last": "the last round", "average": "the averaged model"}
    for statistic, meaning in words.items():
        ours = sum((leads(table, statistic) for table in suites.values()), Leads(0, 0))
        theirs = sum((leads(table, statistic, "paper") for table in suites.values()), Leads(0, 0))
        beside = f"; in the paper's own numbers in {theirs}" if theirs.cells else ""
        if ours.cells:
            first = f"- In *{statistic}* ({meaning}) FLORAL is first among the paper's methods in "
            out.append(f"{first}{ours} poisoned cells{beside}.")
    for heading, method, statistic, other in DIFFERENCES:
        values = [value for table in suites.values() for value in differences(table, method, statistic, other)]
        if values:
            out.append(f"- {_say(heading, values)}")
    return out


def _say(heading: str, values: Sequence[float]) -> str:
    up, down = sum(value > 0.0005 for value in values), sum(value < -0.0005 for value in values)
    return (
        f"{heading}: {np.mean(values):+.3f} on average over {len(values)} poisoned cells "
        f"({min(values):+.3f} to {max(values):+.3f}; higher in {up}, lower in {down})."
    )


def _leads_table(suites: dict[str, pd.DataFrame]) -> list[str]:
    names = [
        "suite",
        "best: paper",
        "ours",
        "last: paper",
        "ours",
        "average",
        *(heading for heading, *_ in DIFFERENCES),
    ]
    lines = ["| " + " | ".join(names) + " |", "|---|" + "---:|" * (len(names) - 1)]
    for name, table in suites.items():
        counts = [
            leads(table, "best", "paper"), leads(table, "best"), leads(table, "last", "paper"), leads(table, "last"),
            leads(table, "average"),
        ]  # fmt: skip
        gains = [_range(differences(table, *given)) for _, *given in DIFFERENCES]
        earlier = " (earlier version)" if table.attrs.get("older") else ""
        lines.append(f"| [{name}]({name}/accuracy.md){earlier} | " + " | ".join([*map(str, counts), *gains]) + " |")
    return lines


def _range(values: Sequence[float]) -> str:
    if not values:
        return ""
    return f"{np.mean(values):+.3f} ({min(values):+.3f} to {max(values):+.3f})"
