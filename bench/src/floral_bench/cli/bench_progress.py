"""How far a benchmark is: a live display in a terminal, plain lines in a log."""

from __future__ import annotations

import threading
import time
from typing import Any

from floral_bench.plan import Job
from floral_bench.spec import CellResult

HEARTBEAT = 30.0  # seconds between lines of a log while nothing ends


def duration(seconds: float) -> str:
    """``4 s``, ``2 min 10 s``, ``1 h 05 min``."""
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


class Clock:
    """Time left, from the weight of what is done; shares of running jobs count."""

    def __init__(self, jobs: list[Job], shares: Any) -> None:
        self.jobs, self.shares = jobs, shares
        self.started = time.monotonic()
        self.begun: dict[int, float] = {}
        self.done: set[int] = set()

    def running(self) -> list[tuple[int, float, float | None]]:
        """(job, share done, seconds left) of the jobs under way."""
        now = time.monotonic()
        out: list[tuple[int, float, float | None]] = []
        for number in range(len(self.jobs)):
            share = float(self.shares[number])
            if share <= 0 or number in self.done:
                continue
            begun = self.begun.setdefault(number, now)
            left = (now - begun) * (1 - share) / share if share > 0.02 and now > begun else None
            out.append((number, share, left))
        return out

    def overall(self) -> tuple[float, float | None]:
        """(share done, seconds left) of the stage."""
        total = sum(job.weight for job in self.jobs)
        done = sum(self.jobs[number].weight for number in self.done)
        done += sum(self.jobs[number].weight * share for number, share, _ in self.running())
        share = done / total
        elapsed = time.monotonic() - self.started
        return share, elapsed * (1 - share) / share if share > 0.005 else None


def left_text(seconds: float | None) -> str:
    """The time left, where it is known."""
    return "time left not known yet" if seconds is None else f"about {duration(seconds)} left"


class LogProgress:
    """Plain lines through `write`: one per finished job, and one every half minute in between."""

    def __init__(self, write: Any) -> None:
        self.write = write
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, jobs: list[Job], shares: Any) -> None:
        """Begin a stage."""
        self.clock = Clock(jobs, shares)
        cells = sum(len(job.cells) for job in jobs)
        self.write(f"{cells} cells in {len(jobs)} batches")
        self._stop.clear()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT):
            share, left = self.clock.overall()
            self.write(f"{100 * share:.0f} % done, {left_text(left)}")
            for number, part, rest in self.clock.running():
                self.write(f"  {100 * part:.0f} % of {self.clock.jobs[number].title}, {left_text(rest)}")

    def finished(self, number: int, job: Job, results: list[CellResult]) -> None:
        """Say that a job ended, and which cells failed."""
        self.clock.done.add(number)
        _, left = self.clock.overall()
        took = duration(sum(result.seconds for result in results))
        count = f"{len(self.clock.done)}/{len(self.clock.jobs)}"
        self.write(f"{count} {job.title} [{took}], {left_text(left)}")
        for text in failures(results):
            self.write(f"  failed: {text}")

    def stop(self) -> None:
        """End a stage."""
        self._stop.set()


class LiveProgress:
    """A bar for the whole and one for each running batch, redrawn in place."""

    def __init__(self, console: Any) -> None:
        self.console = console

    def start(self, jobs: list[Job], shares: Any) -> None:
        """Begin a stage."""
        from rich.live import Live

        self.clock = Clock(jobs, shares)
        self.live = Live(get_renderable=self._render, console=self.console, refresh_per_second=4, transient=True)
        self.live.start()

    def _render(self) -> Any:
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        share, left = self.clock.overall()
        grid = Table.grid(padding=(0, 1))
        cells = sum(len(self.clock.jobs[number].cells) for number in self.clock.done)
        total = sum(len(job.cells) for job in self.clock.jobs)
        grid.add_row(f"[bold]{cells} of {total} cells", ProgressBar(1.0, share, width=30), left_text(left))
        for number, part, rest in self.clock.running()[:8]:
            grid.add_row(self.clock.jobs[number].title, ProgressBar(1.0, part, width=30), left_text(rest))
        return grid

    def finished(self, number: int, job: Job, results: list[CellResult]) -> None:
        """Count a job, and print which cells failed."""
        self.clock.done.add(number)
        for text in failures(results):
            self.console.print(f"[red]failed:[/red] {text}", highlight=False)

    def stop(self) -> None:
        """End a stage."""
        self.live.stop()


def failures(results: list[CellResult]) -> list[str]:
    """One line per failed cell."""
    return [
        f"{result.cell.method.title} at {result.cell.level:g} %, seed {result.cell.seed}: {result.error}"
        for result in results
        if result.error is not None
    ]
