"""One job in, results of its cells out; runs in this process, in a joblib worker or on a dask worker."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from floral_bench.cell_data import load, poisoned_labels
from floral_bench.data_kinds import kind_of
from floral_bench.families.contraction import run_stability
from floral_bench.families.games import run_games
from floral_bench.families.single_fits import run_fits
from floral_bench.plan import OWN_DATA, Job
from floral_bench.spec import Cell, CellResult
from floral_learn.base.extras import install_line
from floral_learn.game.choose_gram import DENSE_ROWS
from floral_learn.labels.neighbours import neighbours_on

Progress = Callable[[float], None]


def run_job(
    job: Job, labels: dict[str, np.ndarray], progress: Progress | None = None, device: str | None = None
) -> list[CellResult]:
    """Compute the cells of a job; `labels` maps the keys of cells to their poisoned training labels.

    Never raises for a failing cell: the error is in its result. The job's time is shared out by the work of each cell.
    """
    progress = progress or (lambda share: None)
    _reset_peak_memory()
    started = time.perf_counter()
    try:
        # On matrices this small a second BLAS thread costs more than it brings, on a busy machine many times more.
        own = job.family in OWN_DATA or kind_of(job.cells[0].data).texts  # these have a loader of their own
        small = job.family in OWN_DATA or (not own and len(load(job.cells[0].data).y_train) <= DENSE_ROWS)
        # Nor is a device any faster on so few rows, but for games, which are played in batches of many columns.
        on = None if small and job.family != "games" else device
        with threadpool_limits(1 if small else None), neighbours_on(None if small else on):
            results = _FAMILIES[job.family](job, labels, progress, on)
    except Exception as error:
        results = [CellResult.failed(cell, error) for cell in job.cells]
    seconds, memory = time.perf_counter() - started, peak_memory()
    shares = np.array([max(len(result.traces), 1) for result in results], dtype=float)
    for result, share in zip(results, shares / shares.sum(), strict=True):
        result.seconds = result.seconds or float(seconds * share)
        result.peak_memory = memory
        if result.error is None and (lost := [metric for _, _, metric, value in result.rows if value != value]):
            result.error, result.rows, result.traces = f"no number for {lost[0]}: the method did not work here", [], {}
    return results


def _labels_of(cells: tuple[Cell, ...], labels: dict[str, np.ndarray]) -> list[np.ndarray]:
    return [labels[cell.key] if cell.attack is not None else load(cell.data).y_train_clean for cell in cells]


def _attacks(job: Job, labels: dict[str, np.ndarray], progress: Progress, device: str | None) -> list[CellResult]:
    first = job.cells[0]
    assert first.attack is not None
    levels = [cell.level for cell in job.cells]
    if kind_of(first.data).texts:
        from floral_bench.families.text_heads import clean_labels, gradient_labels

        found = gradient_labels(first.data, first.attack, levels, first.seed, device, progress)
        clean = clean_labels(first.data)
    elif dict(first.attack.params).get("surrogate") == "nn":
        from floral_bench.families.network_heads import gradient_labels as against_network

        clean = load(first.data).y_train_clean
        found = against_network(first.data, first.attack, levels, first.seed, device)
    else:
        clean = load(first.data).y_train_clean
        found = poisoned_labels(
            first.data, first.attack, levels, first.seed, lambda done, total: progress(done / max(total, 1)), device
        )
    results = []
    for cell, y in zip(job.cells, found, strict=True):
        result = CellResult(cell)
        result.add("flips", int((y != clean).sum()))
        result.add("flip_share", float((y != clean).mean()))
        result.traces["", "labels"] = y
        results.append(result)
    return results


def _games(job: Job, labels: dict[str, np.ndarray], progress: Progress, device: str | None) -> list[CellResult]:
    return run_games(list(job.cells), _labels_of(job.cells, labels), load(job.cells[0].data), progress, device)


def _fits(job: Job, labels: dict[str, np.ndarray], progress: Progress, device: str | None) -> list[CellResult]:
    return run_fits(list(job.cells), _labels_of(job.cells, labels), load(job.cells[0].data), progress, device)


def _networks(job: Job, labels: dict[str, np.ndarray], progress: Progress, device: str | None) -> list[CellResult]:
    try:
        from floral_bench.families.networks import run_networks
    except ImportError as error:
        raise ImportError(f"nn and nn-pgd need torch: {install_line('torch')}") from error
    return run_networks(list(job.cells), _labels_of(job.cells, labels), progress, device)


def _heads(job: Job, labels: dict[str, np.ndarray], progress: Progress, device: str | None) -> list[CellResult]:
    from floral_bench.families.network_heads import run_heads

    return run_heads(list(job.cells), _labels_of(job.cells, labels), load(job.cells[0].data), progress, device)


def _stability(job: Job, labels: dict[str, np.ndarray], progress: Progress, device: str | None) -> list[CellResult]:
    return run_stability(list(job.cells), _labels_of(job.cells, labels), load(job.cells[0].data), progress)


def _text(job: Job, labels: dict[str, np.ndarray], progress: Progress, device: str | None) -> list[CellResult]:
    from floral_bench.families.text_heads import clean_labels, run_text

    first = job.cells[0]
    y = labels[first.key] if first.attack is not None else clean_labels(first.data)
    return run_text(list(job.cells), y, progress, device)


def _questions(job: Job, labels: dict[str, np.ndarray], progress: Progress, device: str | None) -> list[CellResult]:
    from floral_bench.questions.ask_and_score import run_cells

    return run_cells(job.cells)


def _votes(job: Job, labels: dict[str, np.ndarray], progress: Progress, device: str | None) -> list[CellResult]:
    from floral_bench.crowds.score import run_cell

    return [run_cell(cell) for cell in job.cells]


# A new kind of cell is one function here and one line in `plan.family_of`.
_FAMILIES: dict[str, Any] = {
    "attack": _attacks,
    "games": _games,
    "fits": _fits,
    "networks": _networks,
    "heads": _heads,
    "stability": _stability,
    "text": _text,
    "questions": _questions,
    "crowd": _votes,
}


def peak_memory() -> float:
    """The process's largest resident size in bytes, since `_reset_peak_memory` where Linux allows that."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return float(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def _reset_peak_memory() -> None:
    with contextlib.suppress(OSError):  # elsewhere the peak is that of the process so far
        Path("/proc/self/clear_refs").write_text("5")
