"""``floral train``: a defended classifier from a data file, saved as one model file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import typer

from floral_learn.app.options import KINDS, OPTIONS, check_out_file, parse_budget, with_table_options
from floral_learn.app.terminal import one_line, say, say_notes
from floral_learn.base import TableError


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(name="train")(one_line("floral train")(train))


@with_table_options(*OPTIONS)
def train(
    source: Path = typer.Argument(..., metavar="DATA", help=f"data file: {KINDS}"),
    out: Path = typer.Option(..., "--out", "-o", help="model file to write, such as model.skops"),
    method: str = typer.Option("floral", "--method", "-m", help="floral, svm, ln-svm, curie, ls-svm, k-lid, ..."),
    budget: str | None = typer.Option(
        None, help="floral: labels that the attacker may choose from: a share (0.05), percentage (5%) or count (25)"
    ),
    penalty: float | None = typer.Option(None, "--C", help="cap on the weight of one row (kernel machines)"),
    gamma: str = typer.Option("scale", help="kernel width: a number, scale or auto"),
    seed: int = typer.Option(0, "--seed", "-s", help="random seed"),
    decisions: Path | None = typer.Option(None, help="decisions.csv of an audit: its labels replace those in DATA"),
    held_out: bool = typer.Option(True, help="check the method on rows held out before the final fit"),
    columns: Any = None,
) -> None:
    """Train a classifier on untrusted labels and save it as a model file for `floral predict`."""
    started = time.perf_counter()
    if out.suffix.lower() != ".skops":
        raise TableError(f"--out {out} must end in .skops: a model file is a skops archive, never a pickle")
    check_out_file(out, source)
    say(f"reading {source}")
    share = None if budget is None else parse_budget(budget)
    classifier = make_classifier(method, penalty, gamma, share, seed)
    from floral_learn import save

    source, columns = columns.find(source)
    table = columns.read(source).check_classes()
    if decisions is not None:
        table = with_decisions(table, decisions)
    per_row = row_arguments(table, classifier, method)
    n = len(table)
    if budget is not None:
        parse_budget(budget, n_rows=n)  # before the held-out fit, which has fewer rows, complains
    say(f"{n:,} rows; {classes_in_words(table.labels)}")
    encoder = table.encoder or columns.encoder(seed)
    model, checked = fit(table, classifier, encoder, seed, held_out, per_row)
    say_notes([*table.notes, *model.named_steps["columns"].notes_])
    save(model, out)
    played = getattr(classifier, "budget", None)
    bought = f", budget {played:g}" if isinstance(played, int | float) else ""
    seconds = time.perf_counter() - started
    say(f"trained {method} on {n:,} rows{bought} in {seconds:.1f} s; {checked}")
    say(f"wrote {out}")


def make_classifier(method: str, penalty: float | None, gamma: str, budget: float | None, seed: int) -> Any:
    """The estimator behind a name, with those of the options that it has."""
    from floral_learn.paper.defenses import DEFENSES, set_parts

    if method not in DEFENSES:
        raise TableError(f"--method {method!r} is unknown; choose one of {', '.join(DEFENSES)}")
    try:
        width: Any = gamma if gamma in ("scale", "auto") else float(gamma)
    except ValueError:
        raise TableError(f"--gamma {gamma!r} must be a number, scale or auto") from None
    classifier = DEFENSES[method]()
    if not classifier.__sklearn_tags__().input_tags.two_d_array:
        raise TableError(f"--method {method} reads texts, not columns; in Python: floral_learn.TextClassifier")
    known = classifier.get_params()
    if budget is not None and "budget" not in known:
        raise TableError(f"--budget is for floral; {method} has no attacker inside")
    wanted: dict[str, Any] = {"gamma": width, "random_state": seed}
    given = {"C": penalty, "budget": budget}
    wanted |= {name: value for name, value in given.items() if value is not None}
    parts = {name.rpartition("__")[2] for name in known}
    taken = {name: value for name, value in wanted.items() if name in parts}
    return set_parts(classifier, **taken)


def with_decisions(table: Any, path: Path) -> Any:
    """The table with the labels that people decided on, which are trusted from then on."""
    from dataclasses import replace

    from floral_learn.audit.decisions import read_decisions, settle

    found = read_decisions(path, table.labels, rows=table.rows)
    labels, sure = settle(table.labels, table.trusted, found)
    changed = int((labels != table.labels).sum())
    settled = sum(decision.kind != "unsure" for decision in found)
    say(f"{settled:,} decisions: {changed:,} labels replaced, all of them trusted")
    return replace(table, labels=labels, trusted=sure).check_classes()


def row_arguments(table: Any, classifier: Any, method: str) -> dict[str, Any]:
    """What `fit` is told about each row; an option that the method cannot use is an error."""
    from sklearn.utils.validation import has_fit_parameter

    found = {"sample_weight": ("--weight", table.weights), "trusted": ("--trusted", table.trusted)}
    for name, (option, values) in found.items():
        if values is not None and not has_fit_parameter(classifier, name):
            raise TableError(f"{option}: --method {method} has no use for it; --method floral has")
    if table.trusted is not None and table.trusted.all():
        raise TableError("--trusted is true in every row: there is nothing to defend against; use --method svm")
    return {name: values for name, (_, values) in found.items() if values is not None}


def fit(
    table: Any, classifier: Any, encoder: Any, seed: int, held_out: bool, per_row: dict[str, Any]
) -> tuple[Any, str]:
    """The fitted pipeline (encoder, classifier) and a phrase on how the same method did on held-out rows."""
    from sklearn.base import clone
    from sklearn.pipeline import Pipeline

    say("  columns into numbers ...")
    X = encoder.fit_transform(table.features)
    given = table.labels
    if table.groups is not None:
        say("  weigh the labels by who gave them ...")
        table = labels_from_annotators(table, X, seed)
    checked = "not checked on held-out rows"
    if held_out:
        say("  check on held-out rows ...")
        checked = check(X, table.labels, clone(classifier), seed, per_row, given)
    say(f"  fit on {len(table):,} rows ...")
    classifier.fit(X, table.labels, **per_row)
    return Pipeline([("columns", encoder), ("classifier", classifier)]), checked


def labels_from_annotators(table: Any, X: Any, seed: int) -> Any:
    """The table with the labels that its annotators' other answers and the features make most probable."""
    from dataclasses import replace

    import numpy as np

    from floral_learn.crowd import aggregate_votes

    gold = None
    if table.trusted is not None:
        gold = table.labels.astype(object)
        gold[~table.trusted] = None
    found = aggregate_votes(table.labels, X, groups=table.groups, gold=gold, random_state=seed)
    changed = int(np.sum(found.labels != table.labels))
    read = f"{changed:,} of {len(table):,} labels read differently"
    table.notes.append(f"{read}, by who gave them ({len(found.annotators):,} people)")
    if undecided := len(found.undecided):
        table.notes.append(f"{undecided:,} labels are not decided: mark some that are known to be right (--trusted)")
    return replace(table, labels=found.labels)


