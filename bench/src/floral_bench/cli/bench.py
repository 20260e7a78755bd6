"""``floral bench``: run one of the paper's experiments, or the same comparison on your own file."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import typer

from floral_learn.cli.failures import FAILED, fail, one_line

RUNS = Path("runs")


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    stopped = "stopped; finished cells are kept, and the same command continues"
    app.command(name="bench")(one_line("floral bench", stopped)(bench))


def bench(
    names: list[str] = typer.Argument(None, metavar="SUITE", help="suites to run; --list shows them"),
    list_suites: bool = typer.Option(False, "--list", help="list the suites with the time each took last"),
    data: Path | None = typer.Option(None, help="compare on your own .csv, .tsv or .parquet file"),
    label: str | None = typer.Option(None, "--label", "-l", help="name of the label column of --data"),
    attack: list[str] = typer.Option(
        ["farthest", "random"], "--attack", "-a", help="attack on --data (repeatable, or separated by commas)"
    ),
    drop: list[str] = typer.Option([], help="column of --data to leave out (repeatable)"),
    text: list[str] = typer.Option([], "--text", "-t", help="column of prose in --data (repeatable)"),
    row_id: str | None = typer.Option(None, "--id", help="column of --data that names the rows; no feature"),
    sep: str | None = typer.Option(None, help="separator of --data (default: found in the header)"),
    encoding: str | None = typer.Option(None, help="encoding of --data (default: UTF-8, or its byte order mark)"),
    skip_blank: bool = typer.Option(False, "--skip-blank", help="leave out rows of --data without a label"),
    quick: bool = typer.Option(False, "--quick", help="a small version that ends within a minute"),
    thorough: bool = typer.Option(False, "--thorough", help="on --data: five splits, more levels, every method"),
    reps: int | None = typer.Option(None, help="replications (default: 5; 3 on --data without --thorough)"),
    jobs: int = typer.Option(1, "--jobs", "-j", help="processes; -1 for all cores"),
    methods: list[str] = typer.Option(
        [], "--method", "--methods", "-m", help="only this method (repeatable, or separated by commas)"
    ),
    levels: list[str] = typer.Option(
        [], "--level", "--levels", help="only this percentage of poisoned labels (repeatable, or separated by commas)"
    ),
    seed: int | None = typer.Option(None, help="seed of the first replication"),
    reference: bool = typer.Option(False, "--authors-labels", help="the authors' published poisoned labels (Moon)"),
    out: Path = typer.Option(RUNS, "--out", "-o", help="folder of results; finished cells in it are not run again"),
    retry_errors: bool = typer.Option(False, "--retry-errors", help="run failed cells again"),
    device: str | None = typer.Option(None, help="torch device for games and networks, such as cuda"),
) -> None:
    """Compare defenses under attack: experiments of the paper by name, or classifiers on your own table.

    A run that was stopped continues where it was: the same command does only what is missing.
    """
    if list_suites:
        show_list(out)
        return
    if jobs == 0 or jobs < -1:
        raise ValueError(f"--jobs {jobs} must be a number of processes, or -1 for all cores")
    if thorough and data is None:
        raise ValueError("--thorough is for --data; suites of the paper are thorough unless --quick is given")
    if bool(names) == (data is not None):
        raise ValueError("give the name of a suite (see --list), or --data FILE --label COLUMN")
    changes: dict[str, Any] = {"quick": quick, "reps": reps, "seed": seed, "reference": reference}
    changes |= {"methods": listed(methods), "levels": percentages(levels)}
    if data is not None:
        reading: dict[str, Any] = {
            "drop": (*drop, *([] if row_id is None else [row_id])),
            "text": tuple(text),
            "sep": sep,
        }
        reading |= {"encoding": encoding, "skip_blank_labels": skip_blank}
        work = [suite_of_file(data, label, listed(attack), reading, changes, thorough)]
    else:
        work = [by_name(name, changes) for name in dict.fromkeys(names)]  # all names are checked before any runs
    failed = 0
    for found in work:
        if hasattr(found, "card"):
            failed += run_experiment(found, out, jobs, retry_errors, device)
        else:
            failed += run(found, out, jobs, retry_errors, device, first=data is not None)
    if failed:
        fail("floral bench", f"{failed} cells failed, named above; --retry-errors runs them again", FAILED)


def suite_of_file(
    path: Path, label: str | None, attacks: list[str], reading: dict[str, Any], changes: dict[str, Any], thorough: bool
) -> Any:
    """The comparison on a user's own table."""
    from floral_bench.adapt_suite import adapt

    from .bench_data import suite_for_file

    if label is None:
        raise ValueError("--data needs --label, the name of the label column")
    suite = suite_for_file(path, label, attacks, reading, thorough=thorough, everything=bool(changes["methods"]))
    return adapt(suite, **changes)


