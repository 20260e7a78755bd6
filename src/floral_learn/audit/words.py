"""An audit's result in sentences: first what the labels' names say, then what is known, then what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from floral_learn.audit.result import AuditResult

_MANY = 0.15  # of the rows, in which some other class is at least half as probable: classes overlap
_FEW = 0.05  # of the rows: pairs of classes that look alike in fewer are not worth a sentence


def headline(result: AuditResult) -> str:
    """What was found, in one sentence."""
    n, flagged = result.n, len(result.flagged())
    share = f"{flagged:,} of {n:,} labels ({100 * flagged / n:.1f} %)"
    if not result.informative:
        return "Stop: the columns used here do not predict the label, so no label can be called wrong from them."
    if not flagged:
        return f"No label of {n:,} stands out as wrong."
    if result.apart:
        return f"{share} are contradicted by the rest of the data and stand apart: they look wrong."
    if flagged < _FEW * n:
        return f"{share} are contradicted by the rest of the data; too few to form a group of their own."
    if sum(rows for _, _, rows in result.alike) >= _MANY * n:
        return f"The classes overlap. {share} are contradicted most strongly, but many of these can be right."
    return f"{share} are contradicted by the rest of the data, but do not stand clearly apart: some can be right."


def overlapping_classes(result: AuditResult) -> str | None:
    """The pair of classes that overlaps most, in words, or None where no pair does."""
    if not result.alike or result.alike[0][2] < _FEW * result.n:
        return None
    one, other, rows = result.alike[0]
    return f"{str(result.classes[one])!r} and {str(result.classes[other])!r} overlap ({rows:,} rows look alike)"


def sentences(result: AuditResult) -> list[str]:
    """The result in a few sentences, the most important first; `names` come before them."""
    said = [headline(result)]
    if not result.informative:
        said.append(
            f"Held-out predictions save {max(0.0, 100 * result.gain):.1f} % of the log loss of guessing by class "
            "shares. Nothing is flagged. Use other columns (--text COLUMN reads prose, --drop leaves a column out) "
            "or, in Python, another judge (estimator=, pred_probs=)."
        )
        return said + _twins(result)
    said.append(
        f"Held-out predictions agree with {100 * result.agreement:.1f} % of the labels and save "
        f"{100 * result.gain:.0f} % of the log loss of guessing by class shares."
    )
    said += [
        f"{str(result.classes[a])!r} and {str(result.classes[b])!r} look alike in {rows:,} rows: their labels there "
        "cannot be judged from these columns."
        for a, b, rows in result.alike[:3]
        if rows >= _FEW * result.n
    ]
    said += _twins(result) + _sources(result)
    said.append(
        "Errors that somebody chose to look plausible can hide from any such list; the command floral review finds "
        "them by asking about a few rows."
    )
    return said


def _twins(result: AuditResult) -> list[str]:
    if not len(result.twins):
        return []
    pairs = len(result.twins)
    return [f"{pairs:,} pair{'s' if pairs > 1 else ''} of nearly equal rows carry different labels."]


def _sources(result: AuditResult) -> list[str]:
    """Sources whose labels surely fit less often than those of the rest, in words that do not accuse."""
    if result.authors is None or len(result.authors) < 2:
        return []
    people = result.authors
    usual = float(people["reliability"].median())
    low = people[(people["high"] < usual) & people["named"]]
    if not len(low):
        return []
    some = ", ".join(
        f"{row.annotator} ({100 * row.low:.0f} to {100 * row.high:.0f} %)" for row in low.head(3).itertuples()
    )
    more = f" and {len(low) - 3} more" if len(low) > 3 else ""
    return [
        f"Labels of {some}{more} fit the rest of the data less often than is usual here ({100 * usual:.0f} %); each of "
        "their labels is weighed by that. Hard rows and other instructions look the same: look before you conclude."
    ]
