"""Numbers of a review as sentences that a reviewer understands."""

from __future__ import annotations

from typing import Any

from floral_learn.review.wrong_share import FIRST_ANSWERS, FIRST_DRAWN

_NARROW = "\u00a0"  # a number and its % sign stay on one line
_LITTLE = 0.002  # share of all labels that ten answers must set right to be worth them


def percent(share: float) -> str:
    """A share for people: whole percents, with one decimal below two."""
    if 0 < share < 0.0005:
        return f"under 0.1{_NARROW}%"
    whole = f"{100 * share:.1f}".removesuffix(".0") if share < 0.02 else f"{100 * share:.0f}"
    return f"{whole}{_NARROW}%"


def count(number: float, what: str = "label") -> str:
    """A rounded number of things."""
    whole = round(number)
    return f"{whole:,} {what}{'' if whole == 1 else 's'}"


def estimate(share: Any) -> str:
    """The model's estimate, or that there is none yet."""
    if not share.known:
        return (
            f"How many labels are wrong is not known yet: that takes {FIRST_ANSWERS} answers, {FIRST_DRAWN} of them to "
            f"rows drawn at random. The answers so far allow {percent(share.low)} to {percent(share.high)}."
        )
    return (
        f"About {percent(share.estimate)} of the labels are wrong, by the model’s estimate "
        f"({percent(share.low)} to {percent(share.high)})."
    )


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
    if not getattr(sure, "valid", True):
        return text + ". A seed was given: an attacker who knows it can avoid these rows."
    return text + "."


def region(part: Any, told: tuple[int, int]) -> str:
    """A part of the data with many wrong labels, and the answers that say so."""
    return f"{part.name}: {told[0]} of {count(told[1], 'answer')} changed the label, about {percent(part.share)} wrong"


def ten_more(misread: float, gain: float, n: int) -> str:
    """What ten more answers would bring."""
    if round(gain) < 1:
        return "Ten more answers would probably change no further label."
    return (
        f"About {count(misread)} of {n:,} are probably still misread. "
        f"Ten more answers would set about {round(gain):,} of them right."
    )


def too_early() -> dict[str, Any]:
    """What is said about stopping before anything is known."""
    return {"now": False, "words": f"Go on: a first picture takes about {FIRST_ANSWERS} answers."}


def stop(enough: bool, gain: float, n: int) -> dict[str, Any]:
    """Whether to go on; what ten more answers would bring stands beside it."""
    if enough:
        return {"now": True, "words": "You can stop here: hardly any label is in doubt."}
    if gain < max(1.0, _LITTLE * n):
        return {"now": True, "words": "A good moment to stop: more answers would change little."}
    return {"now": False, "words": "Worth going on."}


def accuracy(drawn: int, before: int, after: int) -> str:
    """How many of the rows drawn at random a plain model gets right, which did not see them."""
    rows = count(drawn, "row")
    return (
        f"Of the {rows} drawn at random, a plain model that did not see them gets {before:,} right when it is trained "
        f"on the labels in the file, and {after:,} on the labels as corrected so far."
    )
