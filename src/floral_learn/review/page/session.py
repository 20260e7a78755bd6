"""One review in progress: answers go to disk at once, and the next question is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from floral_learn.review.page.store import KINDS, Answer
from floral_learn.review.page.turns import Turn, disagreements, standing
from floral_learn.review.page.worker import Worker

PATIENCE = 0.15  # seconds to wait for a question that knows the last answer, before one that does not is shown
_LONGEST = 60.0  # seconds to wait where there is no question at all


class Refused(ValueError):
    """A request that does not fit; the message is for the reviewer."""


class ReviewSession(Worker):
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

    # Each of these is called from a request's thread; the worker has its own.

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


def _vote(answer: Answer) -> dict[str, Any]:
    said = answer.label if answer.kind == "label" else "not sure"
    return {"reviewer": answer.reviewer, "label": said, "time": answer.time}
