"""Whose turn it is to look at which row: disagreements again, second opinions, and rows that were skipped before."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from floral_learn.app.review_page.store import StoredAnswer
from floral_learn.review.answers import latest_answers

SECOND_OPINION_EVERY = 8  # of a reviewer's questions, where there are two or more reviewers
SKIPPED_COMES_BACK = 10  # questions after which a skipped row is asked again
LOOKS = 2  # times that a reviewer is asked about one row


@dataclass(frozen=True)
class Turn:
    """A row to ask about, and why: "disagreement", "second opinion", "skipped", "drawn", "again" or "question".

    `others` is the number of rows about which a question's answer tells, too.
    """

    row: int
    reason: str = "question"
    others: int = 0


def spoken(answers: Sequence[StoredAnswer]) -> list[StoredAnswer]:
    """Without rows that were skipped or set aside, about which nothing was said."""
    return [answer for answer in answers if answer.kind not in ("skip", "later")]


def disagreements(answers: Sequence[StoredAnswer]) -> dict[int, dict[str, StoredAnswer]]:
    """Rows on which two reviewers name different labels, with the latest answer of each."""
    return {
        row: said
        for row, said in latest_answers(spoken(answers)).items()
        if len({answer.label for answer in said.values() if answer.kind == "label"}) > 1
    }


def own_turn(answers: Sequence[StoredAnswer], reviewer: str, taken: Collection[int] = ()) -> Turn | None:
    """The row that `reviewer` should see before the next new question; None where the next new question is due.

    Examples
    --------
    >>> ann = StoredAnswer(1, 7, "label", "yes", "ann", "")
    >>> bob = StoredAnswer(2, 7, "label", "no", "bob", "")
    >>> own_turn([ann, bob], "ann")
    Turn(row=7, reason='disagreement', others=0)
    >>> own_turn([ann, bob], "bob") is None
    True
    """
    mine = [answer for answer in answers if answer.reviewer == reviewer]
    skipped = {answer.row: place for place, answer in enumerate(mine) if answer.kind == "skip"}
    # whatever was skipped, for whatever reason it was asked, stays away for ten questions
    away = {row for row, place in skipped.items() if len(mine) - place <= SKIPPED_COMES_BACK} | set(taken)
    looks: dict[int, int] = {}
    for answer in spoken(mine):
        looks[answer.row] = looks.get(answer.row, 0) + 1
    for row, said in disagreements(answers).items():
        if reviewer not in said or row in away or looks[row] >= LOOKS:
            continue
        own = said[reviewer]
        if any(other.id > own.id and other.label not in (own.label, None) for other in said.values()):
            return Turn(row, "disagreement")
    latest = latest_answers(spoken(answers))
    if (turn := _second_opinion(latest, mine, reviewer, away)) is not None:
        return turn
    return next((Turn(row, "skipped") for row in skipped if row not in latest and row not in away), None)


def _second_opinion(
    latest: dict[int, dict[str, StoredAnswer]], mine: Sequence[StoredAnswer], reviewer: str, away: Collection[int]
) -> Turn | None:
    told = spoken(mine)
    open_rows = [
        (len(said), min(answer.id for answer in said.values()), row)
        for row, said in latest.items()
        if reviewer not in said and row not in away and any(answer.kind == "label" for answer in said.values())
    ]
    seconds = sum(min(latest[row].values(), key=lambda a: a.id).reviewer != reviewer for row in {a.row for a in told})
    due = (len(told) + 1) // SECOND_OPINION_EVERY
    return Turn(min(open_rows)[2], "second opinion") if open_rows and seconds < due else None
