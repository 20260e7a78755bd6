"""``floral report``: one HTML page about a run, with everything in it."""

from __future__ import annotations

from pathlib import Path

import typer

from .failures import one_line


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(name="report")(one_line("floral report")(report))


def report(
    folder: Path = typer.Argument(..., metavar="RUN", help="folder that floral bench named, such as runs/moon"),
    out: Path | None = typer.Option(None, "--out", "-o", help="page to write (default: RUN/report.html)"),
) -> None:
    """Write one page about a run of `floral bench`: pictures, tables, settings, versions, how to repeat it."""
    target = write_page(folder, out or folder / "report.html")
    typer.echo(f"wrote {target} ({target.stat().st_size / 1e6:.1f} MB)")


def write_page(folder: Path, out: Path) -> Path:
    """Read a run's store and note, and write its page."""
    from floral_learn.atomic_files import write_atomically
    from floral_learn.evaluation.reporting.page import render
    from floral_learn.evaluation.reporting.results import Results
    from floral_learn.evaluation.reporting.write import read_note, suite_from
    from floral_learn.evaluation.store import Store, StoreError

    note = read_note(folder)
    if not out.parent.is_dir():
        raise ValueError(f"the folder of --out {out} does not exist")
    with Store(folder.parent / "store.sqlite", read_only=True) as store:
        try:
            page = render(Results(suite_from(note["suite"]), store), note)
        except (StoreError, ImportError, MemoryError):
            raise
        except Exception as error:  # a damaged note or store can hold anything
            raise ValueError(f"{folder} or its store is damaged ({type(error).__name__}: {error})") from error
    return write_atomically(out, page)
