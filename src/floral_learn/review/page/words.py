"""Numbers of a review as sentences that a reviewer understands."""

from __future__ import annotations

from typing import Any

_NARROW = "\u00a0"  # a number and its % sign stay on one line
_FIRST = 20  # answers before which nobody is advised to stop
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
    """The model's estimate."""
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


def region(part: Any) -> str:
    """A part of the data with many wrong labels."""
    return f"{part.name}: about {percent(part.share)} wrong ({part.rows:,} rows)"


def ten_more(misread: float, gain: float, n: int) -> str:
    """What ten more answers would bring."""
    if round(gain) < 1:
        return "Ten more answers would probably change no further label."
    return (
        f"About {count(misread)} of {n:,} are probably still misread. "
        f"Ten more answers would set about {round(gain):,} of them right."
    )


def stop(enough: bool, answered: int, gain: float, n: int) -> dict[str, Any]:
    """Whether to go on; what ten more answers would bring stands beside it."""
    if answered < _FIRST:
        return {"now": False, "words": f"Go on: a first picture takes about {_FIRST} answers."}
    if enough:
        return {"now": True, "words": "You can stop here: hardly any label is in doubt."}
    if gain < max(1.0, _LITTLE * n):
        return {"now": True, "words": "A good moment to stop: more answers would change little."}
    return {"now": False, "words": "Worth going on."}


def accuracy(before: float, after: float, checked: tuple[int, int, int]) -> str:
    """How much accuracy was bought back."""
    points = 100 * (after - before)
    bought = f"{points:.0f} points bought back" if points >= 1 else "no difference so far"
    text = (
        f"A plain model trained on the labels as given would get about {percent(before)} of rows like these right; "
        f"on the labels as read now {percent(after)}: {bought}, by the model’s estimate."
    )
    rows, first, second = checked
    if rows:
        text += f" On the {rows:,} rows drawn at random: {first:,} right before, {second:,} now."
    return text
