"""``floral bench``: run one of the paper's experiments, or the same comparison on your own file."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from floral_learn.app.options import with_table_options
from floral_learn.app.terminal import FAILED, fail, one_line

RUNS = Path("runs")


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    stopped = "stopped; finished cells are kept, and the same command continues"
    app.command(name="bench")(one_line("floral bench", stopped)(bench))


@with_table_options("text", "row_id", "drop", "skip_blank", "sep", "encoding")
def bench(
    names: list[str] = typer.Argument(None, metavar="SUITE", help="suites to run; --list shows them"),
    list_suites: bool = typer.Option(False, "--list", help="list the suites with the time each took last"),
    data: Path | None = typer.Option(None, help="compare on your own .csv, .tsv or .parquet file"),
    label: str | None = typer.Option(None, "--label", "-l", help="name of the label column of --data"),
    attack: list[str] = typer.Option(
        ["farthest", "random"], "--attack", "-a", help="attack on --data (repeatable, or separated by commas)"
    ),
    quick: bool = typer.Option(False, "--quick", "--trial", help="a small version that ends within a minute"),
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
    columns: Any = None,
) -> None:
    """Compare defenses under attack: experiments of the paper by name, or classifiers on your own table.

    A run that was stopped continues where it was: the same command does only what is missing.
    """
    from .bench_run import by_name, run, run_experiment, show_list, suite_of_file

    if list_suites:
        show_list(out)
        return
    if names == ["replay"]:
        from floral_bench.replay import page

        typer.echo(page())
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
        leave_out = columns.drop if columns.row_id is None else (*columns.drop, columns.row_id)
        reading: dict[str, Any] = {"drop": leave_out, "text": columns.text, "sep": columns.sep}
        reading |= {"encoding": columns.encoding, "skip_blank_labels": columns.skip_blank}
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
