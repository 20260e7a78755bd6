"""What a review knows so far, in numbers and in sentences that a reviewer understands."""

from __future__ import annotations

from typing import Any

from floral_learn.app.pages import percent
from floral_learn.review.label_review import FIRST_ANSWERS


def describe(review: Any) -> dict[str, Any]:
    """What `review`, which is left as it was, knows: for the page."""
    share, sure = review.wrong_share, review.guarantee()
    told: dict[str, Any] = {
        "estimate": {"known": share.known, "low": share.low, "high": share.high, "under": share_below(share)},
        "guarantee": {"checked": sure.checked, "words": guarantee(sure)},
        "changed": int((review.labels != review.given).sum()),
    }
    if not share.known:
        words = f"Go on: an estimate of its own takes about {FIRST_ANSWERS} answers."
        return told | {"ten": None, "stop": {"now": False, "words": words}}
    ten, n = review.ten_more, len(review.given)
    return told | {
        "ten": {"labels": ten.labels, "words": ten_more(review.still_wrong, ten, n)},
        "stop": stop(bool(review.should_stop)),
    }


def count(number: float, what: str = "label") -> str:
    """A rounded number of things."""
    whole = round(number)
    return f"{whole:,} {what}{'' if whole == 1 else 's'}"


def estimate(share: Any) -> str:
    """The interval for the share of wrong labels, and the estimate."""
    return f"{percent(share.low)} to {percent(share.high)} of the labels are wrong, {share_below(share)}."


def share_below(share: Any) -> str:
    """The estimate, and what it rests on."""
    words = f"about {percent(share.estimate)} by the model’s estimate"
    return words if share.known else f"{words}, which so far is mostly the audit’s"


def guarantee(sure: Any) -> str:
    """What holds whatever an attacker did."""
    if not sure.checked:
        return "No row drawn at random has been answered yet, so nothing is guaranteed so far."
    rows = count(sure.checked, "row")
    text = (
        f"Whatever an attacker did, you would change between {percent(sure.low)} and {percent(sure.high)} of the "
        f"labels: {percent(sure.confidence)} confidence, from {rows} drawn at random"
    )
    if sure.unsure:
        text += f", {count(sure.unsure, 'unclear one')} counted both ways"
    return text + ("." if sure.valid else ". A seed was given: an attacker who knows it can avoid these rows.")


def ten_more(still_wrong: float, ten: Any, n: int) -> str:
    """What ten more answers would bring."""
    if ten.labels < 1:
        return "Ten more answers would probably set less than one further label right."
    return (
        f"About {count(still_wrong)} of {n:,} are probably still wrong. Ten more answers would set about "
        f"{round(ten.labels):,} of them right ({round(ten.low):,} to {round(ten.high):,})."
    )


def stop(enough: bool) -> dict[str, Any]:
    """Whether to go on, by the review's own rule; what ten more answers would bring stands beside it."""
    words = "You can stop here: ten more answers are expected to set less than one label right."
    return {"now": enough, "words": words if enough else "Worth going on."}


def reason(why: str, others: int) -> str:
    """Why a row is asked about, in one line."""
    told = {
        "drawn": "Drawn at random, for the guarantee.",
        "second opinion": "Second opinion: somebody else has answered this one.",
        "skipped": "You skipped this one before.",
        "again": "You have been here before; a new answer takes the place of the one you gave.",
        "disagreement": "You do not agree on this one. Please look again.",
    }
    if why in told:
        return told[why]
    if others > 1:
        return f"Its answer tells most about {count(others, 'other row')}."
    return "Its label is most in doubt."
