"""``floral bench crowd``: run what is missing, then the score card."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Any

import typer

from floral_learn.extras import install_line

from .bench_progress import duration


def run_crowd(cells: list[Any], out: Path, jobs: int, retry_errors: bool, quick: bool) -> int:
    """Run the cells that the store does not have, write and print the card; returns how many failed."""
    from joblib import Parallel, delayed

    from floral_learn.evaluation.crowds.card import card_text, crowd_frame, write_crowd
    from floral_learn.evaluation.crowds.peers import METHODS, available
    from floral_learn.evaluation.crowds.score import run_cell
    from floral_learn.evaluation.reporting.environment import environment
    from floral_learn.evaluation.store import Store

    if missing := [name for name in METHODS if name not in available()]:
        typer.echo(f"crowd: not installed, left out: {', '.join(missing)} ({install_line('bench')})", err=True)
    started, failed = time.perf_counter(), 0
    note = {"command": shlex.join(["floral", *sys.argv[1:]]), "environment": environment()}
    with Store(out / "store.sqlite") as store:
        known = store.status(cell.key for cell in cells)
        left = [c for c in cells if c.key not in known or (retry_errors and known[c.key] == "error")]
        typer.echo(f"crowd: {len(cells)} cells, {len(cells) - len(left)} known")
        number, status = store.begin_run("crowd", note), "stopped"
        said = time.perf_counter()
        try:
            work = Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(run_cell)(c) for c in left)
            for done, result in enumerate(work, 1):
                store.commit(result)
                if result.error is not None:
                    failed += 1
                    typer.echo(f"{result.cell.data.name}: {result.error}", err=True)
                if time.perf_counter() - said > 10 or done == len(left):
                    said = time.perf_counter()
                    rest = (said - started) / done * (len(left) - done)
                    typer.echo(
                        f"{time.strftime('%H:%M:%S')} {done} of {len(left)} cells, {duration(rest)} left", err=True
                    )
            status = "done"
        finally:
            store.end_run(number, status, time.perf_counter() - started)
        frame = crowd_frame(cells, store)
    if not len(frame):
        typer.echo("no score card: no cell has finished", err=True)
        return failed
    folder = out / ("crowd-quick" if quick else "crowd")
    write_crowd(frame, folder)
    typer.echo(card_text(frame))
    words = f", {failed} failed (--retry-errors runs them again)" if failed else ""
    typer.echo(f"{len(left)} cells computed in {duration(time.perf_counter() - started)}{words}; see {folder}")
    return failed
