"""Questions to people and their answers on disk: what a review and the judging of judges have in common."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from floral_learn.app.review_page.shown_rows import ShownRows
from floral_learn.app.review_page.store import AnswerStore, StoredAnswer
from floral_learn.app.review_page.turns import Turn, spoken

LAST = 10  # answers that stand beside the question
_ACTIVE = 600.0  # seconds after which a silent reviewer's question goes to others

log = logging.getLogger(__name__)


class Refused(ValueError):
    """A request that does not fit; the message is for the reviewer."""


class Asking:
    """Answers in, questions out, for any number of reviewers at once; every request holds the one lock.

    Parameters
    ----------
    store : AnswerStore
        Where answers are kept.
    rows : ShownRows
        The table as people read it.
    classes : list
        The labels that an answer may give.
    out : path
        The folder of the answers and of the files of the end.
    page : dict, optional
        What the page is told beside the classes: own keys by class ("keys"), "guidelines".
    """

    kinds: tuple[str, ...] = ()  # of answers that are taken
    blind = False  # whether nothing is said of the labels that are there

    def __init__(
        self, store: AnswerStore, rows: ShownRows, classes: list[Any], out: Path, page: dict[str, Any] | None = None
    ) -> None:
        self.store, self.rows, self.out, self.page = store, rows, out, page or {}
        self.names = {str(label): label for label in classes}
        self.files: dict[str, Any] = {"state": "none", "files": []}
        self.broken: str | None = None
        self._lock = threading.RLock()
        self._shown: dict[str, tuple[Turn, float]] = {}  # what lies before each reviewer, and since when
        self._known: tuple[list[int], dict[str, Any]] | None = None  # answers, and what is known by them

    @property
    def answered(self) -> int:
        """Answers that stand."""
        return len(spoken(self.store.active()))

    def about(self) -> dict[str, Any]:
        """What the page must know before the first question."""
        return {"classes": list(self.names), "kinds": self.kinds, "blind": self.blind, **self.page}

    def question(self, reviewer: str) -> dict[str, Any]:
        """The question that lies before `reviewer`, taking up the next one where there is none."""
        with self._lock:
            answers = self._heard()
            turn = self._shown.get(reviewer, (Turn(-1), 0.0))[0]
            if turn.row < 0:  # where nothing was left to ask, others may have changed that
                turn = self._choose(reviewer, answers) or Turn(-1, "nothing left")
            self._shown[reviewer] = turn, time.monotonic()
            if turn.row < 0:
                return {"row": -1, "reason": turn.reason}
            mine = [said for said in answers if said.row == turn.row and said.reviewer == reviewer]
            before = {"kind": mine[-1].kind, "label": mine[-1].label} if mine and turn.reason == "again" else None
            return {**self._card(turn, answers), "reason": turn.reason, "before": before}

    def answer(
        self, *, reviewer: str, request: str, row: int, kind: str, label: str | None, seen: bool
    ) -> StoredAnswer:
        """Store an answer to the question before `reviewer`; when this returns it is on the disk."""
        if kind not in self.kinds:
            raise Refused(f"kind {kind!r} is none of {', '.join(self.kinds)}")
        if (kind == "label") != (label is not None) or (label is not None and label not in self.names):
            raise Refused(f"label {label!r} is none of the classes {', '.join(list(self.names)[:12])}")
        with self._lock:
            if (before := self.store.find(request)) is not None:  # a message that was repeated
                return before
            turn = self._shown.get(reviewer, (Turn(-1), 0.0))[0]
            if turn.row < 0 or turn.row != row:
                raise Refused("this question was answered in another window; here is the next one")
            said = self.store.add(request=request, row=row, kind=kind, label=label, reviewer=reviewer, seen=seen)
            del self._shown[reviewer]
        return said

    def again(self, *, reviewer: str, row: int) -> Turn:
        """Lay a row before `reviewer` that was answered or set aside before."""
        with self._lock:
            if row not in {said.row for said in self.store.active() if said.reviewer == reviewer}:
                raise Refused("you have not answered this row")
            self._shown[reviewer] = Turn(row, "again"), time.monotonic()
            return Turn(row, "again")

    def undo(self, *, reviewer: str, request: str) -> StoredAnswer:
        """Take the reviewer's last answer back; its row is the question again."""
        with self._lock:
            standing = self.store.active()
            said = self.store.undo(request=request, reviewer=reviewer)
            if said is None:
                raise Refused("there is no answer of yours to take back")
            later = any(other.reviewer == reviewer and other.id > said.id for other in standing)
            if said in standing or not (later or reviewer in self._shown):  # no copy of a message that comes late
                self._shown[reviewer] = Turn(said.row), time.monotonic()
        return said

    def state(self, reviewer: str) -> dict[str, Any]:
        """What is known so far, the reviewer's last answers, and the files of the end."""
        with self._lock:
            try:
                answers = self._heard()
            except Refused:
                answers = self.store.active()
            known, files, told = self._known_by(answers), dict(self.files), spoken(answers)
            mine = {said.row: said for said in answers if said.reviewer == reviewer}
        last = sorted(mine.values(), key=lambda said: -said.id)
        return {
            "answers": len(told),
            "rows": len({said.row for said in told}),
            "unsure": sum(said.kind == "unsure" for said in told),
            "last": [self._said(said) for said in last[:LAST]],
            "later": [self._said(said) for said in last if said.kind == "later"],
            "known": known,
            "files": files,
            "broken": self.broken,
        }

    def _known_by(self, answers: Sequence[StoredAnswer]) -> dict[str, Any]:
        """What is known, worked out once for the same answers."""
        numbers = [said.id for said in answers]
        if self.broken is None and (self._known is None or self._known[0] != numbers):
            self._known = numbers, self._tell(answers)
        return {} if self._known is None else self._known[1]

    def finish(self) -> dict[str, Any]:
        """Write the files of the end; returns their names and what they are."""
        with self._lock:
            try:
                answers = self._heard()
                self.files = {"state": "written", "answers": len(spoken(answers)), **self._write(answers)}
            except Exception as error:
                log.exception("cannot write the files")
                self.files = {"state": "failed", "files": [], "error": str(error)}
            return self.files

    def write_files(self) -> list[dict[str, str]]:
        """Write the files of the end without a page; returns their names and what they are."""
        answers = self.store.active()
        self._catch_up(answers)
        return self._write(answers)["files"]

    def close(self) -> None:
        """Give the file of answers back."""
        with self._lock:
            self.store.close()

    def _heard(self) -> list[StoredAnswer]:
        """All answers, which the review behind the page has heard."""
        answers = self.store.active()
        try:
            if self.broken is None:
                self._catch_up(answers)
        except Exception as error:
            log.exception("the review stopped")
            self.broken = f"the review stopped: {error}. Answers are saved; start the command again"
        if self.broken is not None:
            raise Refused(self.broken)
        return answers

    def _taken(self, but: str) -> set[int]:
        """Rows that lie before other reviewers."""
        recent = time.monotonic() - _ACTIVE
        return {turn.row for name, (turn, at) in self._shown.items() if name != but and at > recent}

    def _said(self, said: StoredAnswer) -> dict[str, Any]:
        return {"row": said.row, "name": self.rows.name(said.row), "kind": said.kind, "label": said.label}

    # -- what a review and a judging do each in their own way, with the lock held ------------------------------------

    def _catch_up(self, answers: Sequence[StoredAnswer]) -> None:
        """Tell these answers to what is behind the page."""
        raise NotImplementedError

    def _choose(self, reviewer: str, answers: Sequence[StoredAnswer]) -> Turn | None:
        """The next row to ask about."""
        raise NotImplementedError

    def _card(self, turn: Turn, answers: Sequence[StoredAnswer]) -> dict[str, Any]:
        """All that the page shows of a question."""
        raise NotImplementedError

    def _tell(self, answers: Sequence[StoredAnswer]) -> dict[str, Any]:
        """What is known."""
        raise NotImplementedError

    def _write(self, answers: Sequence[StoredAnswer]) -> dict[str, Any]:
        """Write the files of the end: "files" (name and what it is), "commands" (what to do next), "words"."""
        raise NotImplementedError
