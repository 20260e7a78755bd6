"""Tables from results: paper | ours | difference, with mean and deviation over replications, the best marked.

`comparison` computes, `to_markdown`, `to_csv` and `to_latex` write; the terminal's version is in the command line.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from floral_bench.metrics import sample_deviation
from floral_bench.reporting.comparable import best_of, comparable
from floral_bench.reporting.paper import paper_value
from floral_bench.reporting.results import COLUMNS, STATISTICS, Place, Results

METRICS = (
    "accuracy", "balanced_accuracy", "hinge_loss", "recovery_rate", "seconds", "peak_memory_mb",
    "overlap", "poisoned_share_floral", "poisoned_share_network",
)  # fmt: skip
LOWER_IS_BETTER = ("hinge_loss", "seconds", "peak_memory_mb")
NEITHER_IS_BETTER = METRICS[-3:]


@dataclass(frozen=True)
class Entry:
    """One number of a table: ours over the replications, the paper's, and whether it is the best of its group."""

    mean: float
    deviation: float  # sample standard deviation; nan for one replication
    count: int
    paper: float | None = None
    config: str = ""
    compared: str = ""  # the rows of its column that it can be compared with, see `comparable`
    best: bool = False

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.paper is None else self.mean - self.paper

    def text(self, digits: int = 3) -> str:
        """``0.924 ± 0.011``."""
        spread = "" if np.isnan(self.deviation) else f" ± {self.deviation:.{digits}f}"
        return f"{self.mean:.{digits}f}{spread}"


@dataclass(frozen=True)
class Row:
    """A method at one level, with one entry per statistic."""

    place: Place
    entries: dict[str, Entry]


@dataclass(frozen=True)
class Table:
    """Rows grouped by attack, setting and level."""

    title: str
    metric: str
    rows: tuple[Row, ...]
    statistics: tuple[str, ...]

    @property
    def has_paper(self) -> bool:
        """Whether any number of the paper stands beside ours."""
        return any(entry.paper is not None for row in self.rows for entry in row.entries.values())


def comparison(results: Results, metric: str = "accuracy") -> Table:
    """One row per method and level, one column per statistic, with the paper's number where it has one."""
    rows: list[Row] = []
    for place in results.cells:
        entries = {}
        for statistic in COLUMNS:
            if statistic not in STATISTICS and (place, statistic) not in results.chosen:
                continue
            config = results.chosen.get((place, statistic), "")
            values = results.values(place, statistic, metric, config)
            if not len(values):
                continue
            entries[statistic] = _entry(results, place, metric, statistic, values, config)
        if entries:
            rows.append(Row(place, entries))
    statistics = tuple(s for s in COLUMNS if any(s in row.entries for row in rows))
    return Table(results.suite.title, metric, tuple(_mark(rows, metric)), statistics)


def costs(results: Results) -> list[tuple[str, float, float]]:
    """(method, mean seconds of a cell, largest peak memory in MB) of each method.

    A cell of a batch has its share of the batch's time; the memory is that of the process while the batch ran.
    """
    frame = results.frame[results.frame.statistic == "cost"]
    out = []
    for method in dict.fromkeys(frame.method):
        own = frame[frame.method == method]
        seconds = own[own.metric == "seconds"].value.mean()
        out.append((method, float(seconds), float(own[own.metric == "peak_memory_mb"].value.max())))
    return out


def _entry(results: Results, place: Place, metric: str, statistic: str, values: np.ndarray, config: str) -> Entry:
    paper = paper_value(results.suite.paper_table, place.level, place.setting, place.method.title, metric, statistic)
    if paper is None and statistic == "final":  # the paper lists its single fits under "last"
        paper = paper_value(results.suite.paper_table, place.level, place.setting, place.method.title, metric, "last")
    compared = comparable(results.suite, place.method, statistic)
    return Entry(float(np.mean(values)), float(sample_deviation(values)), len(values), paper, config, compared)


def _mark(rows: list[Row], metric: str) -> list[Row]:
    """Mark the best mean of each level and statistic among `comparable` rows, to three digits as it is printed.

    Where one method stands alone, or where all are level, none is the best.
    """
    if metric in NEITHER_IS_BETTER:
        return rows
    sign = -1 if metric in LOWER_IS_BETTER else 1
    found = {(number, name): entry for number, row in enumerate(rows) for name, entry in row.entries.items()}
    groups = {(number, name): _group(rows[number], name, entry) for (number, name), entry in found.items()}
    best = best_of({key: sign * round(entry.mean, 3) for key, entry in found.items()}, groups)
    return [
        Row(row.place, {name: replace(entry, best=(number, name) in best) for name, entry in row.entries.items()})
        for number, row in enumerate(rows)
    ]


