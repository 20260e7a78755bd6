"""``floral train``: a defended classifier from a data file, saved as one model file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import typer

from .cluster import fit_table_on_cluster
from .tables import TableError, read_table


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(name="train")(train)


def train(
    source: Path = typer.Argument(..., metavar="DATA", help="data file: .csv, .tsv or .parquet"),
    label: str = typer.Option(..., "--label", "-l", help="name of the label column"),
    out: Path = typer.Option(..., "--out", "-o", help="model file to write, such as model.skops"),
    method: str = typer.Option("floral", "--method", "-m", help="floral, svm, ln-svm, curie, ls-svm, k-lid, ..."),
    budget: float | None = typer.Option(
        None, help="floral: share of labels that the attacker may choose from (default: chosen from the labels)"
    ),
    penalty: float | None = typer.Option(None, "--C", help="cap on the weight of one row (kernel machines)"),
    gamma: str = typer.Option("scale", help="kernel width: a number, scale or auto"),
    seed: int = typer.Option(0, "--seed", "-s", help="random seed"),
    drop: list[str] = typer.Option([], help="column to leave out (repeatable)"),
    sep: str | None = typer.Option(None, help="separator of a text file (default: comma; tab for .tsv)"),
    encoding: str = typer.Option("utf-8", help="encoding of a text file"),
    cluster: str | None = typer.Option(
        None, metavar="ADDRESS", help="floral: dask scheduler, such as tcp://host:8786; its workers read DATA"
    ),
) -> None:
    """Train on untrusted labels; `floral predict` uses the model file."""
    started = time.perf_counter()
    try:
        if not out.parent.is_dir():
            raise TableError(f"the folder of --out {out} does not exist")
        if out.exists() and source.exists() and out.samefile(source):
            raise TableError(f"--out {out} is the data file itself; it is never overwritten")
        if cluster is not None and budget is None and method == "floral":
            budget = 0.02  # a cluster cannot choose one
        classifier = make_classifier(method, penalty, gamma, budget, seed)
        if cluster is None:
            table = read_table(source, sep=sep, encoding=encoding)
            labels = table.labels(label)
            check_classes(labels, source, label)
            for column in drop:
                table.require(column)
            model, note = fit_pipeline(table.frame(), labels, [label, *drop], classifier, seed)
        else:
            model, note = fit_table_on_cluster(cluster, source, label, drop, classifier, seed, sep, encoding)
            labels = classifier.classes_[classifier._train_labels]
        from floral_learn import save

        save(model, out)
    except (TableError, ValueError, TypeError, OSError, MemoryError, ImportError) as error:
        typer.echo(f"floral train: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(2) from None
    classes, counts = np.unique(labels, return_counts=True)
    typer.echo(f"columns: {note}")
    typer.echo("labels: " + ", ".join(f"{c} ({n})" for c, n in zip(classes.tolist()[:12], counts, strict=False)))
    if (chosen := getattr(classifier, "selection_", None)) is not None:
        typer.echo(f"budget: {chosen.reason}")
    typer.echo(f"trained {method} on {len(labels)} rows in {time.perf_counter() - started:.1f} s; wrote {out}")


def check_classes(labels: np.ndarray, source: Path, label: str) -> None:
    """Refuse a label column that has one value, or as many as a measurement."""
    classes = np.unique(labels)
    if len(classes) < 2:
        raise TableError(f"{source}: column {label!r} has one value only, {classes.tolist()[0]!r}")
    if len(classes) > max(20, len(labels) // 4):
        raise TableError(f"{source}: column {label!r} has {len(classes)} different values: not the labels of classes")


def make_classifier(method: str, penalty: float | None, gamma: str, budget: float | None, seed: int) -> Any:
    """The estimator behind a name, with those of the options that it has."""
    from floral_learn.defenses import DEFENSES

    if method not in DEFENSES:
        raise TableError(f"--method {method!r} is unknown; choose one of {', '.join(DEFENSES)}")
    try:
        width: Any = gamma if gamma in ("scale", "auto") else float(gamma)
    except ValueError:
        raise TableError(f"--gamma {gamma!r} must be a number, scale or auto") from None
    classifier = DEFENSES[method]()
    if not classifier.__sklearn_tags__().input_tags.two_d_array:
        raise TableError(f"--method {method} reads texts, not columns; in Python: floral_learn.TextClassifier")
    known = classifier.get_params(deep=False)
    if budget is not None and "budget" not in known:
        raise TableError(f"--budget is for floral; {method} has no attacker inside")
    wanted: dict[str, Any] = {"gamma": width, "random_state": seed}
    if penalty is not None:
        wanted["C"] = penalty
    if budget is not None:
        wanted["budget"] = budget
    return classifier.set_params(**{name: value for name, value in wanted.items() if name in known})


def fit_pipeline(frame: Any, labels: np.ndarray, leave_out: list[str], classifier: Any, seed: int) -> tuple[Any, str]:
    """The fitted pipeline (encoder, classifier) and one line on what was encoded."""
    from sklearn.pipeline import Pipeline

    from floral_learn.datasets.columns import make_encoder, prepare, roles_of

    roles = roles_of(frame, leave_out)
    prepared = prepare(frame, roles)
    model = Pipeline([("columns", make_encoder(prepared, roles, seed)), ("classifier", classifier)])
    return model.fit(prepared, labels), roles.describe()
