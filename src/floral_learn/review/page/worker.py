"""The thread behind a review: it follows the answers, lays out questions, and says what is known."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from floral_learn.review.page.engine import Engine
from floral_learn.review.page.shown_rows import ShownRows
from floral_learn.review.page.store import Answer, AnswerStore
from floral_learn.review.page.turns import Turn, own_turn, standing

MOST_AHEAD = 4  # classes for which the question after next is worked out while a reviewer reads
_ACTIVE = 600.0  # seconds after which a silent reviewer's questions go to others

log = logging.getLogger(__name__)


@dataclass
class Desk:
    """What lies before one reviewer: the question on the page, and the one after it."""

    shown: Turn | None = None
    ready: Turn | None = None
    ready_after: int = -1  # changes that the ready question knows of
    ahead: dict[str | None, int | None] = field(default_factory=dict)  # by answer to the shown one, the row after it
    ahead_of: tuple[int, int] | None = None  # changes and row for which `ahead` was worked out
    seen_at: float = field(default_factory=time.monotonic)


class Worker:
    """Questions for every desk, and what is known; `ReviewSession` is what reviewers see of it."""

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
