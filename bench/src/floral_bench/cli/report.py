"""``floral report``: one HTML page about a run, with everything in it."""

from __future__ import annotations

from pathlib import Path

import typer

from floral_learn.app.terminal import one_line


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
    from floral_bench.reporting.page import render
    from floral_bench.reporting.results import Results
    from floral_bench.reporting.write import read_note, suite_from
    from floral_bench.store import Store, StoreError
    from floral_learn.base.files import write_atomically

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
