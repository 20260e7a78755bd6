"""Who leads, counted from the rows that each suite leaves: FLORAL, and everybody it is compared with.

A cell is a data set under an attack at a level, with C and gamma; it counts once, however many suites show it, and
numbers of methods that have no C and gamma count once for all kernels. Ties to three digits count for all that share
them. Suites that hold other labels against the same tables of the paper are counted by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from floral_bench.adapt_suite import suite_named
from floral_bench.reporting.tables import markdown

PAPERS_METHODS = ("floral", "svm", "nn", "nn-pgd", "ln-svm", "curie", "ls-svm", "k-lid")
WORDS = {"best": "the peak over rounds", "last": "the last round", "average": "the averaged model"}
# Single fits with the C and gamma of the suite, by what they are given; each is compared with the plain SVM.
TOLD = {
    "nothing": ("k-lid (libsvm)", "floral (budget 2 %)"),
    "the share": ("curie (libsvm)", "floral (budget = level)", "ln-svm (libsvm)", "ls-svm (libsvm)"),
}
PLAIN = "svm (libsvm)"
OTHER_LABELS = ("moon-reference", "mnist-duals")  # tables of the paper again, on labels poisoned in another way
_CELL = ["data", "attack", "C", "gamma", "level"]


PAGE = """## Who leads, counted

<!-- Written by `python benchmarks/run_suites.py summary` from the rows of each suite; do not edit. -->

### Single fits, nothing chosen on clean labels
Every defense as one fit with the suite's C and gamma, minus the plain SVM (libsvm) with the same C and gamma, in \
poisoned cells of the paper's tables; the last line is what a user gets without settings. Defenses that are given the \
true share of poisoned labels, as the paper gives it to its baselines, and defenses that are given nothing have lines \
of their own.

{fits}
FLORAL given the share, minus K-LID given nothing: {told} on average ({beaten}); FLORAL with a budget of 2 %, given \
nothing, minus K-LID: {untold}.

### How often FLORAL's game leads
Among the paper's methods (*methods*: how many of the eight a suite has), with the paper's grid and the setting chosen \
on test labels as the paper does; ties to three digits count. In the last row a cell that several suites show counts \
once.

{leads}
### The same tables of the paper on other labels
The authors' own label files, and top-k on duals of an SVM that was stopped early: in none of the counts above.

{again}
"""


@dataclass(frozen=True)
class Leads:
    """In how many poisoned cells FLORAL is first among the paper's methods."""

    first: int
    cells: int

    def __str__(self) -> str:
        return f"{self.first} of {self.cells}" if self.cells else ""


@dataclass(frozen=True)
class Published:
    """A suite as its folder tells it: the accuracies of its poisoned levels."""

    name: str
    table: pd.DataFrame

    @property
    def methods(self) -> int:
        """How many of the paper's methods it has."""
        return len(set(self.table.method) & set(PAPERS_METHODS))


