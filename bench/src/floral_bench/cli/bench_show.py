"""What a benchmark shows in a terminal: how far it is, and tables at most 80 columns wide, a row per method."""

from __future__ import annotations

import time
from typing import Any

from rich.box import SIMPLE
from rich.table import Table

from floral_bench.plan import Job
from floral_bench.reporting.results import STATISTICS, WIDER, Results
from floral_bench.reporting.tables import READING, LevelTable, by_level, comparison
from floral_bench.runner import RunReport
from floral_bench.spec import CellResult

WIDTH = 80


def duration(seconds: float) -> str:
    """``4 s``, ``2 min 10 s``, ``1 h 05 min``."""
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


class Progress:
    """What is being done and the time left, on a rich console; the time comes from the weight of what is done."""

    def __init__(self, console: Any) -> None:
        self.console = console
        self.bar: Any = None

    def start(self, jobs: list[Job]) -> None:
        """Begin a stage."""
        self.waiting, self.count, self.done = list(jobs), len(jobs), 0.0
        self.total, self.started = sum(job.weight for job in jobs), time.monotonic()
        if not self.console.is_terminal:
            self._log(f"{sum(len(job.cells) for job in jobs)} cells in {len(jobs)} batches, first {jobs[0].title}")
            return
        from rich.progress import BarColumn, Progress, TextColumn

        self.bar = Progress(TextColumn("{task.description}"), BarColumn(), console=self.console, transient=True)
        self.task = self.bar.add_task(jobs[0].title, total=self.total)
        self.bar.start()

    def left(self) -> str:
        """The time left, where it is known."""
        if not self.done:
            return "time left not known yet"
        return f"about {duration((time.monotonic() - self.started) * (self.total - self.done) / self.done)} left"

    def finished(self, job: Job, results: list[CellResult]) -> None:
        """Count a job, name the next one, and say which cells failed."""
        self.waiting.remove(job)
        self.done += job.weight
        lost = [
            f"failed: {result.cell.method.title} at {result.cell.level:g} %, seed {result.cell.seed}: {result.error}"
            for result in results
            if result.error is not None
        ]
        if self.bar is not None:
            following = f"{self.waiting[0].title}, {self.left()}" if self.waiting else ""
            self.bar.update(self.task, completed=self.done, description=following)
        else:
            took = duration(sum(result.seconds for result in results))
            self._log(f"{self.count - len(self.waiting)}/{self.count} {job.title} [{took}], {self.left()}")
        for text in lost:
            self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def stop(self) -> None:
        """End a stage."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def _log(self, text: str) -> None:
        now = time.strftime("%H:%M:%S")
        self.console.print(f"{now} {text}", highlight=False, markup=False, soft_wrap=True)


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
