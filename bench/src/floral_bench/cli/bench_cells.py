"""Suites without settings to choose from (``crowd``, ``questions``): run what is missing, then one card."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import typer

from .bench_progress import duration

_SAY_EVERY = 10.0  # seconds


def run_cells(
    name: str,
    cells: list[Any],
    run_cell: Callable[[Any], Any],
    out: Path,
    jobs: int,
    *,
    retry_errors: bool,
    report: Callable[[Any, dict[str, Any]], str | None],
    together: tuple[Callable[[Any], Hashable], Callable[[list[Any]], list[Any]]] | None = None,
) -> int:
    """Run the cells that the store in `out` does not have; returns how many failed.

    `together` is what cells must have in common to be run in one go, and what runs them then; else each runs alone.
    ``report(store, note)`` then writes what people read and returns the card to print, or None where no cell has
    finished; `note` says how the numbers were made.
    """
    from joblib import Parallel, delayed

    from floral_bench.reporting.environment import environment
    from floral_bench.reporting.origin import note_of, parts_of
    from floral_bench.store import Store

    started, failed = time.perf_counter(), 0
    note: dict[str, Any] = {"command": shlex.join(["floral", *sys.argv[1:]]), "environment": environment()}
    with Store(out / "store.sqlite") as store:
        known = store.status(cell.key for cell in cells)
        left = [c for c in cells if c.key not in known or (retry_errors and known[c.key] == "error")]
        typer.echo(f"{name}: {len(cells)} cells, {len(cells) - len(left)} known")
        number, status = store.begin_run(name, note), "stopped"
        said = time.perf_counter()
        try:
            shared, run_all = together or (lambda cell: cell, lambda part: [run_cell(cell) for cell in part])
            parts: dict[Hashable, list[Any]] = {}
            for cell in left:
                parts.setdefault(shared(cell), []).append(cell)
            work = Parallel(n_jobs=jobs, return_as="generator_unordered")(
                delayed(run_all)(part) for part in parts.values()
            )
            for done, result in enumerate((result for results in work for result in results), 1):
                store.commit(result)
                if result.error is not None:
                    failed += 1
                    typer.echo(f"{result.cell.data.name}: {result.error}", err=True)
                if time.perf_counter() - said > _SAY_EVERY or done == len(left):
                    said = time.perf_counter()
                    rest = duration((said - started) / done * (len(left) - done))
                    typer.echo(f"{time.strftime('%H:%M:%S')} {done} of {len(left)} cells, {rest} left", err=True)
            status = "done"
        finally:
            store.end_run(number, status, time.perf_counter() - started)
        try:
            note = note_of(parts_of(store, name, {name: cells}), trial=True)
        except ValueError:  # nothing has finished, or cells of another store came without a note of their run
            note |= {"started": note["environment"]["date"], "seconds": time.perf_counter() - started}
        card = report(store, note)
    if card is None:
        typer.echo("no score card: no cell has finished", err=True)
        return failed
    typer.echo(card)
    words = f", {failed} failed (--retry-errors runs them again)" if failed else ""
    typer.echo(f"{len(left)} cells computed in {duration(time.perf_counter() - started)}{words}; see {out}")
    return failed
