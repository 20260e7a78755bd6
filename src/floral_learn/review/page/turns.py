"""Whose turn it is to look at which row: disagreements again, second opinions, and rows that were skipped before."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from floral_learn.review.page.store import Answer

SECOND_OPINION_EVERY = 8  # of a reviewer's questions, where there are two or more reviewers
SKIPPED_COMES_BACK = 10  # questions after which a skipped row is asked again
LOOKS = 2  # times that a reviewer is asked about one row


@dataclass(frozen=True)
class Turn:
    """A row to ask about, and why: "disagreement", "second opinion", "skipped" or "question"."""

    row: int
    reason: str = "question"


def standing(answers: Sequence[Answer]) -> dict[int, dict[str, Answer]]:
    """The latest answer of every reviewer on every row; skips say nothing."""
    found: dict[int, dict[str, Answer]] = {}
    for answer in answers:
        if answer.kind != "skip":
            found.setdefault(answer.row, {})[answer.reviewer] = answer
    return found


def disagreements(answers: Sequence[Answer]) -> dict[int, dict[str, Answer]]:
    """Rows on which two reviewers name different labels, with the latest answer of each."""
    return {
        row: said
        for row, said in standing(answers).items()
        if len({answer.label for answer in said.values() if answer.kind == "label"}) > 1
    }


def own_turn(answers: Sequence[Answer], reviewer: str, taken: Collection[int] = ()) -> Turn | None:
    """The row that `reviewer` should see before the next new question; None where the next new question is due.

    Examples
    --------
    >>> ann = Answer(1, 7, "label", "yes", "ann", "")
    >>> bob = Answer(2, 7, "label", "no", "bob", "")
    >>> own_turn([ann, bob], "ann")
    Turn(row=7, reason='disagreement')
    >>> own_turn([ann, bob], "bob") is None
    True
    """
    mine = [answer for answer in answers if answer.reviewer == reviewer]
    looks: dict[int, int] = {}
    for answer in mine:
        looks[answer.row] = looks.get(answer.row, 0) + (answer.kind != "skip")
    for row, said in disagreements(answers).items():
        if reviewer not in said or row in taken or looks[row] >= LOOKS:
            continue
        own = said[reviewer]
        if any(other.id > own.id and other.label not in (own.label, None) for other in said.values()):
            return Turn(row, "disagreement")
    latest = standing(answers)
    if (turn := _second_opinion(latest, mine, reviewer, taken)) is not None:
        return turn
    skipped = {answer.row: place for place, answer in enumerate(mine) if answer.kind == "skip"}
    for row, place in skipped.items():
        settled = row in latest or row in taken
        if not settled and len(mine) - place > SKIPPED_COMES_BACK:
            return Turn(row, "skipped")
    return None


def _second_opinion(
    latest: dict[int, dict[str, Answer]], mine: Sequence[Answer], reviewer: str, taken: Collection[int]
) -> Turn | None:
    told = [answer for answer in mine if answer.kind != "skip"]
    open_rows = [
        (len(said), min(answer.id for answer in said.values()), row)
        for row, said in latest.items()
        if reviewer not in said and row not in taken and any(answer.kind == "label" for answer in said.values())
    ]
    seconds = sum(min(latest[row].values(), key=lambda a: a.id).reviewer != reviewer for row in {a.row for a in told})
    due = (len(told) + 1) // SECOND_OPINION_EVERY
    return Turn(min(open_rows)[2], "second opinion") if open_rows and seconds < due else None
