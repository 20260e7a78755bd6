"""``floral certify``: how many wrong labels predictions on a data file survive, and a page about it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import typer

from floral_learn.app.options import KINDS, check_out_folder, with_table_options
from floral_learn.app.terminal import one_line, say, say_notes
from floral_learn.base import TableError


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(name="certify")(one_line("floral certify")(certify))


@with_table_options(
    "label", "text", "text_encoder", "row_id", "trusted", "weight", "drop", "skip_blank", "sep", "encoding"
)
def certify(
    source: Path = typer.Argument(..., metavar="DATA", help=f"data file: {KINDS}"),
    out: Path = typer.Option(..., "--out", "-o", help="folder for page.html and certificates.csv"),
    flip: list[str] = typer.Option([], "--flip", help="what can be wrong: spam=ham, and nothing else (repeatable)"),
    rows: int = typer.Option(2000, "--rows", min=1, help="most rows to certify; more are drawn at random"),
    seed: int = typer.Option(0, "--seed", "-s", min=0, help="random seed of that draw"),
    columns: Any = None,
) -> None:
    """Say how many wrong labels of DATA predictions survive, whichever they are.

    Each row is predicted by a kernel ridge regression from the labels of all other rows. OUT gets page.html (open it in
    any browser) and certificates.csv (per row: prediction, wrong labels survived, and which labels would turn it). DATA
    itself is never changed.
    """
    started = time.perf_counter()
    check_out_folder(out)
    import numpy as np
    import pandas as pd

    from floral_learn import CertifiedKernelClassifier
    from floral_learn.app.pages import certificate_page, headline
    from floral_learn.base.cells import frame_bytes
    from floral_learn.base.files import write_set

    table = columns.read(source).check_classes(least=2)
    labels = table.labels
    say(f"{source.name}: {len(table):,} rows, {len(table.classes)} classes")
    X, notes = columns.numbers(table, seed)
    clf = CertifiedKernelClassifier(possible_flips=parse_flips(flip, table.classes))
    clf.fit(X, labels, sample_weight=table.weights, trusted=table.trusted)
    asked = able = np.arange(len(table)) if table.weights is None else np.flatnonzero(table.weights > 0)
    if flip:
        pairs = ", ".join(flip)
        notes.append(f"only these labels can be wrong: {pairs} (the label that may be replaced = the new one)")
    if len(able) > rows:
        asked = np.sort(np.random.default_rng(seed).choice(able, rows, replace=False))
        notes.append(f"{rows:,} of {len(able):,} rows were drawn at random and certified")
    say_notes(notes)
    found = clf.held_out_certificate(asked)
    rows_or_ids = table.rows if table.ids is None else table.ids
    names = list(map(str, rows_or_ids.tolist()))
    if seen := int((found.flips < 0).sum()):
        say(f"  {seen:,} predictions are ties: nothing is promised of them")
    frame = pd.DataFrame({"row": table.rows[asked]})
    if table.ids is not None:
        frame["id"] = table.ids[asked]
    frame["label"] = labels[asked]
    frame["prediction"], frame["survives"] = found.prediction, found.flips
    changes = zip(found.rows, found.labels, strict=True)
    frame["turned_by"] = [_named(changed, new, names) for changed, new in changes]
    page = certificate_page(found, frame, title=source.name, notes=notes)
    files = {out / "page.html": page.encode(), out / "certificates.csv": frame_bytes(frame)}
    write_set(files, "floral certify")
    say(headline(found.flips, found.n_labels))
    say("holds for a kernel ridge regression with settings that no label has chosen; the page names them")
    seconds = time.perf_counter() - started
    say(f"wrote {', '.join(path.name for path in files)} in {out} ({seconds:.1f} s)")


def parse_flips(texts: list[str], classes: Any) -> dict[Any, list[Any]] | None:
    """``spam=ham`` as {"spam": ["ham"]}, with the labels of the table; None where everything can be wrong."""
    if not texts:
        return None
    known = {str(label): label for label in classes.tolist()}
    possible: dict[Any, list[Any]] = {}
    for text in texts:
        # labels may hold one, too
        parts = text.split("=")
        splits = [("=".join(parts[:n]), "=".join(parts[n:])) for n in range(1, len(parts))]
        ways = [pair for pair in splits if known.keys() >= {*pair}]
        if not ways:
            shown = ", ".join(list(known)[:12])
            raise TableError(f"--flip {text!r} must be LABEL=LABEL with two labels of the table: {shown}")
        before, after = ways[0]
        if before == after:
            raise TableError(f"--flip {text!r} changes nothing: name two different labels")
        possible.setdefault(known[before], []).append(known[after])
    return possible


def _named(rows: Any, labels: Any, names: list[str], most: int = 20) -> str:
    """The first labels to change, as text for a cell."""
    if rows is None:
        return ""
    first = zip(rows[:most].tolist(), labels[:most], strict=True)
    told = [f"{names[row]} -> {label}" for row, label in first]
    return "; ".join(told) + (f"; and {len(rows) - most} more" if len(rows) > most else "")
