"""Sentences and tables about all suites, from the tidy accuracy tables that each of them leaves: who leads, how often.

Everything on the page is counted here. A cell is a data set under an attack at a level, with C and gamma; it counts
once, however many suites show it, and numbers of methods that have no C and gamma count once for all kernels. Ties to
three digits count for all that share them. A suite that holds the same table of the paper against other labels is
counted by itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from floral_bench.reporting.who_won import who_won
from floral_bench.spec import RESULTS_VERSION

if TYPE_CHECKING:
    import pandas as pd

PAPERS_METHODS = ("floral", "svm", "nn", "nn-pgd", "ln-svm", "curie", "ls-svm", "k-lid")
WORDS = {"best": "the peak over rounds", "last": "the last round", "average": "the averaged model"}
# (heading, method, statistic, what it is compared with): the same C and kernel on both sides, or both as they come.
DIFFERENCES = (
    ("floral - svm, average", "floral", "average", "svm"),
    ("budget 2 % - svm", "floral (budget 2 %)", "final", "svm (libsvm)"),
    ("budget = level - svm", "floral (budget = level)", "final", "svm (libsvm)"),
    ("FloralClassifier() - SVC()", "FloralClassifier()", "final", "SVC()"),
)
_CELL = ["data", "attack", "C", "gamma", "level"]


@dataclass(frozen=True)
class Leads:
    """In how many poisoned cells FLORAL is first among the paper's methods."""

    first: int
    cells: int

    def __str__(self) -> str:
        return f"{self.first} of {self.cells}" if self.cells else ""


@dataclass(frozen=True)
class Published:
    """A suite as its folder tells it: the numbers of its poisoned levels, and what they are held against."""

    name: str
    table: pd.DataFrame
    paper_table: str | None
    older: bool  # numbers of another version of the results than this one

    @property
    def methods(self) -> int:
        """How many of the paper's methods it has."""
        return len(set(self.table.method) & set(PAPERS_METHODS))

    @property
    def title(self) -> str:
        """Its name, and whether its numbers are old."""
        return self.name + (" (earlier version)" if self.older else "")


def read_suites(folder: Path) -> list[Published]:
    """Every suite under `folder` that has FLORAL's game, by name."""
    import pandas as pd

    found = []
    for path in sorted(folder.glob("*/accuracy.csv")):
        table = pd.read_csv(path)
        table = table[table.level > 0]
        if not len(table) or "floral" not in set(table.method):
            continue
        note = _note(path.parent)
        suite = note.get("suite", {})
        free = {method["label"] or method["name"] for method in suite.get("methods", ()) if not method["per_setting"]}
        # all replications: the authors' labels are five games on one split
        data = json.dumps(suite["data"]) if suite else path.parent.name
        table = table.assign(
            data=data,
            data_name=suite["data"][0]["name"] if suite else path.parent.name,
            per_setting=~table.method.isin(free),
        )
        version = note.get("environment", {}).get("results_version")
        older = str(version) != str(RESULTS_VERSION)
        found.append(Published(path.parent.name, table, suite.get("paper_table"), older))
    return found


def _note(folder: Path) -> dict[str, Any]:
    """How a suite was made; the first suites that were published have no note."""
    path = folder / "run.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def once(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows of several suites, each cell once."""
    import pandas as pd

    return pd.concat(tables).drop_duplicates([*_CELL, "method", "statistic"])


def leads(table: pd.DataFrame, statistic: str, column: str = "mean") -> Leads:
    """How often FLORAL leads in `statistic`: in our numbers, or in the paper's with ``column="paper"``."""
    part = table[(table.statistic == statistic) & table.method.isin(PAPERS_METHODS)].dropna(subset=[column])
    first = cells = 0
    for _, cell in part.groupby(_CELL):
        values = cell.set_index("method")[column].round(3)
        if "floral" not in values or len(values) < 2:
            continue
        cells += 1
        first += bool(values["floral"] >= values.max())
    return Leads(first, cells)


def differences(table: pd.DataFrame, method: str, statistic: str, other: str) -> list[float]:
    """`method` minus `other` in every cell that has both."""
    part = table[(table.statistic == statistic) & table.method.isin((method, other))]
    part = part.assign(C=part["C"].where(part.per_setting, 0), gamma=part.gamma.where(part.per_setting, 0))
    part = part.drop_duplicates([*_CELL, "method"]).set_index(_CELL)
    mine, theirs = (part[part.method == name]["mean"] for name in (method, other))
    return (mine - theirs).dropna().tolist()


def to_markdown(suites: Sequence[Published]) -> str:
    """The page."""
    first, again = against_the_paper(suites)
    return "\n".join(
        [
            "# Who leads, counted",
            "",
            "<!-- Written by benchmarks/run_suites.py from the accuracy.csv of each suite; do not edit by hand. -->",
            "",
            *sentences(first),
            *_older_sentence(suites, first),
            "",
            "## How often FLORAL leads",
            "Among the paper's methods (*methods*: how many of the eight a suite has), in poisoned cells; ties to "
            "three digits count. Differences are means over cells, with the range; both sides have the same C and "
            "kernel. In the last row a cell that several suites show counts once, and `FloralClassifier()` and "
            "`SVC()`, which have no C of the suite, count once for all kernels.",
            "",
            *_leads_table(first, total=True),
            "",
            *_again_section(again),
            "## Who won",
            "In every cell the highest mean and, after it, the next, among rows that can be compared "
            "([how](../benchmarks.md#how-to-read-the-columns)): *best*, and *last* and *average* of methods with a "
            "grid, were chosen on test labels; *final* is one fit. Groups of one are left out.",
            "",
            *(line for suite in suites for line in ("### " + suite.title, "", *who_won(suite.table), "")),
        ]
    )


