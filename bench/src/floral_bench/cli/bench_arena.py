"""``floral bench arena``: every data set of the arena, then one score card."""

from __future__ import annotations

import importlib.util
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import typer

from floral_learn.base.extras import bench_install_line

from .bench_progress import LiveProgress, LogProgress, duration


def run_arena(suites: list[Any], out: Path, jobs: int, retry_errors: bool, device: str | None) -> int:
    """Run the suites one after the other, write the score card and print it; returns how many cells failed."""
    from rich.console import Console

    from floral_bench.arena_card import arena_frame, score_card
    from floral_bench.arena_outputs import write_arena
    from floral_bench.reporting.environment import environment
    from floral_bench.runner import run_suite
    from floral_bench.store import Store

    from .bench import name_failures

    console = Console() if sys.stdout.isatty() else Console(width=150)
    errors = Console(stderr=True)
    if importlib.util.find_spec("cleanlab") is None:
        typer.echo(f"arena: cleanlab is not run here ({bench_install_line(peers=True)})", err=True)
    note = {"command": shlex.join(["floral", *sys.argv[1:]]), "environment": environment(device)}
    started, computed = time.perf_counter(), 0
    with Store(out / "store.sqlite") as store:
        number, status = store.begin_run("arena", note), "stopped"
        try:
            for suite in suites:
                typer.echo(f"{suite.name}: {suite.title}")
                watcher = LiveProgress(errors) if errors.is_terminal else LogProgress(_log_line)
                report = run_suite(suite, store, jobs=jobs, retry_errors=retry_errors, watcher=watcher, device=device)
                computed += report.computed
            status = "done"
        finally:
            store.end_run(number, status, time.perf_counter() - started)
        frame = arena_frame(suites, store)
        failed = sum(name_failures(store, suite) for suite in suites)
    folder = out / suites[0].name.replace(suites[0].name.removesuffix("-quick"), "arena")
    seconds = time.perf_counter() - started
    if not len(frame):
        typer.echo("no score card: no cell is finished", err=True)
        return failed
    write_arena(frame, folder, {**note, "seconds": seconds, "splits": sorted(map(int, set(frame["split"])))})
    _print_card(console, score_card(frame))
    typer.echo(f"{computed} cells computed in {duration(seconds)}; wrote tables and figures to {folder}")
    return failed


def _print_card(console: Any, card: Any) -> None:
    from rich.box import SIMPLE
    from rich.table import Table

    from floral_bench.arena_card import COLUMNS, TITLES, shown

    card = card.reindex(columns=[*card.columns, *(name for name in COLUMNS if name not in card)])
    table = Table(title="score card, all data sets", title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("method")
    for name in COLUMNS:
        table.add_column(TITLES.get(name, name), justify="right")
    for _, row in card[card["group"] == "all"].iterrows():
        table.add_row(row["method"], *shown(row))
    console.print(table)


def _log_line(text: str) -> None:
    typer.echo(f"{time.strftime('%H:%M:%S')} {text}", err=True)
