"""The terminal's tables of a benchmark."""

from __future__ import annotations

from typing import Any

from floral_learn.evaluation.reporting.results import Results
from floral_learn.evaluation.reporting.tables import comparison, header, leading, lines
from floral_learn.evaluation.runner import RunReport

from .bench_progress import duration


def print_table(console: Any, results: Results) -> None:
    """Paper, ours and difference, with a line between levels and the best in bold."""
    from rich.box import SIMPLE
    from rich.table import Table

    if not results.suite.methods or not len(results.frame):
        return
    table = comparison(results)
    if not table.rows:
        return
    start = len(leading(table))
    shown = Table(
        title=f"test accuracy: {table.title}", title_justify="left", caption=CAPTION, caption_justify="left",
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


CAPTION = (
    "mean ± deviation over replications, * the best of its level. best: peak over rounds, last: last round, average: "
    "mean model of the last half of the rounds; for these three the grid was chosen on the test set, as in the paper. "
    "final: one fit, nothing chosen with clean labels."
)


def print_costs(console: Any, report: RunReport) -> None:
    """Where the time went."""
    parts = sorted(report.split.items(), key=lambda item: -item[1])
    text = ", ".join(f"{name} {duration(seconds)}" for name, seconds in parts if seconds >= 0.05)
    if text:
        console.print(f"time: {text}", highlight=False, soft_wrap=True)
