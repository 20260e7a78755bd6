"""Who looks at which row, and answers on disk: what a review and the judging of judges have in common."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from floral_learn.app.review_page.shown_rows import ShownRows
from floral_learn.app.review_page.store import SILENT, Answers, AnswerStore, StoredAnswer
from floral_learn.review.answers import latest_answers

# answers that stand beside the question, after which a skipped row, or a second opinion, is due
ROUND = 10

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Turn:
    """A row to ask about, and why: "disagreement", "second opinion", "skipped", "drawn", "again" or "question".

    `others` is the number of rows about which a question's answer tells, too; `along` holds rows that are nearly the
    same, for which the answer counts.
    """

    row: int
    reason: str = "question"
    others: int = 0
    along: tuple[int, ...] = ()


def spoken(answers: Answers) -> list[StoredAnswer]:
    """Without rows that were skipped or set aside, about which nothing was said."""
    return [answer for answer in answers if answer.kind not in SILENT]


def disagreements(answers: Answers) -> dict[int, dict[str, StoredAnswer]]:
    """Rows on which two reviewers name different labels, with the latest answer of each."""
    return {
        row: said
        for row, said in latest_answers(spoken(answers)).items()
        if len({answer.label for answer in said.values() if answer.kind == "label"}) > 1
    }


def own_turn(answers: Answers, reviewer: str, taken: Collection[int] = ()) -> Turn | None:
    """The row that `reviewer` should see before the next new question; None where the next new question is due.

    Examples
    --------
    >>> ann = StoredAnswer(1, 7, "label", "yes", "ann", "")
    >>> bob = StoredAnswer(2, 7, "label", "no", "bob", "")
    >>> own_turn([ann, bob], "ann")
    Turn(row=7, reason='disagreement', others=0, along=())
    >>> own_turn([ann, bob], "bob") is None
    True
    """
    mine = [answer for answer in answers if answer.reviewer == reviewer]
    skipped = {answer.row: place for place, answer in enumerate(mine) if answer.kind == "skip"}
    # whatever was skipped, for whatever reason it was asked, stays away for a round
    away = {row for row, place in skipped.items() if len(mine) - place <= ROUND}
    away |= set(taken)
    looked = [answer.row for answer in spoken(mine)]
    for row, said in disagreements(answers).items():
        if reviewer not in said or row in away or looked.count(row) > 1:  # asked again once
            continue
        own = said[reviewer]
        since = {other.label for other in said.values() if other.id > own.id}
        if since - {own.label, None}:
            return Turn(row, "disagreement")
    latest = latest_answers(spoken(answers))
    if (turn := _second_opinion(latest, mine, reviewer, away)) is not None:
        return turn
    closed = away | {row for answer in spoken(answers) for row in answer.rows}
    return next((Turn(row, "skipped") for row in skipped if row not in closed), None)


def _second_opinion(
    latest: dict[int, dict[str, StoredAnswer]], mine: Answers, reviewer: str, away: Collection[int]
) -> Turn | None:
    told = spoken(mine)
    open_rows = []
    for row, said in latest.items():
        labels = {answer.label for answer in said.values()}
        if reviewer not in said and row not in away and labels != {None}:
            open_rows.append((len(said), min(answer.id for answer in said.values()), row))
    looked = {answer.row for answer in told}
    first = [min(latest[row].values(), key=lambda answer: answer.id) for row in looked]
    seconds = sum(answer.reviewer != reviewer for answer in first)
    due = (len(told) + 1) // ROUND
    return Turn(min(open_rows)[2], "second opinion") if open_rows and seconds < due else None


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
        self._shown: dict[str, Turn] = {}  # what lies before each reviewer
        # answers, and what is known by them
        self._known: tuple[list[int], dict[str, Any]] | None = None

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
            if reviewer not in self._shown:
                # what lies before others is left to them, unless nothing else is left
                taken = {row for turn in self._shown.values() for row in (turn.row, *turn.along)}
                turn = self._choose(reviewer, answers, taken) or self._choose(reviewer, answers, ())
                if turn is None:
                    return {"row": -1, "reason": "nothing left"}
                self._shown[reviewer] = turn
            turn = self._shown[reviewer]
            mine = [said for said in answers if said.row == turn.row and said.reviewer == reviewer]
            told = {"reason": turn.reason, "along": turn.along, "before": None}
            card = self._card(turn, answers) | told
            if mine and turn.reason == "again":
                card["before"] = {"kind": mine[-1].kind, "label": mine[-1].label}
            return card

    def answer(
        self, *, reviewer: str, request: str, row: int, kind: str, label: str | None, seen: bool, alone: bool = False
    ) -> StoredAnswer:
        """Store an answer to the question before `reviewer`; when this returns it is on the disk.

        It counts for the rows that are nearly the same, too, unless it is to stand `alone`.
        """
        if kind not in self.kinds:
            raise Refused(f"kind {kind!r} is none of {', '.join(self.kinds)}")
        if label not in (self.names if kind == "label" else (None,)):
            known = ", ".join(list(self.names)[:12])
            raise Refused(f"label {label!r} is none of the classes {known}")
        with self._lock:
            if (before := self.store.find(request)) is not None:  # a message that was repeated
                if (before.row, before.reviewer) != (row, reviewer):
                    raise Refused("this request's number was used for another answer")
                return before
            turn = self._shown.get(reviewer)
            if turn is None or turn.row != row:
                raise Refused("this question was answered in another window; here is the next one")
            along = () if alone or kind in SILENT else turn.along
            said = self.store.add(
                request=request, row=row, kind=kind, label=label, reviewer=reviewer, seen=seen, along=along
            )
            del self._shown[reviewer]
        return said

    def again(self, *, reviewer: str, row: int) -> Turn:
        """Lay a row before `reviewer` that was answered or set aside before."""
        with self._lock:
            # rows that were looked at since keep the answer of their own
            mine = [said for said in self.store.active() if said.reviewer == reviewer]
            along = [said.along for said in mine if said.row == row]
            if not along:
                raise Refused("you have not answered this row")
            looked = {said.row for said in mine}
            unseen = tuple(one for one in along[-1] if one not in looked)
            self._shown[reviewer] = Turn(row, "again", along=unseen)
            return self._shown[reviewer]

    def undo(self, *, reviewer: str, request: str) -> StoredAnswer:
        """Take the reviewer's last answer back; its row is the question again."""
        with self._lock:
            standing = self.store.active()
            said = self.store.undo(request=request, reviewer=reviewer)
            if said is None:
                raise Refused("there is no answer of yours to take back")
            # what came after is still there: the question before the reviewer stays
            later = any(other.reviewer == reviewer and other.id > said.id for other in standing)
            # no copy of a message that comes late
            if said in standing or not (later or reviewer in self._shown):
                self._shown[reviewer] = Turn(said.row, along=said.along)
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
            "along": len({row for said in told for row in said.along}),
            "unsure": sum(said.kind == "unsure" for said in told),
            "last": [self._said(said) for said in last[:ROUND]],
            "later": [self._said(said) for said in last if said.kind == "later"],
            "known": known,
            "files": files,
            "broken": self.broken,
        }

    def _known_by(self, answers: Answers) -> dict[str, Any]:
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
                count = len(spoken(answers))
                self.files = {"state": "written", "answers": count, **self._write(answers)}
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

    def _said(self, said: StoredAnswer) -> dict[str, Any]:
        return {
            "row": said.row,
            "name": self.rows.name(said.row),
            "kind": said.kind,
            "label": said.label,
            "along": len(said.along),
        }

    # -- what a review and a judging do each in their own way, with the lock held ------------------------------------

    def _catch_up(self, answers: Answers) -> None:
        """Tell these answers to what is behind the page."""
        raise NotImplementedError

    def _choose(self, reviewer: str, answers: Answers, taken: Collection[int]) -> Turn | None:
        """The next row to ask about, none of `taken`."""
        raise NotImplementedError

    def _card(self, turn: Turn, answers: Answers) -> dict[str, Any]:
        """All that the page shows of a question."""
        raise NotImplementedError

    def _tell(self, answers: Answers) -> dict[str, Any]:
        """What is known."""
        raise NotImplementedError

    def _write(self, answers: Answers) -> dict[str, Any]:
        """Write the files of the end: "files" (name and what it is), "commands" (what to do next), "words"."""
        raise NotImplementedError