def against_the_paper(suites: Sequence[Published]) -> tuple[list[Published], list[Published]]:
    """The suites with most of the paper's methods; apart, those that repeat a table of the paper on other labels."""
    whole = [suite for suite in suites if suite.methods > len(PAPERS_METHODS) // 2]
    first: list[Published] = []
    for suite in whole:
        if suite.paper_table is None or suite.paper_table not in {known.paper_table for known in first}:
            first.append(suite)
    return first, [suite for suite in whole if suite not in first]


def sentences(suites: Sequence[Published]) -> list[str]:
    """What the numbers say, as a list of points."""
    if not suites:
        return []
    table = once([suite.table for suite in suites])
    out = []
    for statistic, meaning in WORDS.items():
        ours, theirs = leads(table, statistic), leads(table, statistic, "paper")
        beside = f"; in the paper's own numbers in {theirs}" if theirs.cells else ""
        if ours.cells:
            first = f"- In *{statistic}* ({meaning}) FLORAL is first among the paper's methods in "
            out.append(f"{first}{ours} poisoned cells{beside}.")
    for heading, *given in DIFFERENCES:
        values = differences(table, *given)
        if values:
            out.append(f"- {_say(heading, values)}{_by_data(table, given)}.")
    return out


def _by_data(table: pd.DataFrame, given: Sequence[str]) -> str:
    """The same differences on each data set, where there are several."""
    found = {name: differences(part, *given) for name, part in table.groupby("data_name")}
    parts = [f"{name} {_range(values)} over {len(values)}" for name, values in found.items() if values]
    return "; " + ", ".join(parts) if len(parts) > 1 else ""


def _say(heading: str, values: Sequence[float]) -> str:
    up, down = sum(value > 0.0005 for value in values), sum(value < -0.0005 for value in values)
    return (
        f"{heading}: {_signed(np.mean(values))} on average over {len(values)} poisoned cells "
        f"({_signed(min(values))} to {_signed(max(values))}; higher in {up}, lower in {down})"
    )


def _older_sentence(suites: Sequence[Published], first: Sequence[Published]) -> list[str]:
    """Which suites were not run again, and the counts without them."""
    older = [suite.name for suite in suites if suite.older]
    if not older:
        return []
    new = [suite.table for suite in first if not suite.older]
    counts = {statistic: leads(once(new), statistic) for statistic in WORDS} if new else {}
    said = [f"{statistic} {count}" for statistic, count in counts.items() if count.cells]
    without = f" Without them FLORAL is first in: {', '.join(said)}." if said else ""
    return [f"- Numbers of an earlier version, not yet run again: {', '.join(older)}.{without}"]


def _again_section(suites: Sequence[Published]) -> list[str]:
    """Suites that repeat a table of the paper, a row per attack, in no count above."""
    if not suites:
        return []
    return [
        "## The same tables of the paper on other labels",
        "These hold cells of the paper that are counted above against labels that were poisoned in another way, so "
        "they are in none of the counts above.",
        "",
        *_leads_table(suites, total=False),
        "",
    ]


def _leads_table(suites: Sequence[Published], total: bool) -> list[str]:
    headings = [heading for heading, *_ in DIFFERENCES]
    names = ["suite", "methods", "best: paper", "ours", "last: paper", "ours", "average", *headings]
    lines = ["| " + " | ".join(names) + " |", "|---|" + "---:|" * (len(names) - 1)]
    for suite in suites:
        attacks = dict.fromkeys(suite.table.attack)
        # the cells of one attack are one pass over the paper's table
        for attack in attacks if len(attacks) > 1 else (None,):
            part = suite.table if attack is None else suite.table[suite.table.attack == attack]
            link = f"[{suite.name}]({suite.name}/accuracy.md)" + suite.title.removeprefix(suite.name)
            lines.append(_leads_line(link + (f", {attack}" if attack else ""), str(suite.methods), part))
    if total and len(suites) > 1:
        lines.append(_leads_line("**all, each cell once**", "", once([suite.table for suite in suites])))
    return lines


def _leads_line(title: str, methods: str, table: pd.DataFrame) -> str:
    counts = [
        leads(table, "best", "paper"), leads(table, "best"), leads(table, "last", "paper"), leads(table, "last"),
        leads(table, "average"),
    ]  # fmt: skip
    gains = [_range(differences(table, *given)) for _, *given in DIFFERENCES]
    return "| " + " | ".join([title, methods, *map(str, counts), *gains]) + " |"


def _range(values: Sequence[float]) -> str:
    if not values:
        return ""
    return f"{_signed(np.mean(values))} ({_signed(min(values))} to {_signed(max(values))})"


def _signed(value: Any) -> str:
    text = f"{value:+.3f}"
    return "0.000" if float(text) == 0 else text
