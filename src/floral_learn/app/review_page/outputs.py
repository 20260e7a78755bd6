"""The files at the end of a review: cleaned table, decisions, changed labels, trained model, report page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.app.review_page import words
from floral_learn.app.review_page.store import StoredAnswer
from floral_learn.app.review_page.turns import spoken
from floral_learn.app.tables.source import table_suffix
from floral_learn.base.cells import csv_bytes
from floral_learn.base.files import write_set
from floral_learn.review.training import fit_reviewed


@dataclass(frozen=True)
class Outputs:
    """What the files are made of.

    Parameters
    ----------
    folder : path
        Where they go.
    source : path
        The table's file; the cleaned copy has the same ending.
    table : Table
        The table, with labels.
    encoder : TableEncoder
        Fitted on the table.
    rows : ShownRows
        The table as people read it.
    """

    folder: Path
    source: Path
    table: Any
    encoder: Any
    rows: Any

    def write(self, review: Any, answers: Sequence[StoredAnswer]) -> list[dict[str, str]]:
        """Write all files, all or none; returns their names and what they are.

        Everything is made, the model included, before the first file takes its place.
        """
        labels = review.labels
        changed = np.flatnonzero(labels != review.given)
        cleaned, title = file_names(table_suffix(self.source))[0], f"{self.source.name}, reviewed"
        page = report(review, answers, self.rows, self.table.groups, self.encoder.notes_, title)
        content = {
            cleaned: self.table.relabelled(changed, labels[changed]),
            "decisions.csv": decisions(answers, self.rows),
            "changes.csv": changes(review, answers, self.rows),
            "training.csv": training(review, self.rows, left_out(answers)),
            "model.skops": self._model(review, left_out(answers)),
            "report.html": page.encode(),
        }
        self.folder.mkdir(exist_ok=True)
        write_set({self.folder / name: raw for name, raw in content.items()}, "floral review --finish")
        told = len({answer.row for answer in spoken(answers)})
        out = len(left_out(answers))
        return [
            {"name": cleaned, "about": f"the table with {len(changed):,} labels replaced, nothing else changed"},
            {"name": "decisions.csv", "about": f"what was answered about {told:,} rows, by whom and when"},
            {"name": "changes.csv", "about": "each replaced label: by an answer, or by the model"},
            {
                "name": "training.csv",
                "about": "label and weight of every row, to train any model with" + f"; {out} left out" * bool(out),
            },
            {"name": "model.skops", "about": "a model trained on the corrected labels; floral predict uses it"},
            {"name": "report.html", "about": "all rows by how likely their label in the file is wrong"},
        ]

    def _model(self, review: Any, out: set[int]) -> bytes:
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
        model = Pipeline([("columns", self.encoder), ("classifier", classifier)])
        return model_bytes(model)


def file_names(suffix: str) -> list[str]:
    """Names of the files of the end."""
    return [f"cleaned{suffix}", "decisions.csv", "changes.csv", "training.csv", "model.skops", "report.html"]


def decisions(answers: Sequence[StoredAnswer], rows: Any) -> bytes:
    """Every answer that stands, the latest of each reviewer on each row, as ``floral audit apply`` reads them."""
    latest = {(answer.row, answer.reviewer): answer for answer in spoken(answers)}
    header = ["row", "id", "given", "decision", "label", "reviewer", "time", "given_label_seen", "note"]
    lines = []
    for answer in sorted(latest.values(), key=lambda answer: answer.id):
        given = str(rows.labels[answer.row])
        decision = _decision(answer, given)
        name = "" if rows.ids is None else str(rows.ids[answer.row])
        seen = "yes" if answer.seen else "no"
        label = answer.label if answer.label is not None else given
        note = "left out" if answer.kind == "out" else ""
        who = [label, answer.reviewer, answer.time, seen, note]
        lines.append([str(rows.numbers[answer.row]), name, given, decision, *who])
    return csv_bytes(header, lines)


def changes(review: Any, answers: Sequence[StoredAnswer], rows: Any) -> bytes:
    """Every label that is read otherwise than it was given."""
    told = {answer.row for answer in answers if answer.kind == "label"}
    labels, wrong = review.labels, review.wrong_probability
    header = ["row", "id", "given", "label", "by", "wrong_probability"]
    lines = []
    for row in np.flatnonzero(labels != review.given).tolist():
        name = "" if rows.ids is None else str(rows.ids[row])
        by = "answer" if row in told else "model"
        lines.append([str(rows.numbers[row]), name, str(review.given[row]), str(labels[row]), by, f"{wrong[row]:.4f}"])
    return csv_bytes(header, lines)


def left_out(answers: Sequence[StoredAnswer]) -> set[int]:
    """Rows that the last word about them leaves out of training."""
    last = {answer.row: answer.kind for answer in spoken(answers)}
    return {row for row, kind in last.items() if kind == "out"}


def training(review: Any, rows: Any, out: set[int]) -> bytes:
    """What to train on, a line for each row of the table; rows left out have no weight."""
    found = review.training
    header = ["row", "id", "label", "weight", "wrong_probability", "state"]
    lines = []
    columns = (np.asarray(found[name]).tolist() for name in header[2:])
    for row, (label, weight, wrong, state) in enumerate(zip(*columns, strict=True)):
        name = "" if rows.ids is None else str(rows.ids[row])
        weight, state = (0.0, "left out") if row in out else (weight, state)
        lines.append([str(rows.numbers[row]), name, str(label), f"{weight:.4f}", f"{wrong:.4f}", state])
    return csv_bytes(header, lines)


def report(
    review: Any, answers: Sequence[StoredAnswer], rows: Any, groups: np.ndarray | None, notes: Sequence[str], title: str
) -> str:
    """The audit's page with the review's own evidence: the score is the probability that a label is wrong.

    Nothing is judged again, so that every table that can be reviewed has a report, one of two rows too.
    """
    from floral_learn.app.audit_page import render
    from floral_learn.audit.decisions import Decision
    from floral_learn.audit.issues import surroundings
    from floral_learn.audit.result import REASONS, SHOWN, LabelIssues
    from floral_learn.labels.rows import nearest_rows

    X = np.asarray(rows.X, dtype=float)
    belief, wrong, classes = review.label_probability, review.wrong_probability, review.classes
    given = np.searchsorted(classes, review.given)
    around = surroundings(X, given, nearest_rows(np.nan_to_num(X), SHOWN), np.random.default_rng(0))
    holds = np.zeros((len(given), len(REASONS)), dtype=bool)
    holds[:, 0] = belief.argmax(axis=1) != given
    holds[:, 1] = around["neighbour_disagreement"] > 0.5
    holds[around["near_duplicate_pairs"].ravel(), 2] = True
    others = belief.copy()
    others[np.arange(len(others)), given] = -1.0
    decided = {}
    for answer in spoken(answers):
        was = str(rows.labels[answer.row])
        said = answer.label if answer.label is not None else was
        decided[answer.row] = Decision(answer.row, _decision(answer, was), said, was, answer.reviewer)
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
        groups=groups,
        decisions=list(decided.values()),
    )
    changed = int((review.labels != review.given).sum())
    lead = [
        f"After {words.count(len(decided), 'answered row')}, {words.count(changed)} of {len(found):,} are read "
        "differently than the file has them.",
        words.estimate(review.wrong_share),
        words.guarantee(review.guarantee()),
        "In this report the score is the review’s probability that a label in the file is wrong. Rows that were "
        "answered are marked.",
    ]
    return render(found, title=title, frame=rows.frame, notes=list(notes), lead=lead)


def _decision(answer: StoredAnswer, given: str) -> str:
    if answer.label is None:
        return "unsure"
    return "right" if answer.label == given else "wrong"
