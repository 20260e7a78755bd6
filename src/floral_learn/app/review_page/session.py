"""One table under review: answers go to disk at once, and the next question is there.

Requests come from any thread and take what lies ready; one thread behind them follows the answers with a `LabelReview`,
lays out questions, says what is known and writes the files of the end.
"""

from __future__ import annotations

import json
import logging
import shlex
import threading
import time
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from floral_learn.app.review_page import words
from floral_learn.app.review_page.known import describe
from floral_learn.app.review_page.outputs import Outputs
from floral_learn.app.review_page.shown_rows import ShownRows
from floral_learn.app.review_page.store import FILE, KINDS, AnswerStore, StoredAnswer
from floral_learn.app.review_page.turns import Desk, Turn, disagreements, own_turn, spoken
from floral_learn.base.files import sha256
from floral_learn.review.answers import latest_answers
from floral_learn.review.label_review import LabelReview

PATIENCE = 0.15  # seconds to wait for a question that knows the last answer, before one that does not is shown
MOST_AHEAD = 4  # classes for which the question after next is worked out while a reviewer reads
_LONGEST = 60.0  # seconds to wait where there is no question at all
_ACTIVE = 600.0  # seconds after which a silent reviewer's questions go to others

log = logging.getLogger(__name__)


class Refused(ValueError):
    """A request that does not fit; the message is for the reviewer."""


