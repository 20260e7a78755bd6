"""One job in, results of its cells out; runs in this process, in a joblib worker or on a dask worker."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from floral_bench.cell_data import load, poisoned_labels
from floral_bench.data_kinds import kind_of
from floral_bench.families.games import run_games
from floral_bench.families.single_fits import run_fits
from floral_bench.plan import OWN_DATA, Job
from floral_bench.spec import Cell, CellResult
from floral_learn.base.extras import install_line
from floral_learn.game.gram import DENSE_ROWS


def run_job(job: Job, labels: dict[str, np.ndarray], device: str | None = None) -> list[CellResult]:
    """Compute the cells of a job; `labels` maps the keys of cells to their poisoned training labels.

    Never raises for a failing cell: the error is in its result. The job's time is shared out by the work of each cell.
    """
    _reset_peak_memory()
    started = time.perf_counter()
    try:
        # On matrices this small a second BLAS thread costs more than it brings, on a busy machine many times more.
        own = job.family in OWN_DATA or kind_of(job.cells[0].data).texts  # these have a loader of their own
        small = job.family in OWN_DATA or (not own and len(load(job.cells[0].data).y_train) <= DENSE_ROWS)
        # Nor is a device any faster on so few rows, but for games, which are played in batches of many columns.
        on = None if small and job.family != "games" else device
        with threadpool_limits(1 if small else None):
            results = _compute(job.family, list(job.cells), labels, on)
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


def _compute(family: str, cells: list[Cell], labels: dict[str, np.ndarray], device: str | None) -> list[CellResult]:
    """The results of cells of one kind. A new kind is some lines here and one in `plan.family_of`."""
    first = cells[0]
    if family == "questions":
        from floral_bench.questions.ask_and_score import run_cell as ask_and_score

        return [ask_and_score(cell) for cell in cells]
    if family == "crowd":
        from floral_bench.crowds.score import run_cell

        return [run_cell(cell) for cell in cells]
    if family == "real":
        from floral_bench.real.cells import run_cells as run_real

        return run_real(cells)
    if family == "attack":
        return _attacks(cells, device)
    if family == "text":
        from floral_bench.families.text_data import draw_of
        from floral_bench.families.text_heads import run_text

        return run_text(cells, draw_of(first.data).y_train if first.attack is None else labels[first.key], device)
    given = [load(cell.data).y_train_clean if cell.attack is None else labels[cell.key] for cell in cells]
    if family == "networks":
        try:
            from floral_bench.families.networks import run_networks
        except ImportError as error:
            raise ImportError(f"nn and nn-pgd need torch: {install_line('torch')}") from error
        return run_networks(cells, given, device)
    if family == "heads":
        from floral_bench.families.network_heads import run_heads

        return run_heads(cells, given, load(first.data), device)
    return (run_games if family == "games" else run_fits)(cells, given, load(first.data), device)


def _attacks(cells: list[Cell], device: str | None) -> list[CellResult]:
    """The poisoned labels of cells that share their data, attack and seed."""
    first, levels, results = cells[0], [cell.level for cell in cells], []
    assert first.attack is not None
    given = (first.data, first.attack, levels, first.seed, device)
    if kind_of(first.data).texts:
        from floral_bench.families.text_data import draw_of
        from floral_bench.families.text_heads import gradient_labels

        found, clean = gradient_labels(*given), draw_of(first.data).y_train
    elif dict(first.attack.params).get("surrogate") == "nn":
        from floral_bench.families.network_heads import gradient_labels as against_network

        found, clean = against_network(*given), load(first.data).y_train_clean
    else:
        found, clean = poisoned_labels(*given), load(first.data).y_train_clean
    for cell, y in zip(cells, found, strict=True):
        result = CellResult(cell)
        result.add("flips", int((y != clean).sum()))
        result.add("flip_share", float((y != clean).mean()))
        result.traces["", "labels"] = y
        results.append(result)
    return results


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