def _group(row: Row, statistic: str, entry: Entry) -> tuple[Any, ...]:
    return row.place.attack, row.place.setting, row.place.level, statistic, entry.compared


def leading(table: Table) -> dict[str, list[str]]:
    """The columns before the numbers; attack and setting only where they differ between rows."""
    places = [row.place for row in table.rows]
    columns = {
        "attack": [place.attack if place.level else "none" for place in places],
        "C, gamma": [f"{place.setting[0]:g}, {place.setting[1]:g}" for place in places],
        "poisoned": [f"{place.level:g} %" for place in places],
        "method": [place.method.title for place in places],
    }
    if len({place.attack for place in places}) < 2:
        del columns["attack"]
    if len({place.setting for place in places}) < 2:
        del columns["C, gamma"]
    return columns


def header(table: Table) -> list[str]:
    """Column names of the printed forms."""
    names = list(leading(table))
    for statistic in table.statistics:
        if any(row.entries[statistic].paper is not None for row in table.rows if statistic in row.entries):
            names += [f"{statistic}: paper", f"{statistic}: ours", f"{statistic}: difference"]
        else:
            names.append(f"{statistic}: ours")
    return names


def lines(table: Table, bold: str = "**{}**") -> list[list[str]]:
    """The cells of the printed forms as text; the best of each group goes through `bold`."""
    names = header(table)
    out = []
    for row, *start in zip(table.rows, *leading(table).values(), strict=True):
        line = list(start)
        for statistic in table.statistics:
            entry = row.entries.get(statistic)
            ours = "" if entry is None else entry.text()
            ours = bold.format(ours) if entry is not None and entry.best else ours
            if f"{statistic}: paper" not in names:
                line.append(ours)
            elif entry is None or entry.paper is None:
                line += ["", ours, ""]
            else:
                line += [f"{entry.paper:.3f}", ours, f"{entry.difference:+.3f}"]
        out.append(line)
    return out


def to_markdown(table: Table) -> str:
    """A Markdown table; the best of each level and column in bold, among comparable rows."""
    names = header(table)
    body = ["| " + " | ".join(line) + " |" for line in lines(table)]
    return "\n".join(["| " + " | ".join(names) + " |", "|" + "---|" * len(names), *body]) + "\n"


def to_csv(table: Table) -> str:
    """Tidy CSV: one line per number, with the configuration that was chosen and what it was compared with."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = ["attack", "level", "C", "gamma", "method", "metric", "statistic", "mean", "deviation", "replications"]
    writer.writerow([*names, "paper", "difference", "configuration", "compared", "best"])
    for row in table.rows:
        start = [
            row.place.attack,
            f"{row.place.level:g}",
            *(f"{v:g}" for v in row.place.setting),
            row.place.method.title,
        ]
        for statistic, entry in row.entries.items():
            spread = "" if np.isnan(entry.deviation) else f"{entry.deviation:.5f}"
            paper = ["", ""] if entry.paper is None else [f"{entry.paper:.4f}", f"{entry.difference:+.4f}"]
            best = "yes" if entry.best else ""
            numbers = [f"{entry.mean:.7f}", spread, entry.count, *paper, entry.config, entry.compared, best]
            writer.writerow([*start, table.metric, statistic, *numbers])
    return stream.getvalue()


def to_latex(table: Table) -> str:
    """A booktabs tabular."""
    names = header(table)
    body = []
    previous = None
    for row, line in zip(table.rows, lines(table, r"\textbf{{{}}}"), strict=True):
        group = (row.place.attack, row.place.setting, row.place.level)
        if previous is not None and group != previous:
            body.append(r"\midrule")
        previous = group
        body.append(" & ".join(_latex(text) for text in line) + r" \\")
    start = len(leading(table))
    columns = "l" * start + "r" * (len(names) - start)
    head = " & ".join(_latex(name) for name in names) + r" \\"
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def _latex(text: str) -> str:
    if text.startswith(r"\textbf{"):
        return text.replace("±", r"$\pm$").replace("%", r"\%")
    for old, new in (("\\", r"\textbackslash{}"), ("%", r"\%"), ("_", r"\_"), ("&", r"\&"), ("#", r"\#")):
        text = text.replace(old, new)
    return text.replace("±", r"$\pm$")
