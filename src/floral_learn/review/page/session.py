"""One review in progress: answers go to disk at once, a worker thread keeps the next question ready."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from floral_learn.review.page.engine import Engine
from floral_learn.review.page.shown_rows import ShownRows
from floral_learn.review.page.store import KINDS, Answer, AnswerStore
from floral_learn.review.page.turns import Turn, disagreements, own_turn, standing

PATIENCE = 0.15  # seconds to wait for a question that knows the last answer, before one that does not is shown
MOST_AHEAD = 4  # classes for which the question after next is worked out while a reviewer reads
_LONGEST = 60.0  # seconds to wait where there is no question at all
_ACTIVE = 600.0  # seconds after which a silent reviewer's questions go to others

log = logging.getLogger(__name__)


class Refused(ValueError):
    """A request that does not fit; the message is for the reviewer."""


@dataclass
class Desk:
    """What lies before one reviewer: the question on the page, and the one after it."""

    shown: Turn | None = None
    ready: Turn | None = None
    ready_after: int = -1  # changes that the ready question knows of
    ahead: dict[str | None, int | None] = field(default_factory=dict)  # by answer to the shown one, the row after it
    ahead_of: tuple[int, int] | None = None  # changes and row for which `ahead` was worked out
    seen_at: float = field(default_factory=time.monotonic)


class ReviewSession:
    """Answers in, questions and knowledge out, for any number of reviewers at once.

    Parameters
    ----------
    rows : ShownRows
        The table as people read it.
    store : AnswerStore
        Where answers live.
    engine : Engine
        The review that chooses questions. Only the worker thread touches it.
    describe : callable(engine, hurry) -> iterator of dict
        What is known so far, in parts: quick ones first, each a dict that is merged into `known`. ``hurry()`` says
        whether somebody waits for a question.
    finish : callable(engine, answers) -> list of dict
        Writes the files of the end and says which.
    """

    def __init__(
        self,
        rows: ShownRows,
        store: AnswerStore,
        engine: Engine,
        *,
        describe: Callable[[Engine, Callable[[], bool]], Any],
        finish: Callable[[Engine, Sequence[Answer]], list[dict[str, str]]],
    ) -> None:
        self.rows, self.store, self.engine = rows, store, engine
        self._describe, self._finish = describe, finish
        self.names = {str(label): label for label in rows.classes.tolist()}
        self.known: dict[str, Any] = {}
        self.files: dict[str, Any] = {"state": "none", "files": []}
        self._answers = store.active()
        self._desks: dict[str, Desk] = {}
        self._change = 0  # counts answers and undos
        self._known_at = -1
        self._stop = False
        self.broken: str | None = None
        self._room = threading.Condition()
        self._worker = threading.Thread(target=self._work, name="review", daemon=True)
        self._worker.start()

    # What reviewers do. Each of these is called from a request's thread.

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
        return self._card(turn, answers, reviewer)

    def answer(self, *, reviewer: str, request: str, row: int, kind: str, label: str | None, seen: bool) -> Answer:
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

    def undo(self, *, reviewer: str, request: str) -> Answer:
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
        told = [answer for answer in answers if answer.kind != "skip"]
        mine = [answer for answer in answers if answer.reviewer == reviewer]
        counts: dict[str, int] = {}
        for answer in told:
            counts[answer.reviewer] = counts.get(answer.reviewer, 0) + 1
        return {
            "answers": len(told),
            "rows": len({answer.row for answer in told}),
            "unsure": sum(answer.kind == "unsure" for answer in told),
            "mine": len(mine),
            "reviewers": [{"name": name, "answers": count} for name, count in sorted(counts.items())],
            "disagreements": self._disagreements(answers),
            "known": known,
            "busy": busy,
            "files": files,
            "broken": broken,
        }

    def finish(self) -> None:
        """Have the files of the end written; `state` says when they are there."""
        with self._room:
            self.files = {"state": "writing", "files": []}
            self._room.notify_all()

    def close(self) -> None:
        """End the worker and give the file back."""
        with self._room:
            self._stop = True
            self._room.notify_all()
        self._worker.join(timeout=10.0)
        self.store.close()

    # Behind the counter.

    def _desk(self, reviewer: str) -> Desk:
        desk = self._desks.setdefault(reviewer, Desk())
        desk.seen_at = time.monotonic()
        return desk

    def _changed(self) -> None:
        self._answers = self.store.active()
        self._change += 1
        self._room.notify_all()

    def _take_ahead(self, desk: Desk, reviewer: str, row: int | None) -> None:
        """Lay the question that was worked out for this very answer, unless another one comes first."""
        taken = self._taken(reviewer)
        done = {answer.row for answer in self._answers}
        free = row is not None and row not in taken and row not in done
        if row is not None and free and own_turn(self._answers, reviewer, taken) is None:
            desk.ready, desk.ready_after = Turn(row), self._change

    def _fresh(self, desk: Desk) -> bool:
        return (desk.ready is not None and desk.ready_after == self._change) or self._stop

    def _card(self, turn: Turn, answers: Sequence[Answer], reviewer: str) -> dict[str, Any]:
        if turn.row < 0:
            return {"row": -1, "reason": turn.reason}
        said = standing(answers)
        card = self.rows.card(turn.row)
        for near in card["nearest"]:
            near["given"] = str(self.rows.labels[near["row"]])
            votes = {answer.label for answer in said.get(near["row"], {}).values() if answer.kind == "label"}
            near["answer"] = votes.pop() if len(votes) == 1 else None
        others: list[dict[str, Any]] = []
        if turn.reason == "disagreement":
            others = [_vote(answer) for answer in said.get(turn.row, {}).values()]
        return {**card, "given": str(self.rows.labels[turn.row]), "reason": turn.reason, "others": others}

    def _disagreements(self, answers: Sequence[Answer]) -> list[dict[str, Any]]:
        return [
            {
                "row": row,
                "name": self.rows.name(row),
                "line": self.rows.line(row, 80),
                "answers": [*map(_vote, said.values())],
            }
            for row, said in disagreements(answers).items()
        ]

    def _taken(self, but: str) -> set[int]:
        recent = time.monotonic() - _ACTIVE
        desks = [desk for name, desk in self._desks.items() if name != but and desk.seen_at > recent]
        return {turn.row for desk in desks for turn in (desk.shown, desk.ready) if turn is not None}

    def _choose(
        self, reviewer: str, answers: Sequence[Answer], taken: Collection[int], shown: Turn | None
    ) -> Turn | None:
        used = {*taken, *([shown.row] if shown is not None else [])}
        if (turn := own_turn(answers, reviewer, used)) is not None:
            return turn
        closed = used | {answer.row for answer in answers}
        row = self.engine.next_row(closed)
        if row is not None:
            return Turn(row)
        again = [answer.row for answer in answers if answer.kind == "skip" and answer.reviewer == reviewer]
        told = standing(answers)
        left = [row for row in again if row not in told and row not in used]
        return Turn(left[0], "skipped") if left else None

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
                self.engine.catch_up(answers, self.names)
                for name in waiting:
                    self._lay(name, answers, change)
                if self.files["state"] == "writing":
                    self._write(answers)
                elif self._known_at != change:
                    self._tell(change)
                else:
                    self._look_ahead(answers, change)
        except Exception as error:
            log.exception("the review stopped")
            with self._room:
                self.broken = f"the review stopped: {error}. Answers are saved; start the command again"
                self._stop = True
                self._room.notify_all()

    def _lacks(self, desk: Desk) -> bool:
        return desk.ready is None or (desk.shown is None and desk.ready_after != self._change)

    def _has_work(self) -> bool:
        stale = self._known_at != self._change or self.files["state"] == "writing"
        desks = self._desks.values()
        return self._stop or stale or any(self._lacks(desk) or self._may_look_ahead(desk) for desk in desks)

    def _may_look_ahead(self, desk: Desk) -> bool:
        shown = desk.shown
        return shown is not None and shown.row >= 0 and desk.ahead_of != (self._change, shown.row)

    def _lay(self, name: str, answers: Sequence[Answer], change: int) -> None:
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

    def _look_ahead(self, answers: Sequence[Answer], change: int) -> None:
        """While a reviewer reads a question, work out the next one for each answer to it."""
        with self._room:
            name, desk = next(((n, d) for n, d in self._desks.items() if self._may_look_ahead(d)), (None, None))
            if name is None or desk is None or desk.shown is None:
                return
            shown, closed = desk.shown.row, self._taken(name) | {answer.row for answer in answers}
        ahead: dict[str | None, int | None] = {}
        for label in [*list(self.names)[:MOST_AHEAD], None]:
            if self._hurry(change):
                return
            value = None if label is None else self.names[label]
            ahead[label] = self.engine.row_after(shown, value, name, {*closed, shown})
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

        def hurry() -> bool:
            return self._hurry(change)

        trouble = None
        try:
            for part in self._describe(self.engine, hurry):
                with self._room:
                    self.known = {**self.known, **part}
                if hurry():
                    return  # the rest is told afterwards
            if hurry():
                return
        except Exception as error:
            log.exception("cannot say what is known")
            trouble = f"What is known cannot be told just now ({error}). Answers are saved."
        with self._room:
            self.known = {**self.known, "trouble": trouble}
            self._known_at = change
            self._room.notify_all()

    def _write(self, answers: Sequence[Answer]) -> None:
        try:
            told = sum(answer.kind != "skip" for answer in answers)
            files = {"state": "written", "files": self._finish(self.engine, answers), "answers": told}
        except Exception as error:
            log.exception("cannot write the files")
            files = {"state": "failed", "files": [], "error": str(error)}
        with self._room:
            self.files = files


def _vote(answer: Answer) -> dict[str, Any]:
    said = answer.label if answer.kind == "label" else "not sure"
    return {"reviewer": answer.reviewer, "label": said, "time": answer.time}
