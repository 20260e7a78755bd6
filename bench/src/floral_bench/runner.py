"""Run what is missing of a suite: jobs go out to workers, every finished job is committed at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import joblib
import numpy as np

from floral_bench.families.run_job import run_job
from floral_bench.plan import OWN_DATA, Job, jobs_for
from floral_bench.spec import Cell, CellResult, Suite, attack_cell
from floral_bench.store import Store


@dataclass
class RunReport:
    """What a run did."""

    cells: int
    reused: int
    computed: int = 0
    failed: int = 0
    seconds: float = 0.0
    split: dict[str, float] = field(default_factory=dict)  # kind of work -> seconds of workers

    def count(self, job: Job, results: list[CellResult]) -> None:
        """Add a finished job."""
        self.computed += sum(result.error is None for result in results)
        self.failed += sum(result.error is not None for result in results)
        for result in results:
            name = result.cell.method.name if job.family == "fits" else job.family
            self.split[name] = self.split.get(name, 0.0) + result.seconds


def run_suite(suite: Suite, store: Store, **options: Any) -> RunReport:
    """Compute the cells of `suite` that `store` does not have, see `run_cells`."""
    return run_cells(suite.cells(), store, **options)


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    *,
    jobs: int = 1,
    retry_errors: bool = False,
    watcher: Any = None,
    device: str | None = None,
) -> RunReport:
    """Compute those of `cells` that `store` does not have; errors are kept as they are unless `retry_errors`.

    The cells may be those of several suites; their attacks must be among them. A `watcher` is told how far the run is,
    see `cli.bench_show.Progress`. A ``KeyboardInterrupt`` or a full disk
    ends the run with everything finished in the store; so does a kill.
    """
    started = time.perf_counter()
    known = store.status(cell.key for cell in cells)
    settled = ("done",) if retry_errors else ("done", "error")
    missing = [cell for cell in dict.fromkeys(cells) if known.get(cell.key) not in settled]
    report = RunReport(len(cells), len(cells) - len(missing))
    attacks, rest = jobs_for(missing)
    _stage(attacks, store, report, jobs, watcher, device)
    ready = []
    for job in rest:
        unpoisoned = [cell for cell in _poisoned(job) if _labels(store, cell) is None]
        for cell in unpoisoned:
            _commit(store, report, job, [CellResult(cell, error="its attack failed: no labels to train on")])
        left = tuple(cell for cell in job.cells if cell not in unpoisoned)
        if left:
            ready.append(Job(job.family, left, job.weight))
    _stage(ready, store, report, jobs, watcher, device)
    report.seconds = time.perf_counter() - started
    return report


def _poisoned(job: Job) -> list[Cell]:
    """Cells whose labels are those of a cell that attacks."""
    return [cell for cell in job.cells if cell.attack is not None and job.family not in OWN_DATA]


def _labels(store: Store, cell: Cell) -> np.ndarray | None:
    assert cell.attack is not None
    return store.trace(attack_cell(cell.data, cell.attack, cell.level, cell.seed), "labels")


def _commit(store: Store, report: RunReport, job: Job, results: list[CellResult]) -> None:
    store.commit(*results)
    report.count(job, results)


def _stage(stage: list[Job], store: Store, report: RunReport, jobs: int, watcher: Any, device: str | None) -> None:
    if not stage:
        return
    if watcher is not None:
        watcher.start(stage)
    try:
        for number, results in _results(stage, store, jobs, device):
            _commit(store, report, stage[number], results)
            if watcher is not None:
                watcher.finished(stage[number], results)
    finally:
        if watcher is not None:
            watcher.stop()


def _results(stage: list[Job], store: Store, jobs: int, device: str | None) -> Iterator[tuple[int, list[CellResult]]]:
    """(number of a job, its results) as they are finished; in this process, or in the workers of joblib.

    Inside ``joblib.parallel_config("dask")`` or another one of the user's, the workers are those.
    """

    def tasks() -> Iterator[tuple[int, Job, dict[str, np.ndarray], str | None]]:
        for number, job in enumerate(stage):
            poisoned = {cell.key: _labels(store, cell) for cell in _poisoned(job)}
            yield number, job, {key: y for key, y in poisoned.items() if y is not None}, device

    if jobs == 1:
        for task in tasks():
            yield _in_worker(*task)
        return
    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch="n_jobs")
    yield from parallel(joblib.delayed(_in_worker)(*task) for task in list(tasks()))


def _in_worker(
    number: int, job: Job, labels: dict[str, np.ndarray], device: str | None
) -> tuple[int, list[CellResult]]:
    return number, run_job(job, labels, device)
