"""The terminal's tables of a benchmark: at most 80 columns wide, with a row per method and a column per level."""

from __future__ import annotations

from typing import Any

from rich.box import SIMPLE
from rich.table import Table

from floral_bench.reporting.results import STATISTICS, WIDER, Results
from floral_bench.reporting.tables import READING, LevelTable, by_level, comparison
from floral_bench.runner import RunReport

from .bench_progress import duration

WIDTH = 80


def print_table(console: Any, results: Results, short: bool = False) -> None:
    """Test accuracy per attack and statistic, and below it the difference to the paper where that has numbers.

    `short` leaves out how to read them.
    """
    if not results.suite.methods or not len(results.frame):
        return
    rows = comparison(results)
    for part in by_level(rows, results.suite.grid):
        kind = "" if part.statistic == "final" else f", {part.statistic}"
        _print(console, f"test accuracy, {part.title}{kind}", part, _ours)
        if part.has_paper:
            _print(console, f"ours minus the paper's, {part.title}{kind}", part, _difference)
    if short or not len(rows):
        return
    console.print(
        "Means over replications; their deviations are in the files. "
        "* the best of its level among rows that were told as much and share their C and gamma.",
        highlight=False,
    )
    explained = [name for name in STATISTICS if name in {text.removesuffix(WIDER) for text in rows.statistic}]
    for statistic in explained:
        name = f"{statistic}: " if len(explained) > 1 else ""
        console.print(f"{name}{READING[statistic]}", highlight=False)


def _ours(line: Any) -> str:
    return f"[bold]{line.mean:.3f}[/]*" if line.best == "yes" else f"{line.mean:.3f} "


def _difference(line: Any) -> str:
    return "" if line.paper != line.paper else f"{line.mean - line.paper:+.3f}"


def _print(console: Any, title: str, part: LevelTable, text: Any) -> None:
    shown = Table(title=title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0), collapse_padding=True)
    shown.add_column("method", overflow="fold")
    for head in part.heads:
        shown.add_column(head, justify="right", no_wrap=True)
    for method, entries in part.rows:
        texts = ["" if entry is None else text(entry) for entry in entries]
        if any(texts):
            shown.add_row(method, *texts)
    console.print(shown)


def print_costs(console: Any, report: RunReport) -> None:
    """Where the time went."""
    parts = sorted(report.split.items(), key=lambda item: -item[1])
    text = ", ".join(f"{name} {duration(seconds)}" for name, seconds in parts if seconds >= 0.05)
    if text:
        console.print(f"time: {text}", highlight=False)