def check(
    X: Any,
    labels: Any,
    classifier: Any,
    seed: int,
    per_row: dict[str, Any],
    given: Any,
    share: float = 0.2,
    most_test: int = 2000,
    most_train: int = 4000,
) -> str:
    """Held-out accuracy against the most frequent class; where `labels` differ from `given`, on either, by name."""
    import numpy as np
    from sklearn.model_selection import train_test_split

    classes, counts = np.unique(labels, return_counts=True)
    n_test = min(int(share * len(labels)), most_test)
    if counts.min() < 5 or n_test < max(len(classes), 10):
        return "too few rows per class to check on held-out ones"
    n_train = min(len(labels) - n_test, most_train)
    rows, sizes = np.arange(len(labels)), {"train_size": n_train, "test_size": n_test}
    train, test = train_test_split(rows, **sizes, stratify=labels, random_state=seed)
    of_train = {name: values[train] for name, values in per_row.items()}
    classifier.fit(X[train], labels[train], **of_train)
    found = classifier.predict(X[test])
    right, as_given = (float((found == some[test]).mean()) for some in (labels, given))
    most = float((given[test] == classes[counts.argmax()]).mean())
    told = f"held-out accuracy {as_given:.3f} on the labels as given"
    if not np.array_equal(labels, given):
        told += f", {right:.3f} on the labels as corrected by who gave them"
    return f"{told}, majority class {most:.3f} ({n_test:,} rows, a fit on {n_train:,})"


def classes_in_words(labels: Any) -> str:
    """The classes and their counts, the first dozen."""
    import numpy as np

    classes, counts = np.unique(labels, return_counts=True)
    shown = ", ".join(f"{c} ({n:,})" for c, n in zip(classes.tolist()[:12], counts, strict=False))
    return f"{len(classes)} classes: {shown}" + (", ..." if len(classes) > 12 else "")
