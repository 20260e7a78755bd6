"""``floral bench``: run one of the paper's experiments, or the same comparison on your own file."""

from __future__ import annotations

import shlex
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from floral_learn.cli.failures import FAILED, fail, one_line

from .bench_choice import Cells, listed, percentages, suite_by_name, suite_of_file

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
    skip_blank: bool = typer.Option(False, "--skip-blank-labels", help="leave out rows of --data without a label"),
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
    labels: str = typer.Option("own", hidden=True),  # the earlier spelling: --labels reference
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
    if labels not in ("own", "reference"):
        raise ValueError(f"--labels {labels!r} must be 'own' or 'reference'")
    if thorough and data is None:
        raise ValueError("--thorough is for --data; suites of the paper are thorough unless --quick is given")
    if bool(names) == (data is not None):
        raise ValueError("give the name of a suite (see --list), or --data FILE --label COLUMN")
    changes: dict[str, Any] = {
        "quick": quick,
        "reps": reps,
        "methods": listed(methods),
        "levels": percentages(levels),
        "seed": seed,
        "reference": reference or labels == "reference",
    }
    if data is not None:
        reading = {
            "drop": tuple(drop) + ((row_id,) if row_id is not None else ()),
            "text": tuple(text),
            "sep": sep,
            "encoding": encoding,
            "skip_blank_labels": skip_blank,
        }
        work = [suite_of_file(data, label, listed(attack), reading, changes, thorough)]
    else:
        work = [suite_by_name(name, changes) for name in dict.fromkeys(names)]  # all names are checked before any runs
    failed = 0
    for found in work:
        if isinstance(found, Cells):
            failed += found.run(found.cells, out, jobs, retry_errors, quick)
        elif isinstance(found, list):
            from .bench_arena import run_arena

            failed += run_arena(found, out, jobs, retry_errors, device)
        else:
            failed += run(found, out, jobs, retry_errors, device, first=data is not None)
    if failed:
        fail("floral bench", f"{failed} cells failed, named above; --retry-errors runs them again", FAILED)


def run(suite: Any, out: Path, jobs: int, retry_errors: bool, device: str | None, first: bool = False) -> int:
    """Run, write tables and figures, print the table and where the time went; returns how many cells failed.

    With `first` a table of the first replication is printed as soon as it is there.
    """
    from rich.console import Console

    from floral_bench.adapt_suite import adapt, without_missing_extras
    from floral_bench.reporting.environment import environment
    from floral_bench.reporting.results import Results
    from floral_bench.reporting.verdict import verdict
    from floral_bench.reporting.write import write_outputs
    from floral_bench.runner import run_suite
    from floral_bench.store import Store

    from .bench_progress import LiveProgress, LogProgress, duration
    from .bench_show import WIDTH, print_costs, print_table

    # A log or a pipe has no width of its own.
    console = Console(soft_wrap=False) if sys.stdout.isatty() else Console(width=WIDTH)
    errors = Console(stderr=True)
    watcher = LiveProgress(errors) if errors.is_terminal else LogProgress(_log_line)
    command = shlex.join(["floral", *sys.argv[1:]])

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False)

    say(f"{suite.name}: {suite.title}")
    for text in suite.details:
        say(text)
    suite, skipped = without_missing_extras(suite)
    for text in skipped:
        say(text)
    if not suite.attacks or (not suite.methods and skipped):
        return 0
    with Store(out / "store.sqlite") as store:
        note = {"command": command, "environment": environment(device), "seeds": list(suite.seeds)}
        number, started = store.begin_run(suite.name, note), time.perf_counter()
        settings: dict[str, Any] = {"jobs": jobs, "watcher": watcher, "device": device}
        status, before = "stopped", 0
        try:
            if first and len(suite.seeds) > 1:
                one = adapt(suite, reps=1)
                if before := run_suite(one, store, retry_errors=retry_errors, **settings).computed:
                    say(f"\nThe first of {len(suite.seeds)} splits, after {duration(time.perf_counter() - started)}:")
                    print_table(console, Results(one, store), short=True)
                retry_errors = False  # what failed again a moment ago is not run a third time
            report = run_suite(suite, store, retry_errors=retry_errors, **settings)
            report.seconds = time.perf_counter() - started
            report.computed, report.reused = report.computed + before, report.reused - before
            status = "done"
        finally:
            # A store that cannot be written any more has said so already.
            _note_end(store, number, status, time.perf_counter() - started)
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
        return name_failures(store, suite)


def name_failures(store: Any, suite: Any) -> int:
    """Say on stderr which cells have no result and why, now or in an earlier run; returns how many."""
    cells = {cell.key: cell for cell in suite.cells()}
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


def _note_end(store: Any, number: int, status: str, seconds: float) -> None:
    from floral_bench.store import StoreError

    try:
        store.end_run(number, status, seconds)
    except StoreError:
        if status == "done":
            raise


def _log_line(text: str) -> None:
    typer.echo(f"{time.strftime('%H:%M:%S')} {text}", err=True)


def show_list(out: Path) -> None:
    """The suites, their sizes and the time each took last under `out`."""
    from rich.console import Console
    from rich.table import Table

    from floral_bench.arena import ARENA_SUITES
    from floral_bench.crowds.cells import crowd_cells
    from floral_bench.questions.cells import question_cells
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
    for name, suite in SUITES.items():
        took = duration(last[name]) if name in last else "-"
        table.add_row(name, suite.title, str(len(suite.cells())), took)
    cells = sum(len(suite.cells()) for suite in ARENA_SUITES.values())
    title = "24 data sets, ten attacks: what a user would run, without clean labels (each also as arena-NAME)"
    table.add_row("arena", title, str(cells), duration(last["arena"]) if "arena" in last else "-")
    title = "what a person's answers bring, by who chooses the rows and how answers are read"
    took = duration(last["questions"]) if "questions" in last else "-"
    table.add_row("questions", title, str(len(question_cells())), took)
    title = "labels from votes of people of whom some lie: majority, Dawid-Skene, CROWDLAB, ours, ..."
    took = duration(last["crowd"]) if "crowd" in last else "-"
    table.add_row("crowd", title, str(len(crowd_cells())), took)
    Console().print(table)
