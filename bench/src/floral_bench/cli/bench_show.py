"""The terminal's tables of a benchmark."""

from __future__ import annotations

from typing import Any

from floral_bench.reporting.by_level import READING, by_level
from floral_bench.reporting.results import WIDER, Results
from floral_bench.reporting.tables import Table, comparison, header, leading, lines
from floral_bench.runner import RunReport

from .bench_progress import duration


def print_table(console: Any, results: Results) -> None:
    """Paper, ours and difference where the paper has numbers, method x level otherwise; the best in bold."""
    if not results.suite.methods or not len(results.frame):
        return
    table = comparison(results)
    if not table.rows:
        return
    if table.has_paper:
        _print_beside_paper(console, table)
    else:
        _print_by_level(console, table)
    explained = dict.fromkeys(statistic.removesuffix(WIDER) for statistic in table.statistics)
    marked = "* the best of its level among rows that were told as much and share their C and gamma"
    console.print(f"mean ± deviation over replications, {marked}.", highlight=False, soft_wrap=True)
    for statistic in explained:
        name = f"{statistic}: " if len(explained) > 1 else ""
        console.print(f"{name}{READING[statistic]}", highlight=False, soft_wrap=True)


def _print_by_level(console: Any, table: Table) -> None:
    """One small table per attack: a row per method, a column per level."""
    from rich.box import SIMPLE
    from rich.table import Table as Shown

    for part in by_level(table):
        name = f"test accuracy, {part.title}" + ("" if part.statistic == "final" else f", {part.statistic}")
        shown = Shown(title=name, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0), collapse_padding=True)
        shown.add_column("method", overflow="fold")
        for head in part.heads:
            shown.add_column(head, justify="right")
        for method, entries in part.rows:
            texts = ["" if entry is None else entry.text() for entry in entries]
            marked = [entry is not None and entry.best for entry in entries]
            shown.add_row(method, *(f"[bold]{t}[/]*" if best else t for t, best in zip(texts, marked, strict=True)))
        console.print(shown)


def _print_beside_paper(console: Any, table: Table) -> None:
    """One row per level and method: the paper's number, ours, the difference."""
    from rich.box import SIMPLE
    from rich.table import Table as Shown

    start = len(leading(table))
    shown = Shown(
        title=f"test accuracy: {table.title}", title_justify="left",
        box=SIMPLE, padding=(0, 1, 0, 0), collapse_padding=True,
    )  # fmt: skip
    for number, name in enumerate(header(table)):
        shown.add_column(name.replace(": ", "\n"), justify="left" if number < start else "right")
    previous = None
    for row, line in zip(table.rows, lines(table, "[bold]{}[/]*"), strict=True):
        group = (row.place.attack, row.place.setting, row.place.level)
        if previous not in (None, group):
            shown.add_section()
        previous = group
        shown.add_row(*line)
    console.print(shown)


def print_costs(console: Any, report: RunReport) -> None:
    """Where the time went."""
    parts = sorted(report.split.items(), key=lambda item: -item[1])
    text = ", ".join(f"{name} {duration(seconds)}" for name, seconds in parts if seconds >= 0.05)
    if text:
        console.print(f"time: {text}", highlight=False, soft_wrap=True)
