"""Judges under question: a `JudgeReview` behind the page, which asks a person about rows without what judges say."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.app.pages import render_page
from floral_learn.app.review_page.asking import Asking, Turn
from floral_learn.app.review_page.known import reason
from floral_learn.app.review_page.outputs import option_words
from floral_learn.app.review_page.shown_rows import ShownRows
from floral_learn.app.review_page.store import Answers, AnswerStore
from floral_learn.base.cells import csv_bytes
from floral_learn.base.files import write_set
from floral_learn.review.judge import HORIZON, JudgeReport, JudgeReview

FILES = ("judge.html", "judge.json", "gold.csv")


class JudgeSession(Asking):
    """Blind questions about rows that judges labelled; answers are kept as those of a review are.

    Parameters
    ----------
    review : JudgeReview
        New; stored answers are told to it.
    table : Table
        What is shown of the rows.
    path, out : path
        The table's file, and the folder of answers and results.
    pictures : path, optional
        Where the names of pictures begin; by default the table's folder.
    options : mapping, optional
        How the command was called, for the one that goes on.
    page : dict, optional
        What the page is told: own keys and guidelines.
    """

    kinds = ("label", "unsure")
    blind = True

    def __init__(
        self,
        review: JudgeReview,
        table: Any,
        *,
        path: Path,
        out: Path,
        pictures: Path | None = None,
        options: dict[str, Any] | None = None,
        page: dict[str, Any] | None = None,
    ) -> None:
        self.review, self.path, self.table, self.options = review, Path(path), table, options or {}
        begun = review.state()
        about = {
            "other answers of judges": begun["answers"][:16],
            "another prompt": "none" if begun["prompt"] is None else begun["prompt"][:16],
            "another seed": str(begun["random_state"]),
        }
        store = AnswerStore(out, about=about)
        rows = ShownRows(
            table.features,
            np.zeros(len(table.rows), dtype=int),
            folder=self.path.parent if pictures is None else pictures,
            ids=table.ids,
            numbers=table.rows,
        )
        super().__init__(store, rows, review.votes.classes.tolist(), Path(out), page)

    def state(self, reviewer: str) -> dict[str, Any]:
        """What is known of the judges so far."""
        found = super().state(reviewer)
        rows = found["rows"]
        return found | {"progress": {"answered": rows, "about": max(HORIZON, rows)}}

    def _catch_up(self, answers: Answers) -> None:
        """The same draws as ever, as far as there are answers, and the latest answer to each."""
        latest = {said.row: self.names[said.label] if said.label else None for said in answers}
        items = self.review.votes.items.tolist()
        while not set(latest) <= {items[row] for row in self.review.drawn}:
            more = self.review.ask(len(self.review.drawn) + 1)
            if not len(more) or len(self.review.drawn) == len(items):
                break
        self.review.given.clear()
        self.review.answer(latest, latest.values())

    def _choose(self, reviewer: str, answers: Answers, taken: Collection[int]) -> Turn | None:
        row = self.review.ask(1)
        return Turn(int(row[0]), "drawn") if len(row) else None

    def _card(self, turn: Turn, answers: Answers) -> dict[str, Any]:
        why = reason("again", 0) if turn.reason == "again" else ""
        return {**self.rows.card(turn.row), "why": why, "others": []}

    def _tell(self, answers: Answers) -> dict[str, Any]:
        report = self.review.report()
        judges = [{name: row[name] for name in ("judge", "low", "high")} for row in _of_all(report)]
        stop = {"now": False, "words": report.notes[-1]}
        if len(answers) < 20:
            stop["words"] = "Go on: intervals get narrow at 20 to 50 answers."
        return {"judges": judges, "stop": stop, "ten": {"words": report.notes[0]}}

    def _write(self, answers: Answers) -> dict[str, Any]:
        report, number = self.review.report(), self.table.rows
        gold = {self._name(row): str(label) for row, label in sorted(self.review.gold().items())}
        apart = report.disagreements
        lines = [(self._name(row), self.rows.line(row), self._said_of(row)) for row in apart]
        told = vars(report) | {
            "prompt": self.review.prompt,
            "disagreements": [name for name, _, _ in lines],
            "answers": [{"row": int(number[said.row]), "label": said.label, "by": said.reviewer} for said in answers],
        }
        page = render_page(
            "judge", title=self.path.name, prompt=self.review.prompt, report=report, n=len(number), lines=lines
        )
        as_json = json.dumps(_plain(told), indent=1, ensure_ascii=False) + "\n"
        content = {
            self.out / "judge.html": page.encode(),
            self.out / "judge.json": as_json.encode(),
            self.out / "gold.csv": csv_bytes(["task", "label"], gold.items()),
        }
        write_set(content, "floral judge --finish")
        files = [
            {"name": "judge.html", "about": "how often each judge is wrong, with intervals, as a page"},
            {"name": "judge.json", "about": "the same for programs"},
            {"name": "gold.csv", "about": f"your {len(gold):,} labels, by task"},
        ]
        words = option_words(self.options)
        again = ["floral", "judge", str(self.path), *words, "--out", str(self.out)]
        commands = [{"about": "Go on later, for narrower intervals", "command": shlex.join(again)}]
        return {"files": files, "commands": commands, "words": " ".join(report.notes)}

    def _name(self, row: Any) -> str:
        return str(self.table.rows[row] if self.table.ids is None else self.table.ids[row])

    def _said_of(self, row: Any) -> str:
        votes = self.review.votes
        place = votes.items.tolist().index(row)
        pairs = zip(votes.annotators.tolist(), self.review.said[place], strict=True)
        return ", ".join(f"{judge}: {votes.classes[code]}" for judge, code in pairs if code >= 0)


def _of_all(report: JudgeReport) -> list[dict[str, Any]]:
    return [row for row in report.errors if row["class"] == ""]


def _plain(value: Any) -> Any:
    """Without numpy's types, and None for what is not a number."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and math.isnan(value) else value