def read_suites(folder: Path) -> list[Published]:
    """Every suite under `folder` that has most of the paper's methods, by name."""
    found = []
    for path in sorted(folder.glob("*/rows.csv.gz")):
        suite, table = suite_named(path.parent.name), pd.read_csv(path, low_memory=False)
        if suite is None or "metric" not in table or "floral" not in set(table.method):
            continue
        table = table[(table.metric == "accuracy") & (table.level > 0) & table.statistic.isin([*WORDS, "final"])]
        free = {method.title for method in suite.methods if not method.per_setting}
        # all replications: the authors' labels are five games on one split
        table = table.assign(data=repr(suite.data), per_setting=~table.method.isin(free))
        found.append(Published(path.parent.name, table))
    return [suite for suite in found if suite.methods > len(PAPERS_METHODS) // 2]


def once(suites: Sequence[Published]) -> pd.DataFrame:
    """The rows of several suites, each cell once."""
    return pd.concat([suite.table for suite in suites]).drop_duplicates([*_CELL, "method", "statistic"])


def leads(table: pd.DataFrame, statistic: str, column: str = "mean") -> Leads:
    """How often FLORAL leads in `statistic`: in our numbers, or in the paper's with ``column="paper"``."""
    part = table[(table.statistic == statistic) & table.method.isin(PAPERS_METHODS)].dropna(subset=[column])
    wide = part.pivot_table(index=_CELL, columns="method", values=column).round(3)
    wide = wide[wide.notna().sum(axis=1) > 1].reindex(columns=list(PAPERS_METHODS)).dropna(subset="floral")
    return Leads(int((wide.floral >= wide.max(axis=1)).sum()), len(wide))


def differences(table: pd.DataFrame, method: str, other: str, statistic: str = "final") -> np.ndarray:
    """`method` minus `other` in every cell that has both."""
    part = table[(table.statistic == statistic) & table.method.isin((method, other))]
    part = part.assign(C=part["C"].where(part.per_setting, 0), gamma=part.gamma.where(part.per_setting, 0))
    part = part.drop_duplicates([*_CELL, "method"]).set_index(_CELL)
    mine, theirs = (part[part.method == name]["mean"] for name in (method, other))
    return (mine - theirs).dropna().to_numpy()


def against_the_svm(table: pd.DataFrame) -> pd.DataFrame:
    """Every single fit over the plain SVM with the same C and kernel, and the two defaults over each other."""
    pairs = [(told, method, PLAIN) for told, methods in TOLD.items() for method in methods]
    pairs.append(("nothing", "FloralClassifier()", "SVC()"))
    rows: list[dict[str, Any]] = []
    for given, method, other in pairs:
        values = differences(table, method, other)
        if len(values):
            row: dict[str, Any] = {"given": given, "method": method, "minus": other, "cells": len(values)}
            row |= {name: _signed(getattr(np, name)(values)) for name in ("mean", "median")}
            row |= {"lowest": _signed(values.min()), "highest": _signed(values.max())}
            rows.append(row | {"higher in": (values > 0.0005).sum(), "lower in": (values < -0.0005).sum()})
    # what a user gets without settings last, and who is given nothing first
    rows.sort(key=lambda row: (row["method"] == "FloralClassifier()", row["given"] != "nothing", -float(row["mean"])))
    return pd.DataFrame(rows)


def to_markdown(suites: Sequence[Published]) -> str:
    """The page."""
    first = [suite for suite in suites if suite.name not in OTHER_LABELS]
    again = [suite for suite in suites if suite.name in OTHER_LABELS]
    table = once(first)
    shown = ("floral (budget = level)", TOLD["nothing"][1])
    told, untold = (differences(table, method, "k-lid (libsvm)") for method in shown)
    page = PAGE.format(
        fits=markdown(against_the_svm(table), left=3),
        told=_signed(told.mean()),
        beaten=f"{(told > 0.0005).sum()} cells higher, {(told < -0.0005).sum()} lower",
        untold=_signed(untold.mean()),
        leads=_leads_table(first, total=True),
        again=_leads_table(again, total=False),
    )
    return page + "\n".join(f"{suite.name}:\n\n{markdown(against_the_svm(suite.table), left=3)}" for suite in again)


def _leads_table(suites: Sequence[Published], total: bool) -> str:
    lines = []
    for suite in suites:
        attacks = dict.fromkeys(suite.table.attack)
        # the cells of one attack are one pass over the paper's table
        for attack in attacks if len(attacks) > 1 else (None,):
            part = suite.table if attack is None else suite.table[suite.table.attack == attack]
            link = f"[{suite.name}]({suite.name}/rows.csv.gz)"
            lines.append(_leads_line(link + (f", {attack}" if attack else ""), suite.methods, part))
    if total and len(suites) > 1:
        lines.append(_leads_line("**all, each cell once**", "", once(suites)))
    return markdown(pd.DataFrame(lines))


def _leads_line(title: str, methods: Any, table: pd.DataFrame) -> dict[str, Any]:
    line = {"suite": title, "methods": methods}
    for statistic in ("best", "last"):
        line |= {f"{statistic}: paper": leads(table, statistic, "paper"), f"{statistic}: ours": leads(table, statistic)}
    over = differences(table, "floral", "svm", "average")
    return line | {"average": leads(table, "average"), "average, over svm": _signed(over.mean()) if len(over) else ""}


def _signed(value: Any) -> str:
    text = f"{value:+.3f}"
    return "0.000" if float(text) == 0 else text