def by_name(name: str, changes: dict[str, Any]) -> Any:
    """A suite or an experiment; a ValueError names what is wrong."""
    from floral_bench.adapt_suite import adapt
    from floral_bench.arena import ARENA_SUITES
    from floral_bench.experiments import TITLES, experiment
    from floral_bench.suites import SUITES

    known = {**SUITES, **ARENA_SUITES}
    if name in known:
        return adapt(known[name], **changes)
    if name not in TITLES:
        raise ValueError(f"unknown suite {name!r}; known: {', '.join([*SUITES, *TITLES, *ARENA_SUITES])}")
    if changes["reference"]:
        raise ValueError(f"--authors-labels exist for the paper's Moon suites, not for {name}")
    return experiment(name, {option: value for option, value in changes.items() if option != "reference"})


def listed(names: Sequence[str]) -> list[str]:
    """The names of an option that may be repeated, each of which may hold several, separated by commas."""
    return [text.strip() for name in names for text in name.split(",") if text.strip()]


def percentages(levels: Sequence[str]) -> list[float]:
    """The numbers of ``--level``, with or without a percent sign."""
    try:
        return [float(text.removesuffix("%")) for text in listed(levels)]
    except ValueError:
        given = ",".join(levels)
        raise ValueError(f"--levels {given!r} must be percentages, such as --levels 0,10,25") from None


def _consoles() -> tuple[Any, Any]:
    """Where tables go, and who is told how far a run is."""
    from rich.console import Console

    from .bench_progress import Progress
    from .bench_show import WIDTH

    # A log or a pipe has no width of its own.
    console = Console(soft_wrap=False) if sys.stdout.isatty() else Console(width=WIDTH)
    return console, Progress(Console(stderr=True))


@contextmanager
def noted(store: Any, name: str, note: dict[str, Any]) -> Iterator[None]:
    """A run in the store's list of runs, whether it ends or is stopped."""
    from floral_bench.store import StoreError

    number, started, status = store.begin_run(name, note), time.perf_counter(), "stopped"
    try:
        yield
        status = "done"
    finally:
        try:
            store.end_run(number, status, time.perf_counter() - started)
        except StoreError:
            if status == "done":  # a store that cannot be written any more has said so already
                raise


def run_experiment(found: Any, out: Path, jobs: int, retry_errors: bool, device: str | None) -> int:
    """Run the cells that the store does not have, write the card and print it; returns how many cells failed."""
    from floral_bench.reporting.environment import environment
    from floral_bench.reporting.making import note_of, parts_of
    from floral_bench.runner import run_cells
    from floral_bench.store import Store

    from .bench_progress import duration

    note: dict[str, Any] = {"command": shlex.join(["floral", *sys.argv[1:]]), "environment": environment(device)}
    for text in found.notes:
        typer.echo(f"{found.name}: {text}", err=True)
    with Store(out / "store.sqlite") as store:
        known = store.status(cell.key for cell in found.cells)
        typer.echo(f"{found.name}: {len(found.cells)} cells, {len(known)} known")
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
    from floral_bench.adapt_suite import adapt, without_missing_extras
    from floral_bench.reporting.environment import environment
    from floral_bench.reporting.results import Results
    from floral_bench.reporting.verdict import verdict
    from floral_bench.reporting.write import write_outputs
    from floral_bench.runner import run_suite
    from floral_bench.store import Store

    from .bench_progress import duration
    from .bench_show import print_costs, print_table

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


def name_failures(store: Any, of: Sequence[Any]) -> int:
    """Say on stderr which cells have no result and why, now or in an earlier run; returns how many."""
    cells = {cell.key: cell for cell in of}
    by_reason: dict[str, list[str]] = {}
    for key, error in store.errors(cells):
        cell = cells[key]
        place = f"{cell.method.title} at {cell.level:g} %" + (f" of {cell.attack.name}" if cell.attack else "")
        by_reason.setdefault(" ".join(str(error).split()), []).append(place)
    for reason, places in by_reason.items():
        names = list(dict.fromkeys(places))
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        typer.echo(f"failed ({len(places)} cells: {shown}): {reason}", err=True)
    return sum(map(len, by_reason.values()))


def show_list(out: Path) -> None:
    """The suites, their sizes and the time each took last under `out`."""
    from rich.console import Console
    from rich.table import Table

    from floral_bench.experiments import TITLES, experiment
    from floral_bench.store import Store, StoreError
    from floral_bench.suites import SUITES

    from .bench_progress import duration

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
    Console().print(table)
