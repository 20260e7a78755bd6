"""The files at the end of a review: cleaned table, decisions, changed labels, trained model, report page."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.app.review_page.asking import spoken
from floral_learn.app.review_page.known import count, estimate, guarantee
from floral_learn.app.review_page.store import Answers, StoredAnswer
from floral_learn.app.tables.source import table_suffix
from floral_learn.base.cells import csv_bytes
from floral_learn.base.files import write_set
from floral_learn.review.training import fit_reviewed


def write(work: Any, answers: Answers) -> dict[str, Any]:
    """Write all files of a `ReviewSession`, all or none: "files" (name and what it is), "commands", "words".

    Everything is made, the model included, before the first file takes its place.
    """
    review, rows, source, folder = work.review, work.rows, work.path, work.out
    labels, out = review.labels, left_out(answers)
    told = {row for said in spoken(answers) for row in said.rows}
    changed = np.flatnonzero(labels != review.given)
    without = f"; {len(out)} left out" if out else ""
    about = {
        "cleaned": f"the table with {len(changed):,} labels replaced, nothing else changed",
        "decisions.csv": f"what was answered about {len(told):,} rows, by whom and when",
        "changes.csv": "each replaced label: by an answer, or by the model",
        "training.csv": f"label and weight of every row, to train any model with{without}",
        "model.skops": "a model trained on the corrected labels; floral predict uses it",
        "report.html": "all rows by how likely their label in the file is wrong",
    }
    content = [
        work.table.relabelled(changed, labels[changed]),
        decisions(answers, rows),
        changes(review, answers, rows),
        training(review, rows, out),
        _model(work.encoder, review, out),
        report(work, answers).encode(),
    ]
    names = file_names(table_suffix(source))
    folder.mkdir(exist_ok=True)
    paths = [folder / name for name in names]
    write_set(dict(zip(paths, content, strict=True)), "floral review --finish")
    described = zip(names, about.values(), strict=True)
    return {
        "files": [{"name": name, "about": words} for name, words in described],
        "commands": commands(folder, source, str(work.table.label), work.options),
        "words": "",
    }


def _model(encoder: Any, review: Any, out: set[int]) -> bytes:
    """A FLORAL model behind the encoder that read the table, for ``floral predict``."""
    from sklearn.pipeline import Pipeline

    from floral_learn import FloralClassifier
    from floral_learn.base.models import model_bytes

    classifier = FloralClassifier(random_state=0)
    if out:
        kept = np.setdiff1d(np.arange(len(review.labels)), list(out))
        classifier = fit_reviewed(classifier, review.table, review.beliefs, kept)
    else:
        classifier = review.train(classifier)
    return model_bytes(Pipeline([("columns", encoder), ("classifier", classifier)]))


def file_names(suffix: str) -> list[str]:
    """Names of the files of the end."""
    return [f"cleaned{suffix}", "decisions.csv", "changes.csv", "training.csv", "model.skops", "report.html"]


def decisions(answers: Answers, rows: Any) -> bytes:
    """Every answer that stands, the latest of each reviewer on each row, as ``floral audit apply`` reads them."""
    latest = {(row, said.reviewer): said for said in spoken(answers) for row in said.rows}
    header = ["row", "id", "given", "decision", "label", "reviewer", "time", "given_label_seen", "note"]
    lines = []
    for (row, _), said in sorted(latest.items(), key=lambda pair: (pair[1].id, pair[0])):
        given = str(rows.labels[row])
        label, seen = given if said.label is None else said.label, "yes" if said.seen else "no"
        note = "" if row == said.row else f"with {rows.name(said.row)}"
        note = "left out" if said.kind == "out" else note
        said_so = [_decision(said, given), label, said.reviewer, said.time, seen, note]
        lines.append([*rows.names(row), given, *said_so])
    return csv_bytes(header, lines)


def changes(review: Any, answers: Answers, rows: Any) -> bytes:
    """Every label that is read otherwise than it was given."""
    told = {row for answer in answers if answer.kind == "label" for row in answer.rows}
    labels, given, wrong = review.labels, review.given, review.wrong_probability
    header = ["row", "id", "given", "label", "by", "wrong_probability"]
    changed = np.flatnonzero(labels != given).tolist()
    by = ["answer" if row in told else "model" for row in changed]
    lines = [
        [*rows.names(row), str(given[row]), str(labels[row]), who, f"{wrong[row]:.4f}"]
        for row, who in zip(changed, by, strict=True)
    ]
    return csv_bytes(header, lines)


def left_out(answers: Answers) -> set[int]:
    """Rows that the last word about them leaves out of training."""
    last = {row: answer.kind for answer in spoken(answers) for row in answer.rows}
    return {row for row, kind in last.items() if kind == "out"}


def training(review: Any, rows: Any, out: set[int]) -> bytes:
    """What to train on, a line for each row of the table; rows left out have no weight."""
    found = review.training
    header = ["row", "id", "label", "weight", "wrong_probability", "state"]
    lines = []
    columns = (np.asarray(found[name]).tolist() for name in header[2:])
    for row, (label, weight, wrong, state) in enumerate(zip(*columns, strict=True)):
        weight, state = (0.0, "left out") if row in out else (weight, state)
        lines.append([*rows.names(row), str(label), f"{weight:.4f}", f"{wrong:.4f}", state])
    return csv_bytes(header, lines)


def report(work: Any, answers: Answers) -> str:
    """The audit's page with the review's own evidence: the score is the probability that a label is wrong.

    Nothing is judged again, so that every table that can be reviewed has a report, one of two rows too.
    """
    from floral_learn.app.audit_page import render
    from floral_learn.audit.decisions import Decision
    from floral_learn.audit.issues import surroundings
    from floral_learn.audit.result import REASONS, SHOWN, LabelIssues
    from floral_learn.labels.rows import nearest_rows

    review, rows = work.review, work.rows
    X = np.asarray(work.X, dtype=float)
    belief, wrong, classes = review.label_probability, review.wrong_probability, review.classes
    given = np.searchsorted(classes, review.given)
    around = surroundings(X, given, nearest_rows(np.nan_to_num(X), SHOWN), np.random.default_rng(0))
    # reasons in the order of the audit: the model, the neighbours, an equal row with another label
    holds = np.zeros((len(given), len(REASONS)), dtype=bool)
    holds[:, 0] = belief.argmax(axis=1) != given
    holds[:, 1] = around["neighbour_disagreement"] > 0.5
    holds[around["near_duplicate_pairs"].ravel(), 2] = True
    others = belief.copy()
    others[np.arange(len(others)), given] = -1.0
    decided = {}
    for answer in spoken(answers):
        for row in answer.rows:
            was = str(rows.labels[row])
            said = was if answer.label is None else answer.label
            decided[row] = Decision(row, _decision(answer, was), said, was, answer.reviewer)
    found = LabelIssues(
        classes=classes,
        given=given,
        suggested=others.argmax(axis=1),
        score=wrong,
        flagged=wrong >= 0.5,
        probability=belief,
        reasons=holds,
        **around,
        row_numbers=np.asarray(rows.numbers),
        ids=None if rows.ids is None else [str(name) for name in rows.ids],
        groups=work.table.groups,
        decisions=list(decided.values()),
    )
    changed = int((review.labels != review.given).sum())
    lead = [
        f"After {count(len(decided), 'answered row')}, {count(changed)} of {len(found):,} are read "
        "differently than the file has them.",
        estimate(review.wrong_share),
        guarantee(review.guarantee()),
        "In this report the score is the review’s probability that a label in the file is wrong. Rows that were "
        "answered are marked.",
    ]
    title = f"{work.path.name}, reviewed"
    return render(found, title=title, frame=rows.frame, notes=list(work.encoder.notes_), lead=lead)


def _decision(answer: StoredAnswer, given: str) -> str:
    if answer.label is None:
        return "unsure"
    return "right" if answer.label == given else "wrong"


def option_words(options: Mapping[str, Any]) -> list[str]:
    """The options of the command that read the table, as they are typed; those left at their defaults are not."""
    named = {"ids": "--id", "groups": "--group", "skip_blank_labels": "--skip-blank"}
    words = []
    for name, value in options.items():
        option = named.get(name, f"--{name.replace('_', '-')}")
        if isinstance(value, bool):
            words += [option] * value
        elif isinstance(value, list | tuple):
            words += [word for one in value for word in (option, str(one))]
        elif value is not None and value != "auto":
            words += [option, str(value)]
    return words


def commands(out: Path, table: Path, label: str, options: dict[str, Any]) -> list[dict[str, str]]:
    """What to do with the files of the end, as commands to copy."""
    read = ["--label", label, *option_words(options)]
    cleaned = str(out / f"cleaned{table_suffix(table)}")
    model = str(out / "model.skops")
    parts = {
        "Label new rows with the model": ["predict", model, "new.csv", "--out", "predictions.csv"],
        "Train another model on the cleaned table": ["train", cleaned, *read, "--out", "other.skops"],
        "Go on with this review later": ["review", str(table), *read, "--out", str(out)],
    }
    lines = {about: shlex.join(["floral", *words]) for about, words in parts.items()}
    return [{"about": about, "command": line} for about, line in lines.items()]
