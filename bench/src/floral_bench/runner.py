"""Run what is missing of a suite: jobs go out to workers, every finished cell is committed at once."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from floral_bench.families.run_job import run_job
from floral_bench.plan import OWN_DATA, Job, jobs_for
from floral_bench.spec import Cell, CellResult, Suite, attack_cell
from floral_bench.store import Store


class Watcher(Protocol):
    """Who wants to know how far the run is (a terminal, a log)."""

    def start(self, jobs: list[Job], shares: Any) -> None:
        """The jobs of a stage; `shares[i]` is how much of job i is done, from 0 to 1, and changes while it runs."""

    def finished(self, number: int, job: Job, results: list[CellResult]) -> None:
        """Job `number` ended and is stored."""

    def stop(self) -> None:
        """The stage is over."""


class Silent:
    """Says nothing."""

    def start(self, jobs: list[Job], shares: Any) -> None:
        """Nothing."""

    def finished(self, number: int, job: Job, results: list[CellResult]) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Nothing."""


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


def run_suite(
    suite: Suite,
    store: Store,
    *,
    jobs: int = 1,
    retry_errors: bool = False,
    watcher: Watcher | None = None,
    device: str | None = None,
) -> RunReport:
    """Compute the cells of `suite` that `store` does not have, see `run_cells`."""
    return run_cells(suite.cells(), store, jobs=jobs, retry_errors=retry_errors, watcher=watcher, device=device)


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    *,
    jobs: int = 1,
    retry_errors: bool = False,
    watcher: Watcher | None = None,
    device: str | None = None,
) -> RunReport:
    """Compute those of `cells` that `store` does not have; errors are kept as they are unless `retry_errors`.

    The cells may be those of several suites; their attacks must be among them. A ``KeyboardInterrupt`` or a full disk
    ends the run with everything finished in the store; so does a kill.
    """
    started = time.perf_counter()
    watcher = watcher or Silent()
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
    for result in results:
        store.commit(result)
    report.count(job, results)


def _stage(stage: list[Job], store: Store, report: RunReport, jobs: int, watcher: Watcher, device: str | None) -> None:
    if not stage:
        return
    # Workers write how far they are into a shared array on disk; nobody waits for it.
    path = _progress_file(store.path)
    try:
        np.zeros(len(stage)).tofile(path)
        shares = np.memmap(path, dtype=float, mode="r", shape=(len(stage),))
        watcher.start(stage, shares)
        try:
            for number, results in _results(stage, store, jobs, str(path), device):
                _commit(store, report, stage[number], results)
                watcher.finished(number, stage[number], results)
        finally:
            watcher.stop()
    finally:
        _remove(path)


def _remove(path: Path) -> None:
    with suppress(PermissionError):  # Windows keeps a file as long as someone has it mapped; the next run removes it
        path.unlink(missing_ok=True)


def _progress_file(store: Path) -> Path:
    """A file of this process beside the store; what killed processes left there is removed."""
    for old in store.parent.glob(f".{store.name}.*.progress"):
        owner = old.name.split(".")[-2]
        if not owner.isdigit() or not _is_alive(int(owner)):
            _remove(old)
    return (store.parent / f".{store.name}.{os.getpid()}.progress").resolve()


def _is_alive(process: int) -> bool:
    if os.name == "nt":  # signal 0 would end the process there, and files of the living cannot be removed
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _results(
    stage: list[Job], store: Store, jobs: int, path: str, device: str | None
) -> Iterator[tuple[int, list[CellResult]]]:
    def tasks() -> Iterator[tuple[int, Job, dict[str, np.ndarray], str, str | None]]:
        for number, job in enumerate(stage):
            poisoned = {cell.key: _labels(store, cell) for cell in _poisoned(job)}
            labels = {key: y for key, y in poisoned.items() if y is not None}
            yield number, job, labels, path, device

    if jobs == 1 and not _dask_client():
        for task in tasks():
            yield _in_worker(*task)
        return
    import joblib

    backend: dict[str, Any] = {"backend": "loky", "n_jobs": jobs, "inner_max_num_threads": 1}
    if _dask_client():  # one job would be run here, not there
        backend = {"backend": "dask", "n_jobs": jobs if jobs != 1 else -1}
    with joblib.parallel_config(**backend):
        parallel = joblib.Parallel(return_as="generator_unordered", pre_dispatch="n_jobs")
        yield from parallel(joblib.delayed(_in_worker)(*task) for task in list(tasks()))


def _in_worker(
    number: int, job: Job, labels: dict[str, np.ndarray], path: str, device: str | None
) -> tuple[int, list[CellResult]]:
    def progress(share: float) -> None:
        try:
            with open(path, "r+b") as stream:
                stream.seek(8 * number)
                stream.write(np.float64(min(max(share, 1e-6), 1.0)).tobytes())
        except OSError:
            pass  # a worker on another machine has no such file

    progress(0.0)
    return number, run_job(job, labels, progress, device)


def _dask_client() -> bool:
    """Whether the user has an active dask client in this process."""
    if "distributed" not in sys.modules:
        return False
    from distributed import get_client

    try:
        get_client()
    except ValueError:
        return False
    return True
