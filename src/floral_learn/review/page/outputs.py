"""The files at the end of a review: cleaned table, decisions, changed labels, trained model, report page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.files.atomic_files import write_all
from floral_learn.review.page import words
from floral_learn.review.page.store import Answer
from floral_learn.tables.csv_cells import csv_bytes


@dataclass(frozen=True)
class Outputs:
    """What the files are made of.

    Parameters
    ----------
    folder : path
        Where they go.
    title, suffix : str
        Name and ending of the table's file; the cleaned copy has the same ending.
    relabelled : callable(rows, labels) -> bytes
        The table with these labels replaced and nothing else changed.
    save_model : callable(review, path)
        Trains and writes a model.
    rows : ShownRows
        The table as people read it.
    groups : ndarray, optional
        Where each label comes from.
    """

    folder: Path
    title: str
    suffix: str
    relabelled: Callable[[np.ndarray, np.ndarray], bytes]
    save_model: Callable[[Any, Path], None]
    rows: Any
    groups: np.ndarray | None = None

    def write(self, review: Any, answers: Sequence[Answer], notes: Sequence[str]) -> list[dict[str, str]]:
        """Write all files, each whole or not at all; returns their names and what they are."""
        labels = review.labels
        changed = np.flatnonzero(labels != review.given)
        cleaned = f"cleaned{self.suffix}"
        self.folder.mkdir(exist_ok=True)
        self.save_model(review, self.folder / "model.skops")
        page = report(review, answers, self.rows, self.groups, notes, f"{self.title}, reviewed")
        write_all(
            {
                self.folder / cleaned: self.relabelled(changed, labels[changed]),
                self.folder / "decisions.csv": decisions(answers, self.rows),
                self.folder / "changes.csv": changes(review, answers, self.rows),
                self.folder / "report.html": page.encode(),
            }
        )
        told = len({answer.row for answer in answers if answer.kind != "skip"})
        return [
            {"name": cleaned, "about": f"the table with {len(changed):,} labels replaced, nothing else changed"},
            {"name": "decisions.csv", "about": f"what was answered about {told:,} rows, by whom and when"},
            {"name": "changes.csv", "about": "each replaced label: by an answer, or on the model’s word"},
            {"name": "model.skops", "about": "a model trained on the labels as read now; floral predict uses it"},
            {"name": "report.html", "about": "all rows by how likely their label in the file is wrong"},
        ]


def decisions(answers: Sequence[Answer], rows: Any) -> bytes:
    """Every answer that stands, the latest of each reviewer on each row, as ``floral audit apply`` reads them."""
    latest = {(answer.row, answer.reviewer): answer for answer in answers if answer.kind != "skip"}
    header = ["row", "id", "given", "decision", "label", "reviewer", "time", "given_label_seen"]
    lines = []
    for answer in sorted(latest.values(), key=lambda answer: answer.id):
        given = str(rows.labels[answer.row])
        decision = _decision(answer, given)
        name = "" if rows.ids is None else str(rows.ids[answer.row])
        seen = "yes" if answer.seen else "no"
        label = answer.label if answer.label is not None else given
        lines.append([str(rows.numbers[answer.row]), name, given, decision, label, answer.reviewer, answer.time, seen])
    return csv_bytes(header, lines)


def changes(review: Any, answers: Sequence[Answer], rows: Any) -> bytes:
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


def report(
    review: Any, answers: Sequence[Answer], rows: Any, groups: np.ndarray | None, notes: Sequence[str], title: str
) -> str:
    """The audit's page with the review as its judge: suspicion is the probability that a label is wrong."""
    from floral_learn.audit import find_label_issues
    from floral_learn.audit.decisions import Decision
    from floral_learn.audit.page import render

    belief = review.label_probability
    ids = None if rows.ids is None else [str(name) for name in rows.ids]
    found = find_label_issues(
        np.asarray(rows.X), review.given, groups=groups, ids=ids, pred_probs=belief, random_state=0
    )
    others = belief.copy()
    others[np.arange(len(others)), found.given] = -1.0
    decided = {}
    for answer in answers:
        if answer.kind != "skip":
            given = str(rows.labels[answer.row])
            said = answer.label if answer.label is not None else given
            decided[answer.row] = Decision(answer.row, _decision(answer, given), said, given, answer.reviewer)
    found = replace(
        found,
        score=review.wrong_probability,
        flagged=review.wrong_probability >= 0.5,
        wrong_probability=review.wrong_probability,
        suggested=others.argmax(axis=1),
        row_numbers=np.asarray(rows.numbers),
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


def _decision(answer: Answer, given: str) -> str:
    if answer.label is None:
        return "unsure"
    return "right" if answer.label == given else "wrong"