class ReviewSession:
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
    """

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
    ) -> None:
        self.table, self.path, self.out, self.options = table, Path(path), Path(out), options
        contents = sha256(self.path)
        about = {
            "other contents of the table": contents[:16],
            "another label column": str(table.label),
            "other options": shlex.join(words.option_words(options)) or "none",
        }
        # A review that exists says first whether it is this one; a new one leaves nothing where the table is no good.
        exists = (self.out / FILE).exists()
        if exists:
            self.store = AnswerStore(self.out, about=about)
        try:
            self.X, self.encoder = encoder.fit_transform(table.features), encoder
            # Who gave a label is not shown with the question: it would sway the answer.
            self.rows = ShownRows(
                table.features,
                table.labels,
                self.X,
                folder=self.path.parent if pictures is None else pictures,
                ids=table.ids,
                numbers=table.rows,
            )
            secret = self.store.secret(len(table.labels)) if exists else None
            begun = seed if secret is None else secret["random_state"]
            if seed not in (None, begun):
                raise ValueError(f"--seed {seed} is not that of the review in {self.out}; leave it out to go on")
            self.review = LabelReview(
                self.X, table.labels, groups=table.groups, trusted=table.trusted, random_state=begun, secret=secret
            )
            if not exists:
                self.store = AnswerStore(self.out, about=about)
            self.store.check_answers(len(table.labels), {str(label) for label in self.rows.classes.tolist()})
            # An order drawn again after the first answers were seen would void the guarantee.
            if secret is None:
                self.store.put("secret", json.dumps(self.review.secret).encode())
        except BaseException:
            if hasattr(self, "store"):
                self.store.close()
            raise
        self.names = {str(label): label for label in self.rows.classes.tolist()}
        self.known: dict[str, Any] = {}
        self.files: dict[str, Any] = {"state": "none", "files": []}
        self.broken: str | None = None
        self._answers = self.store.active()
        self._applied: list[StoredAnswer] = []  # answers that the review has heard
        self._desks: dict[str, Desk] = {}
        self._change = 0  # counts answers and undos
        self._known_at = -1
        self._stop = False
        self._room = threading.Condition()
        self._thread: threading.Thread | None = None

    def start(self) -> ReviewSession:
        """Start the thread behind the page."""
        self._thread = threading.Thread(target=self._work, name="review", daemon=True)
        self._thread.start()
        return self

    @property
    def answered(self) -> int:
        """Answers that stand."""
        return len(spoken(self.store.active()))

    def write_files(self) -> list[dict[str, str]]:
        """Write the files of the end from the answers so far; returns their names and what they are."""
        answers = self.store.active()
        self._catch_up(answers)
        return self._write_files(answers)

    def close(self) -> None:
        """End the thread and give the file back."""
        with self._room:
            self._stop = True
            self._room.notify_all()
        if self._thread is not None:
            self._thread.join(timeout=10.0)
        self.store.close()

    # -- what requests ask for, each from its own thread -------------------------------------------------------------

    def question(self, reviewer: str) -> dict[str, Any]:
        """The question that lies before `reviewer`, taking up the next one where there is none."""
        with self._room:
            desk = self._desk(reviewer)
            if desk.shown is not None and desk.shown.row < 0:  # nothing was left to ask; others may have changed that
                desk.shown = desk.ready = None
            if desk.shown is None:
                self._room.notify_all()
                self._room.wait_for(lambda: self._fresh(desk), PATIENCE)
                self._room.wait_for(lambda: desk.ready is not None or self._stop, _LONGEST)
                if self.broken:
                    raise Refused(self.broken)
                if desk.ready is None:
                    raise Refused("no question is ready yet; try again in a moment")
                desk.shown, desk.ready = desk.ready, None
                self._room.notify_all()
            turn, answers = desk.shown, self._answers
        return self._card(turn, answers)

    def answer(
        self, *, reviewer: str, request: str, row: int, kind: str, label: str | None, seen: bool
    ) -> StoredAnswer:
        """Store an answer to the question before `reviewer`; when this returns it is on the disk."""
        if kind not in KINDS:
            raise Refused(f"kind {kind!r} is none of {', '.join(KINDS)}")
        if (kind == "label") != (label is not None) or (label is not None and label not in self.names):
            raise Refused(f"label {label!r} is none of the classes {', '.join(list(self.names)[:12])}")
        with self._room:
            if (before := self.store.find(request)) is not None:  # a message that was repeated
                return before
            desk = self._desk(reviewer)
            if desk.shown is None or desk.shown.row != row:
                raise Refused("this question was answered in another window; here is the next one")
            said = self.store.add(request=request, row=row, kind=kind, label=label, reviewer=reviewer, seen=seen)
            worked_out = desk.ahead_of == (self._change, row) and kind != "skip"
            desk.shown = None
            self._changed()
            if worked_out:
                self._take_ahead(desk, reviewer, desk.ahead.get(label))
        return said

    def undo(self, *, reviewer: str, request: str) -> StoredAnswer:
        """Take the reviewer's last answer back; its row is the question again."""
        with self._room:
            desk = self._desk(reviewer)
            said = self.store.undo(request=request, reviewer=reviewer)
            if said is None:
                raise Refused("there is no answer of yours to take back")
            if desk.shown is not None and desk.shown.row != said.row:
                desk.ready = desk.shown
            desk.shown = Turn(said.row)
            self._changed()
        return said

    def state(self, reviewer: str) -> dict[str, Any]:
        """What is known so far, whether it is up to date, and who said what."""
        with self._room:
            answers, known = self._answers, dict(self.known)
            busy = self._known_at != self._change
            files, broken = dict(self.files), self.broken
        told = spoken(answers)
        counts: dict[str, int] = {}
        for answer in told:
            counts[answer.reviewer] = counts.get(answer.reviewer, 0) + 1
        rows = len({answer.row for answer in told})
        return {
            "answers": len(told),
            "rows": rows,
            "unsure": sum(answer.kind == "unsure" for answer in told),
            "mine": sum(answer.reviewer == reviewer for answer in answers),
            "progress": words.progress(rows, known.get("stop", {}).get("now", False), len(self.rows.labels)),
            "reviewers": [{"name": name, "answers": count} for name, count in sorted(counts.items())],
            "disagreements": self._disagreements(answers),
            "known": known,
            "busy": busy,
            "files": files,
            "commands": words.commands(self.out, self.path, str(self.table.label), self.options),
            "broken": broken,
        }

    def finish(self) -> None:
        """Have the files of the end written; `state` says when they are there."""
        with self._room:
            self.files = {"state": "writing", "files": []}
            self._room.notify_all()

    def _card(self, turn: Turn, answers: Sequence[StoredAnswer]) -> dict[str, Any]:
        if turn.row < 0:
            return {"row": -1, "reason": turn.reason}
        said = latest_answers(spoken(answers))
        card = self.rows.card(turn.row)
        for near in card["nearest"]:
            near["given"] = str(self.rows.labels[near["row"]])
            votes = {answer.label for answer in said.get(near["row"], {}).values() if answer.kind == "label"}
            near["answer"] = votes.pop() if len(votes) == 1 else None
        others: list[dict[str, Any]] = []
        if turn.reason == "disagreement":
            others = [_vote(answer) for answer in said.get(turn.row, {}).values()]
        why = words.reason(turn.reason, turn.others)
        return {
            **card, "given": str(self.rows.labels[turn.row]), "reason": turn.reason, "why": why, "others": others
        }  # fmt: skip

    def _disagreements(self, answers: Sequence[StoredAnswer]) -> list[dict[str, Any]]:
        return [
            {
                "row": row,
                "name": self.rows.name(row),
                "line": self.rows.line(row, 80),
                "answers": [*map(_vote, said.values())],
            }
            for row, said in disagreements(answers).items()
        ]

    # -- desks: what lies before each reviewer; called with the lock held --------------------------------------------

    def _desk(self, reviewer: str) -> Desk:
        desk = self._desks.setdefault(reviewer, Desk())
        desk.seen_at = time.monotonic()
        return desk

    def _changed(self) -> None:
        self._answers = self.store.active()
        self._change += 1
        self._room.notify_all()

    def _take_ahead(self, desk: Desk, reviewer: str, turn: Turn | None) -> None:
        """Lay the question that was worked out for this very answer, unless another one comes first."""
        taken = self._taken(reviewer)
        done = {answer.row for answer in self._answers}
        free = turn is not None and turn.row not in taken and turn.row not in done
        if turn is not None and free and own_turn(self._answers, reviewer, taken) is None:
            desk.ready, desk.ready_after = turn, self._change

    def _fresh(self, desk: Desk) -> bool:
        return (desk.ready is not None and desk.ready_after == self._change) or self._stop

    def _lacks(self, desk: Desk) -> bool:
        return desk.ready is None or (desk.shown is None and desk.ready_after != self._change)

    def _all_read(self, change: int) -> bool:
        """Whether a question lies before everyone, or the answers have changed."""
        return self._stop or change != self._change or all(desk.shown is not None for desk in self._desks.values())

    def _may_look_ahead(self, desk: Desk) -> bool:
        shown = desk.shown
        return shown is not None and shown.row >= 0 and desk.ahead_of != (self._change, shown.row)

    def _has_work(self) -> bool:
        stale = self._known_at != self._change or self.files["state"] == "writing"
        desks = self._desks.values()
        return self._stop or stale or any(self._lacks(desk) or self._may_look_ahead(desk) for desk in desks)

    def _taken(self, but: str) -> set[int]:
        recent = time.monotonic() - _ACTIVE
        desks = [desk for name, desk in self._desks.items() if name != but and desk.seen_at > recent]
        return {turn.row for desk in desks for turn in (desk.shown, desk.ready) if turn is not None}

    # -- the thread behind the page: the only one that touches the review --------------------------------------------

    def _work(self) -> None:
        """Catch up with the answers, lay a question on every desk, say what is known; the quick things first."""
        try:
            while True:
                with self._room:
                    self._room.wait_for(self._has_work)
                    if self._stop:
                        return
                    change, answers = self._change, self._answers
                    waiting = [name for name, desk in self._desks.items() if self._lacks(desk)]
                self._catch_up(answers)
                for name in waiting:
                    self._lay(name, answers, change)
                with self._room:
                    # to tell takes longest: whoever is about to see the next question comes first
                    self._room.wait_for(partial(self._all_read, change), PATIENCE)
                    moved = change != self._change
                    ahead = any(self._may_look_ahead(desk) for desk in self._desks.values())
                if moved:
                    continue  # files hold every answer that was given before they were asked for
                if self.files["state"] == "writing":
                    self._write(answers)
                elif ahead:
                    self._look_ahead(answers, change)
                else:
                    self._tell(change)
        except Exception as error:
            log.exception("the review stopped")
            with self._room:
                self.broken = f"the review stopped: {error}. Answers are saved; start the command again"
                self._stop = True
                self._room.notify_all()

    def _catch_up(self, answers: Sequence[StoredAnswer]) -> None:
        """Bring the review to `answers`: what was undone since is undone, what is new is answered."""
        wanted, same = spoken(answers), 0
        while same < min(len(wanted), len(self._applied)) and wanted[same].id == self._applied[same].id:
            same += 1
        for _ in self._applied[same:]:
            self.review.undo()
        for answer in wanted[same:]:
            label = None if answer.label is None else self.names[answer.label]
            self.review.answer([answer.row], [label], reviewer=answer.reviewer)
        self._applied = wanted

    def _next_turn(self, closed: Collection[int]) -> Turn | None:
        """The row whose answer would settle most, outside of `closed`, and why; None where none is left."""
        answered = {answer.row for answer in self._applied}
        for row, drawn in self.review.questions(len(set(closed) - answered) + 1):
            if row not in closed:
                return Turn(row, "drawn") if drawn else Turn(row, "question", self.review.related(row))
        return None

    def _choose(
        self, reviewer: str, answers: Sequence[StoredAnswer], taken: Collection[int], shown: Turn | None
    ) -> Turn | None:
        used = {*taken, *([shown.row] if shown is not None else [])}
        if (turn := own_turn(answers, reviewer, used)) is not None:
            return turn
        if (turn := self._next_turn(used | {answer.row for answer in answers})) is not None:
            return turn
        again = [answer.row for answer in answers if answer.kind == "skip" and answer.reviewer == reviewer]
        told = latest_answers(spoken(answers))
        left = [row for row in again if row not in told and row not in used]
        return Turn(left[0], "skipped") if left else None

    def _lay(self, name: str, answers: Sequence[StoredAnswer], change: int) -> None:
        with self._room:
            desk = self._desks[name]
            taken, shown = self._taken(name), desk.shown
        turn = self._choose(name, answers, taken, shown)
        with self._room:
            done = {answer.row for answer in self._answers[len(answers) :]}
            if desk.shown is shown and (turn is None or turn.row not in done):
                desk.ready = turn if turn is not None else Turn(-1, "nothing left")
                desk.ready_after = change
            self._room.notify_all()

    def _look_ahead(self, answers: Sequence[StoredAnswer], change: int) -> None:
        """While a reviewer reads a question, work out the next one for each answer to it."""
        with self._room:
            name, desk = next(((n, d) for n, d in self._desks.items() if self._may_look_ahead(d)), (None, None))
            if name is None or desk is None or desk.shown is None:
                return
            shown, closed = desk.shown.row, self._taken(name) | {answer.row for answer in answers}
        ahead: dict[str | None, Turn | None] = {}
        for label in [*list(self.names)[:MOST_AHEAD], None]:
            if self._hurry(change):
                return
            self.review.answer([shown], [None if label is None else self.names[label]], reviewer=name)
            try:
                ahead[label] = self._next_turn({*closed, shown})
            finally:
                self.review.undo()
        with self._room:
            if self._change == change and desk.shown is not None and desk.shown.row == shown:
                desk.ahead, desk.ahead_of = ahead, (change, shown)

    def _hurry(self, change: int) -> bool:
        """Whether somebody waits for a question, or the answers have changed."""
        with self._room:
            lacking = any(self._lacks(desk) for desk in self._desks.values())
            return self._stop or change != self._change or lacking or self.files["state"] == "writing"

    def _tell(self, change: int) -> None:
        """Say what is known, part by part; where that fails, questions and answers go on."""
        trouble = None
        try:
            for part in describe(self.review, self.rows, self.table.groups, lambda: self._hurry(change)):
                with self._room:
                    self.known = {**self.known, **part}
                if self._hurry(change):
                    return  # the rest is told afterwards
            if self._hurry(change):
                return
        except Exception as error:
            log.exception("cannot say what is known")
            trouble = f"What is known cannot be told just now ({error}). Answers are saved."
        with self._room:
            self.known = {**self.known, "trouble": trouble}
            self._known_at = change
            self._room.notify_all()

    def _write(self, answers: Sequence[StoredAnswer]) -> None:
        try:
            files = {"state": "written", "files": self._write_files(answers), "answers": len(spoken(answers))}
        except Exception as error:
            log.exception("cannot write the files")
            files = {"state": "failed", "files": [], "error": str(error)}
        with self._room:
            self.files = files

    def _write_files(self, answers: Sequence[StoredAnswer]) -> list[dict[str, str]]:
        outputs = Outputs(self.out, self.path, self.table, self.encoder, self.rows)
        return outputs.write(self.review, answers)


def _vote(answer: StoredAnswer) -> dict[str, Any]:
    said = answer.label if answer.kind == "label" else "not sure"
    return {"reviewer": answer.reviewer, "label": said, "time": answer.time}
