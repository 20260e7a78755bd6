"""``floral predict``: apply a model file to new rows."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import typer

from .tables import TableError, read_table, write_all

# What the encoders of scikit-learn hold beside types that skops knows: the type of an array, no code.
TRUSTED = ("numpy.dtype",)


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(name="predict")(predict)


def predict(
    model_file: Path = typer.Argument(..., metavar="MODEL", help="file from floral train"),
    source: Path = typer.Argument(..., metavar="DATA", help="rows to classify: .csv, .tsv or .parquet"),
    out: Path = typer.Option(..., "--out", "-o", help="CSV file to write: row, prediction, scores"),
    sep: str | None = typer.Option(None, help="separator of a text file (default: comma; tab for .tsv)"),
    encoding: str = typer.Option("utf-8", help="encoding of a text file"),
) -> None:
    """Write a prediction for every row; columns that the model does not know are ignored."""
    try:
        if not out.parent.is_dir():
            raise TableError(f"the folder of --out {out} does not exist")
        if out.exists() and any(path.exists() and out.samefile(path) for path in (source, model_file)):
            raise TableError(f"--out {out} is an input; inputs are never overwritten")
        from floral_learn import load

        model = load(model_file, trusted=TRUSTED)
        frame = read_table(source, sep=sep, encoding=encoding).frame()
        content, count = predictions(model, frame, source)
        write_all({out: content})
    except (TableError, ValueError, TypeError, OSError) as error:
        typer.echo(f"floral predict: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(2) from None
    typer.echo(f"wrote {count} predictions to {out}")


def predictions(model: Any, frame: Any, source: Path) -> tuple[bytes, int]:
    """The CSV of predictions: row number from 0, class, and the decision values where the model has them."""
    from floral_learn.datasets.columns import prepare, roles_behind

    steps = getattr(model, "named_steps", {})
    if "columns" not in steps:
        raise TableError("the model is not one of floral train: it has no columns to read")
    try:
        prepared = prepare(frame, roles_behind(steps["columns"]))
    except ValueError as error:
        raise TableError(f"{source}: {error}") from None
    labels = model.predict(prepared)
    names: list[str] = []
    scores = np.zeros((len(labels), 0))
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(prepared)).reshape(len(labels), -1)
        names = ["score"] if scores.shape[1] == 1 else [f"score_{label}" for label in model.classes_]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["row", "prediction", *names])
    for number, (label, values) in enumerate(zip(labels.tolist(), scores, strict=True)):
        writer.writerow([number, label, *(f"{value:.6g}" for value in values)])
    return stream.getvalue().encode(), len(labels)
