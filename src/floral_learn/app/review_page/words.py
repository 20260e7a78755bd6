"""Numbers of a review as sentences that a reviewer understands."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from floral_learn.app.tables.source import table_suffix
from floral_learn.review.label_review import FIRST_ANSWERS

_NARROW = "\u00a0"  # a number and its % sign stay on one line
TEN = 10  # answers ahead, of which the page says what they would bring


def percent(share: float) -> str:
    """A share for people: whole percents, with one decimal below two."""
    if 0 < share < 0.0005:
        return f"under 0.1{_NARROW}%"
    digits = 10 if share < 0.02 else 1
    # halves go up, as in the browser: a number reads the same in a sentence and in a picture
    return f"{math.floor(100 * share * digits + 0.5) / digits:g}{_NARROW}%"


def count(number: float, what: str = "label") -> str:
    """A rounded number of things."""
    whole = round(number)
    return f"{whole:,} {what}{'' if whole == 1 else 's'}"


def estimate(share: Any) -> str:
    """The interval for the share of wrong labels, and the estimate."""
    interval = f"{percent(share.low)} to {percent(share.high)} of the labels are wrong"
    return f"{interval}, {share_below(share)}."


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
    if not getattr(sure, "valid", True):
        return text + ". A seed was given: an attacker who knows it can avoid these rows."
    return text + "."


def region(part: Any, told: tuple[int, int]) -> str:
    """A part of the data with many wrong labels, and the answers that say so."""
    return f"{part.name}: {told[0]} of {count(told[1], 'answer')} changed the label, about {percent(part.share)} wrong"


def ten_more(still_wrong: float, ten: Any, n: int) -> str:
    """What ten more answers would bring."""
    if ten.labels < 1:
        return "Ten more answers would probably set less than one further label right."
    return (
        f"About {count(still_wrong)} of {n:,} are probably still wrong. Ten more answers would set about "
        f"{round(ten.labels):,} of them right ({round(ten.low):,} to {round(ten.high):,})."
    )


def too_early() -> dict[str, Any]:
    """What is said about stopping before anything is known."""
    return {"now": False, "words": f"Go on: an estimate of its own takes about {FIRST_ANSWERS} answers."}


def stop(enough: bool) -> dict[str, Any]:
    """Whether to go on, by the review's own rule; what ten more answers would bring stands beside it."""
    if enough:
        return {
            "now": True,
            "words": "You can stop here: ten more answers are expected to set less than one label right.",
        }
    return {"now": False, "words": "Worth going on."}


def progress(answered: int, stop_now: bool, n: int) -> dict[str, int]:
    """How far the review is: answered rows of about so many."""
    about = answered if stop_now else max(FIRST_ANSWERS, TEN * (answered // TEN)) + TEN
    return {"answered": answered, "about": min(n, about)}


def reason(why: str, others: int) -> str:
    """Why a row is asked about, in one line."""
    if why == "drawn":
        return "Drawn at random, for the guarantee."
    if why == "second opinion":
        return "Second opinion: somebody else has answered this one."
    if why == "skipped":
        return "You skipped this one before."
    if why == "again":
        return "You have been here before; a new answer takes the place of the one you gave."
    if why == "disagreement":
        return "You do not agree on this one. Please look again."
    return (
        f"Its answer tells most about {count(others, 'other row')}." if others >= 2 else "Its label is most in doubt."
    )


def option_words(options: Mapping[str, Any]) -> list[str]:
    """The options of the command that read the table, as they are typed; those left at their defaults are not."""
    named = {"ids": "--id", "groups": "--group", "skip_blank_labels": "--skip-blank"}
    words = []
    for name, value in options.items():
        option = named.get(name, f"--{name.replace('_', '-')}")
        if isinstance(value, bool):
            words += [option] * value
        elif isinstance(value, list | tuple):
            words += [word for one in value for word in (option, str(one))]
        elif value is not None and value != "auto":
            words += [option, str(value)]
    return words


def commands(out: Path, table: Path, label: str, options: Mapping[str, Any]) -> list[dict[str, str]]:
    """What to do with the files of the end, as commands to copy."""
    read = option_words(options)
    cleaned = out / f"cleaned{table_suffix(table)}"
    return [
        {"about": about, "command": shlex.join(["floral", *parts])}
        for about, parts in (
            (
                "Label new rows with the model",
                ("predict", str(out / "model.skops"), "new.csv", "--out", "predictions.csv"),
            ),
            (
                "Train another model on the cleaned table",
                ("train", str(cleaned), "--label", label, *read, "--out", "other.skops"),
            ),
            ("Go on with this review later", ("review", str(table), "--label", label, *read, "--out", str(out))),
        )
    ]


def gained(review: Any) -> str:
    """How many of the rows drawn at random a plain model gets right, which did not see them; "" if none was."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    if not review.guarantee().checked:
        return ""
    model: Any = SVC()
    if len(review.labels) > 3000:  # where an SVC would take too long
        model = make_pipeline(StandardScaler(with_mean=False), LogisticRegression(max_iter=200))
    before, after = (review.accuracy(model, reviewed=reviewed) for reviewed in (False, True))
    return (
        f"Of the {count(before.checked, 'row')} drawn at random, a plain model that did not see them gets "
        f"{round(before.estimate * before.checked):,} right when it is trained on the labels in the file, and "
        f"{round(after.estimate * after.checked):,} on the labels as corrected."
    )
