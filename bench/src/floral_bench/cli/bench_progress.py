"""How far a benchmark is: one bar in a terminal, a line per finished batch in a log."""

from __future__ import annotations

import time
from typing import Any

from floral_bench.plan import Job
from floral_bench.spec import CellResult


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
