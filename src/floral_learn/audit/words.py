"""An audit's result in sentences: first what the labels' names say, then what is known, then what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from floral_learn.audit.result import LabelIssues

_MANY = 0.15  # of the rows, in which some other class is at least half as probable: classes overlap
_FEW = 0.05  # of the rows: pairs of classes that look alike in fewer are not worth a sentence


def headline(result: LabelIssues) -> str:
    """What was found, in one sentence."""
    n, flagged = len(result), int(result.flagged.sum())
    share = f"{flagged:,} of {n:,} labels ({100 * flagged / n:.1f} %)"
    if not result.informative:
        return "Stop: the columns used here do not predict the label, so no label can be called wrong from them."
    if not flagged:
        return f"No label of {n:,} stands out as wrong."
    if result.scattered:
        wrong = 100 * float(result.wrong_probability.mean())
        if result.replaceable:
            return (
                f"{share} look wrong: errors are scattered, and about {wrong:.1f} % of all labels are estimated wrong."
            )
        return (
            f"{share} are most doubtful, and about {wrong:.1f} % of all labels are estimated wrong, but classes "
            "overlap: many of the flagged labels can be right."
        )
    if sum(rows for _, _, rows in result.overlapping) >= _MANY * n:
        return f"The classes overlap. {share} are contradicted most strongly, but many of these can be right."
    return f"{share} are contradicted by the rest of the data, but not at random: some can be right."


def overlap_in_words(result: LabelIssues) -> str:
    """Why flagged labels cannot be replaced unseen: classes overlap, and which of them most."""
    if not result.overlapping or result.overlapping[0][2] < _FEW * len(result):
        return "too few labels stand out, or errors were chosen, so that right and wrong ones cannot be told apart"
    one, other, rows = result.overlapping[0]
    pair = f"{str(result.classes[one])!r} and {str(result.classes[other])!r}"
    return f"classes overlap ({pair} look alike in {rows:,} rows), so that many flagged labels can be right"


def sentences(result: LabelIssues) -> list[str]:
    """The result in a few sentences, the most important first; `names` come before them."""
    said = [headline(result)]
    if not result.informative:
        said.append(
            f"Held-out predictions save {max(0.0, 100 * result.log_loss_saved):.1f} % of the log loss of guessing by "
            "class shares. Nothing is flagged. Use other columns (--text COLUMN reads prose, --drop leaves a column "
            "out) or, in Python, another judge (model=, pred_probs=)."
        )
        return said + _twins(result)
    said.append(
        f"Held-out predictions agree with {100 * result.agreement:.1f} % of the labels and save "
        f"{100 * result.log_loss_saved:.0f} % of the log loss of guessing by class shares."
    )
    said += [
        f"{str(result.classes[a])!r} and {str(result.classes[b])!r} look alike in {rows:,} rows: their labels there "
        "cannot be judged from these columns."
        for a, b, rows in result.overlapping[:3]
        if rows >= _FEW * len(result)
    ]
    said += _twins(result) + _sources(result)
    said.append(
        "Errors that somebody chose to look plausible can hide from any such list; the command floral review finds "
        "them by asking about a few rows."
    )
    return said


def _twins(result: LabelIssues) -> list[str]:
    if not len(result.near_duplicate_pairs):
        return []
    pairs = len(result.near_duplicate_pairs)
    return [f"{pairs:,} pair{'s' if pairs > 1 else ''} of nearly equal rows carry different labels."]


def _sources(result: LabelIssues) -> list[str]:
    """Sources whose labels surely fit less often than those of the rest, in words that do not accuse."""
    people = result.authors
    if people is None or len(people.names) < 2:
        return []
    usual = float(np.median(people.reliability))
    low = np.flatnonzero(people.high < usual)
    low = low[np.argsort(people.reliability[low], kind="stable")]
    if not len(low):
        return []
    some = ", ".join(f"{people.names[a]} ({100 * people.low[a]:.0f} to {100 * people.high[a]:.0f} %)" for a in low[:3])
    more = f" and {len(low) - 3} more" if len(low) > 3 else ""
    return [
        f"Labels of {some}{more} fit the rest of the data less often than is usual here ({100 * usual:.0f} %); each of "
        "their labels is weighed by that. Hard rows and other instructions look the same: look before you conclude."
    ]
