"""``floral predict``: apply a model file to new rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from floral_learn.app.options import KINDS, check_out_file, with_table_options
from floral_learn.app.terminal import one_line, say
from floral_learn.base import TableError


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(name="predict")(one_line("floral predict")(predict))


@with_table_options("row_id", "sep", "encoding", "image_folder", "embeddings")
def predict(
    model_file: Path = typer.Argument(..., metavar="MODEL", help="file from floral train"),
    source: Path = typer.Argument(..., metavar="DATA", help=f"rows to classify: {KINDS}"),
    out: Path = typer.Option(..., "--out", "-o", help="CSV file to write: row, id, prediction, scores"),
    max_bytes: int = typer.Option(2**30, min=1, help="most bytes that MODEL may unpack to"),
    columns: Any = None,
) -> None:
    """Predict a label for every row of DATA; columns that the model does not know are ignored."""
    from floral_learn import load
    from floral_learn.base.encoder import TableEncoder
    from floral_learn.base.files import write_all
    from floral_learn.encoders import ImageEncoder

    from .pictures import GivenEmbeddings, read_embeddings

    check_out_file(out, source, model_file)
    model = load(model_file, max_bytes=max_bytes)
    encoder = getattr(model, "named_steps", {}).get("columns")
    if not isinstance(encoder, TableEncoder | ImageEncoder | GivenEmbeddings):
        raise TableError(f"{model_file} is not a model of floral train: it has no columns to read")
    # The column of names may be one that the model was trained on.
    pictures = isinstance(encoder, ImageEncoder)
    if pictures:
        source, columns = replace(columns, image=encoder.column).find(source, labelled=False)
        # a file from a stranger names no folder to read from or to write to
        folder = str(columns.image_folder or source.parent)
        encoder.set_params(folder=folder, cache=True, column=columns.image)
    table = replace(columns, image=None, embeddings=None).read(source, as_text=encoder.as_text, ids=None)
    if isinstance(encoder, GivenEmbeddings) and columns.embeddings is not None:
        encoder.vectors = read_embeddings(columns.embeddings, len(table))
    ids = table.features[encoder.column].tolist() if pictures else None
    if columns.row_id is not None:
        ids = table.column(columns.row_id)
    try:
        content = predictions(model, table.features, ids)
    except TableError as error:
        raise TableError(f"{source}: {error}") from None
    write_all({out: content})
    say(f"wrote {len(table):,} predictions to {out}")


def predictions(model: Any, features: Any, ids: list[str | None] | None) -> bytes:
    """The CSV of predictions: row number from 0, id, class, and the decision values where the model has them."""
    import numpy as np

    from floral_learn.base.cells import csv_bytes

    X = model.named_steps["columns"].transform(features)
    classifier = model.named_steps["classifier"]
    labels = classifier.predict(X)
    names: list[str] = []
    scores = np.zeros((len(labels), 0))
    if hasattr(classifier, "decision_function"):
        scores = np.asarray(classifier.decision_function(X)).reshape(len(labels), -1)
        names = ["score"] if scores.shape[1] == 1 else [f"score_{label}" for label in model.classes_]
    named = [[]] * len(labels) if ids is None else [[name] for name in ids]
    found = zip(named, labels.tolist(), scores, strict=True)
    rows = (
        [number, *name, label, *(f"{value:.6g}" for value in values)]
        for number, (name, label, values) in enumerate(found)
    )
    return csv_bytes(["row", *([] if ids is None else ["id"]), "prediction", *names], rows)
