"""The review as a local page: a `LabelReview` hears the stored answers and asks the next question."""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Collection
from pathlib import Path
from typing import Any

from floral_learn.app.review_page import outputs
from floral_learn.app.review_page.asking import ROUND, Asking, Turn, disagreements, own_turn, spoken
from floral_learn.app.review_page.known import describe, reason
from floral_learn.app.review_page.shown_rows import ShownRows
from floral_learn.app.review_page.store import FILE, KINDS, SILENT, Answers, AnswerStore, StoredAnswer
from floral_learn.base.files import sha256
from floral_learn.review import LabelReview
from floral_learn.review.answers import latest_answers
from floral_learn.review.label_review import FIRST_ANSWERS

log = logging.getLogger(__name__)


class ReviewSession(Asking):
    """Answers in, questions and knowledge out, for any number of reviewers at once.

    Parameters
    ----------
    table : Table
        From `read_table`, with labels.
    encoder : TableEncoder
        Not fitted.
    path : path
        The table's file.
    out : path
        The review's folder.
    options : mapping
        What must be the same when the review is resumed, beside the file's contents.
    seed : int, optional
        Makes questions repeatable and voids the guarantee.
    pictures : path, optional
        Where the names of pictures begin; by default the table's folder.
    page : dict, optional
        What the page is told: own keys and guidelines.
    """

    kinds = KINDS

    def __init__(
        self,
        table: Any,
        encoder: Any,
        *,
        path: Path,
        out: Path,
        options: dict[str, Any],
        seed: int | None = None,
        pictures: Path | None = None,
        page: dict[str, Any] | None = None,
    ) -> None:
        self.table, self.path, self.options, self.encoder = table, Path(path), options, encoder
        about = {
            "other contents of the table": sha256(self.path)[:16],
            "another label column": str(table.label),
            "other options": shlex.join(outputs.option_words(options)) or "none",
        }
        # A review that exists says first whether it is this one; a new one leaves nothing where the table is no good.
        store = AnswerStore(out, about=about) if (Path(out) / FILE).exists() else None
        try:
            self.X = encoder.fit_transform(table.features)
            secret = None if store is None else store.secret(len(table.labels))
            begun = seed if secret is None else secret["random_state"]
            if seed not in (None, begun):
                raise ValueError(f"--seed {seed} is not that of the review in {out}; leave it out to go on")
            self.review = LabelReview(
                self.X, table.labels, groups=table.groups, trusted=table.trusted, random_state=begun, secret=secret
            )
            store = store or AnswerStore(out, about=about)
            labels = set(map(str, table.classes.tolist()))
            store.check_answers(len(table.labels), labels)
            # An order drawn again after the first answers were seen would void the guarantee.
            if secret is None:
                store.put("secret", json.dumps(self.review.secret).encode())
        except BaseException:
            if store is not None:
                store.close()
            raise
        # Who gave a label is not shown with the question: it would sway the answer.
        folder = self.path.parent if pictures is None else pictures
        rows = ShownRows(table.features, table.labels, folder=folder, ids=table.ids, numbers=table.rows)
        super().__init__(store, rows, rows.classes.tolist(), Path(out), page)
        self._applied: list[StoredAnswer] = []  # answers that the review has heard

    def state(self, reviewer: str) -> dict[str, Any]:
        """What is known so far, and who said what."""
        found, answers = super().state(reviewer), self.store.active()
        counts: dict[str, int] = {}
        for answer in spoken(answers):
            counts[answer.reviewer] = counts.get(answer.reviewer, 0) + 1
        done, n = found["rows"], len(self.rows.labels)
        ahead = 0 if found["known"].get("stop", {}).get("now") else max(FIRST_ANSWERS - done, ROUND)
        return found | {
            "progress": {"answered": done, "about": min(done + ahead, n)},
            "reviewers": [{"name": name, "answers": count} for name, count in sorted(counts.items())],
            "disagreements": [
                {
                    "name": self.rows.name(row),
                    "line": self.rows.line(row, 80),
                    "answers": [*map(_vote, said.values())],
                    "row": row,
                }
                for row, said in disagreements(answers).items()
            ],
        }

    def _card(self, turn: Turn, answers: Answers) -> dict[str, Any]:
        said = latest_answers(spoken(answers))
        near, _ = self.review.nearest(turn.row)
        card = self.rows.card(turn.row, near.tolist())
        for other in card["nearest"]:
            heard = said.get(other["row"], {}).values()
            votes = {answer.label for answer in heard} - {None}
            other["answer"] = votes.pop() if len(votes) == 1 else None
            other["given"] = str(self.rows.labels[other["row"]])
            if other["row"] in turn.along:  # its label would sway the answer as the row's own
                other |= {"given": None, "line": self.rows.difference(turn.row, other["row"])}
        contrary = said.get(turn.row, {}) if turn.reason == "disagreement" else {}
        others = [*map(_vote, contrary.values())]
        why = reason(turn.reason, turn.others)
        return {**card, "given": str(self.rows.labels[turn.row]), "why": why, "others": others}

    def _catch_up(self, answers: Answers) -> None:
        """Bring the review to `answers`: what was undone since is undone, what is new is answered."""
        wanted, heard = spoken(answers), self._applied
        pairs = zip(wanted, heard, strict=False)
        differ = [k for k, (one, other) in enumerate(pairs) if one.id != other.id]
        same = min(*differ, len(wanted), len(heard))
        for _ in self._applied[same:]:
            self.review.undo()
        for answer in wanted[same:]:
            label = None if answer.label is None else self.names[answer.label]
            self.review.answer([answer.row], [label], reviewer=answer.reviewer, along=answer.along)
        self._applied = wanted

    def _choose(self, reviewer: str, answers: Answers, taken: Collection[int]) -> Turn | None:
        if (turn := own_turn(answers, reviewer, taken)) is not None:
            return turn
        asked = {answer.row for answer in answers}
        if (turn := self._next_turn(asked | set(taken))) is not None:
            return turn
        told = {row for answer in spoken(answers) for row in answer.rows}
        waiting = [said.row for said in answers if said.kind in SILENT and said.reviewer == reviewer]
        left = [row for row in waiting if row not in told and row not in taken]
        return Turn(left[0], "skipped") if left else None

    def _next_turn(self, closed: Collection[int]) -> Turn | None:
        """The row whose answer would settle most, outside of `closed`, and why; None where none is left."""
        answered = {row for answer in self._applied for row in answer.rows}
        not_along = answered | set(closed)
        for row, drawn in self.review.questions(len(set(closed) - answered) + 1):
            if row not in closed:
                # as many as the page has in sight: nobody answers for rows that were not shown
                near, same = self.review.nearest(row)
                free = near[same & ~self.review.trusted[near]].tolist()
                along = tuple(one for one in free if one not in not_along)
                if drawn:
                    return Turn(row, "drawn", along=along)
                return Turn(row, "question", self.review.related(row), along)
        return None

    def _tell(self, answers: Answers) -> dict[str, Any]:
        """What is known; where that fails, questions and answers go on."""
        try:
            return describe(self.review)
        except Exception as error:
            log.exception("cannot say what is known")
            return {"trouble": f"What is known cannot be told just now ({error}). Answers are saved."}

    def _write(self, answers: Answers) -> dict[str, Any]:
        return outputs.write(self, answers)


def _vote(answer: StoredAnswer) -> dict[str, Any]:
    said = answer.label if answer.kind == "label" else "not sure"
    return {"reviewer": answer.reviewer, "label": said, "time": answer.time}
