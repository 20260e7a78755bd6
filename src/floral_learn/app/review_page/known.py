"""What a review knows so far, in numbers and in sentences that a reviewer understands."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import fisher_exact

from floral_learn.app.pages import percent
from floral_learn.review.rules import FIRST_ANSWERS


def describe(review: Any, groups: np.ndarray | None = None) -> dict[str, Any]:
    """What is known, for the page.

    Parameters
    ----------
    review : LabelReview
        The review; it is left as it was.
    groups : ndarray of shape (n,), optional
        Where each label comes from.
    """
    share, sure = review.wrong_share, review.guarantee()
    known = {
        "estimate": {
            "known": share.known,
            "low": float(share.low),
            "high": float(share.high),
            "under": share_below(share),
        },
        "guarantee": {"checked": sure.checked, "words": guarantee(sure)},
        "changed": int((review.labels != review.given).sum()),
        "where": [],
    }
    if not share.known:
        words = f"Go on: an estimate of its own takes about {FIRST_ANSWERS} answers."
        return known | {"ten": None, "stop": {"now": False, "words": words}}
    ten = review.ten_more
    return known | {
        "where": where(review, groups, 1 - sure.confidence),
        "ten": {"labels": ten.labels, "words": ten_more(review.still_wrong, ten, len(review.given))},
        "stop": stop(bool(review.should_stop)),
    }


def where(review: Any, groups: np.ndarray | None, alpha: float) -> list[dict[str, Any]]:
    """The classes and sources with clearly more wrong labels than the whole, most wrong first.

    Only those that answers bear out: they contradict labels there more often than elsewhere (Fisher's exact test,
    one-sided, its error `alpha` shared by all parts). What the model believes of a part without such answers is its
    prior.
    """
    wrong, given = review.wrong_probability, review.given
    parts = [(f"labelled “{name}”", given == name) for name in review.classes.tolist()]
    parts += [(f"from “{name}”", groups == name) for name in ([] if groups is None else np.unique(groups).tolist())]
    answers = {row: label for row, label in review.answers.items() if label is not None}
    rows = np.array(list(answers), dtype=int)
    changed = np.array([given[row] != label for row, label in answers.items()], dtype=bool)
    notable = []
    for name, inside in parts:
        here = inside[rows]
        table = [[int((changed & side).sum()), int((~changed & side).sum())] for side in (here, ~here)]
        share = float(wrong[inside].mean()) if inside.any() else 0.0
        if share > wrong.mean() and fisher_exact(table, alternative="greater").pvalue <= alpha / len(parts):
            notable.append({"name": name, "share": share, "answers": [table[0][0], sum(table[0])]})
    return sorted(notable, key=lambda part: -part["share"])


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
    return f"Its answer tells most about {count(others, 'other row')}." if others > 1 else "Its label is most in doubt."
