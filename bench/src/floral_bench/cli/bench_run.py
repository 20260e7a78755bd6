"""What ``floral bench`` does once its words are understood: runs, tables, cards and the list of suites."""

from __future__ import annotations

import shlex
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from floral_bench.adapt_suite import adapt, without_missing_extras
from floral_bench.experiments import TITLES, experiment
from floral_bench.reporting.environment import environment
from floral_bench.reporting.making import note_of, parts_of
from floral_bench.reporting.results import Results
from floral_bench.reporting.verdict import verdict
from floral_bench.reporting.write import write_outputs
from floral_bench.runner import run_cells, run_suite
from floral_bench.store import Store, StoreError
from floral_bench.suites import SUITES

from .bench import name_failures, noted
from .bench_data import suite_for_file
from .bench_show import WIDTH, Progress, duration, print_costs, print_table


def suite_of_file(
    path: Path, label: str | None, attacks: list[str], reading: dict[str, Any], changes: dict[str, Any], thorough: bool
) -> Any:
    """The comparison on a user's own table."""
    if label is None:
        raise ValueError("--data needs --label, the name of the label column")
    suite = suite_for_file(path, label, attacks, reading, thorough=thorough, everything=bool(changes["methods"]))
    return adapt(suite, **changes)


def by_name(name: str, changes: dict[str, Any]) -> Any:
    """A suite or an experiment; a ValueError names what is wrong."""
    if name in SUITES:
        return adapt(SUITES[name], **changes)
    if name not in TITLES:
        raise ValueError(f"unknown suite {name!r}; known: {', '.join([*SUITES, *TITLES])}")
    if changes["reference"]:
        raise ValueError(f"--authors-labels exist for the paper's Moon suites, not for {name}")
    return experiment(name, {option: value for option, value in changes.items() if option != "reference"})


def _consoles() -> tuple[Any, Any]:
    """Where tables go, and who is told how far a run is."""
    # A log or a pipe has no width of its own.
    console = Console(soft_wrap=False) if sys.stdout.isatty() else Console(width=WIDTH)
    return console, Progress(Console(stderr=True))


def run_experiment(found: Any, out: Path, jobs: int, retry_errors: bool, device: str | None) -> int:
    """Run the cells that the store does not have, write the card and print it; returns how many cells failed."""
    note: dict[str, Any] = {"command": shlex.join(["floral", *sys.argv[1:]]), "environment": environment(device)}
    for text in found.notes:
        typer.echo(f"{found.name}: {text}", err=True)
    with Store(out / "store.sqlite") as store:
        known = store.status(cell.key for cell in found.cells)
        typer.echo(f"{found.name}: {len(found.cells)} cells, {len(known)} known")
        found.ready(found.cells)
        options: dict[str, Any] = {"jobs": jobs, "retry_errors": retry_errors, "device": device}
        with noted(store, found.name, note):
            report = run_cells(found.cells, store, watcher=_consoles()[1], **options)
        failed, frame = name_failures(store, found.cells), found.read(found.cells, store)
        if not len(frame):
            typer.echo("no score card: no cell is finished", err=True)
            return failed
        try:
            note = note_of(parts_of(store, found.name, {found.name: found.cells}), trial=True)
        except ValueError:  # cells of another store came without a note of their run
            note |= {"started": note["environment"]["date"], "seconds": report.seconds}
    found.write(frame, out / found.name, note)
    typer.echo(found.card(frame))
    typer.echo(f"{report.computed} cells computed in {duration(report.seconds)}; see {out / found.name}")
    return failed


def run(suite: Any, out: Path, jobs: int, retry_errors: bool, device: str | None, first: bool = False) -> int:
    """Run, write tables and figures, print the table and where the time went; returns how many cells failed.

    With `first` a table of the first replication is printed as soon as it is there.
    """
    console, watcher = _consoles()
    command = shlex.join(["floral", *sys.argv[1:]])

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False)

    suite, skipped = without_missing_extras(suite)
    for text in (f"{suite.name}: {suite.title}", *suite.details, *skipped):
        say(text)
    if not suite.attacks or (not suite.methods and skipped):
        return 0
    with Store(out / "store.sqlite") as store:
        note = {"command": command, "environment": environment(device), "seeds": list(suite.seeds)}
        settings: dict[str, Any] = {"jobs": jobs, "watcher": watcher, "device": device}
        started, before = time.perf_counter(), 0
        with noted(store, suite.name, note):
            if first and len(suite.seeds) > 1:
                one = adapt(suite, reps=1)
                if before := run_suite(one, store, retry_errors=retry_errors, **settings).computed:
                    say(f"\nThe first of {len(suite.seeds)} splits, after {duration(time.perf_counter() - started)}:")
                    print_table(console, Results(one, store), short=True)
                retry_errors = False  # what failed again a moment ago is not run a third time
            report = run_suite(suite, store, retry_errors=retry_errors, **settings)
            report.seconds = time.perf_counter() - started
            report.computed, report.reused = report.computed + before, report.reused - before
        computed = time.perf_counter()
        results = Results(suite, store)
        folder = out / suite.name
        write_outputs(results, folder, {**note, "seconds": report.seconds, "split": report.split})
        report.split["tables and figures"] = time.perf_counter() - computed
        print_table(console, results)
        for text in suite.notes:
            say(text)
        if (found := verdict(results)) is not None:
            say(str(found))
        print_costs(console, report)
        known = f"{report.reused} of {report.cells} cells were known" if report.reused else f"{report.cells} cells"
        say(f"{known}, {report.computed} computed in {duration(report.seconds)}")
        typer.echo(f"wrote tables and figures to {folder}")
        typer.echo(f"a page of them: floral report {folder}")
        return name_failures(store, suite.cells())


def show_list(out: Path) -> None:
    """The suites, their sizes and the time each took last under `out`."""
    last: dict[str, float] = {}
    if (out / "store.sqlite").is_file():
        # A store of another version of the results has no times to show; the list does not need it.
        with suppress(StoreError), Store(out / "store.sqlite", read_only=True) as store:
            for note in store.runs():
                if note["status"] == "done" and note["seconds"] is not None:
                    # A run that found everything known says nothing about the time that the suite takes.
                    last[note["suite"]] = max(note["seconds"], last.get(note["suite"], 0.0))
    table = Table(box=None, pad_edge=False)
    for column in ("suite", "what", "cells", "took"):
        table.add_column(column, overflow="fold")
    sizes = {name: (suite.title, suite.cells()) for name, suite in SUITES.items()}
    sizes |= {name: (title, experiment(name, {}).cells) for name, title in TITLES.items()}
    for name, (title, cells) in sizes.items():
        table.add_row(name, title, str(len(cells)), duration(last[name]) if name in last else "-")
    table.add_row("replay", "the paper's three algorithms in plain numpy beside PaperFloralClassifier", "8", "-")
    Console().print(table)
