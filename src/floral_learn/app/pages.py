"""Pages that stand alone, each one HTML file: their scaffold, and those about votes and about certificates."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from floral_learn import __version__
from floral_learn.base.extras import install_line

if TYPE_CHECKING:
    from floral_learn.certify.certificate import Certificate
    from floral_learn.crowd.aggregate import VoteAggregation


def render_page(name: str, **values: Any) -> str:
    """The template ``templates/NAME.html`` with its styles and script as one HTML file; text from data is escaped.

    The value under the name ``data`` is for the script: it becomes JSON that cannot end it.
    """
    try:
        from jinja2 import Environment, PackageLoader
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError(f"the page needs jinja2: {install_line('cli')}") from error
    if "data" in values:
        values = values | {"data": Markup(script_json(values["data"]))}
    loader = PackageLoader("floral_learn.app", "templates")
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["percent"] = percent
    return environment.get_template(f"{name}.html").render(version=__version__, **values)


def percent(share: float) -> str:
    """A share for people: whole percents, with one decimal below two, and the % sign on the same line."""
    if 0 < share < 0.0005:
        return "under 0.1\u00a0%"
    digits = 10 if share < 0.02 else 1
    # halves go up, as in the browser: a number reads the same in a sentence and in a picture
    return f"{math.floor(100 * share * digits + 0.5) / digits:g}\u00a0%"


def script_json(value: Any) -> str:
    """JSON that is safe inside a script element: no text in it can close the element or open a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def most_telling(frame: Any, labels: np.ndarray) -> list[int]:
    """Numbers of the columns, first those that say most about the label: there is room for a few of them.

    By mutual information, less what chance gives (Miller 1955); numbers count by the tenth of the rows they fall in.
    What is different in nearly every row says nothing this way.
    """
    import pandas as pd
    from sklearn.metrics import mutual_info_score

    shares = []
    for at in range(frame.shape[1]):
        column = frame.iloc[:, at]
        if column.dtype.kind in "iuf":
            parts = max(2, min(10, len(labels) // 10))
            column = pd.qcut(column.rank(), parts, labels=False, duplicates="drop")
        codes, names = pd.factorize(column)
        # a table of k x M counts of n rows shows so much by chance, to first order
        chance = (len(names) - 1) * (len(np.unique(labels)) - 1) / (2 * len(labels))
        few = len(names) <= max(2, len(labels) // 10)
        shares.append(mutual_info_score(labels, codes) - chance if few else 0.0)
    return np.argsort(-np.array(shares), kind="stable").tolist()


# -- votes and the people behind them, which names somebody only on evidence -------------------------------------------


def votes_page(found: VoteAggregation, *, title: str = "Votes", most_tasks: int = 50) -> str:
    """The page for `found`, with at most so many tasks that need another answer."""
    votes = found.votes
    expected = float(found.probability.max(axis=1).sum())
    return render_page(
        "crowd",
        title=title,
        n_items=f"{len(votes.items):,}",
        n_votes=f"{len(votes):,}",
        n_people=f"{len(votes.annotators):,}",
        votes_per_item=float(votes.per_item.mean()),
        right=f"{100 * expected / len(votes.items):.0f} %",
        notes=found.notes,
        has_features=found.solution.featured,
        people=[_person(row) for row in found.people.itertuples()],
        tasks=_tasks(found, most_tasks),
        undecided=f"{len(found.undecided):,}" if len(found.undecided) else "",
        labels=_labels(found),
    )


def remark(row: Any) -> str:
    """What to say about a person: the evidence where somebody is named, nothing about a failing otherwise."""
    said = []
    if row.named:
        said.append(f"named: {row.evidence}")
        if row.most_confused:
            said.append(f"most often {row.most_confused}")
    if row.agrees_with:
        said.append(f"agrees with {row.agrees_with}")
    return "; ".join(said)


def _person(row: Any) -> dict[str, Any]:
    low, fit, high = (round(100 * value) for value in (row.low, row.reliability, row.high))
    return {
        "name": str(row.annotator), "votes": f"{row.votes:,}", "low": low, "fit": fit, "high": high,
        "width": max(high - low, 1), "remark": remark(row),
    }  # fmt: skip


def _tasks(found: VoteAggregation, most: int) -> list[dict[str, Any]]:
    votes = found.votes
    from floral_learn.crowd import next_tasks

    tasks = next_tasks(found, most)
    tasks = tasks[(tasks["gain"] > 0) | ~tasks["decided"]]
    place = {name: row for row, name in enumerate(votes.items.tolist())}
    labels = found.labels
    shown = []
    for row in tasks.itertuples():
        number = place[row.task]
        counts = votes.shares[number]
        by_count = [c for c in np.argsort(-counts, kind="stable") if counts[c] > 0]
        said = ", ".join(f"{votes.classes[c]} {counts[c]:g}" for c in by_count)
        shown.append(
            {
                "task": str(row.task),
                "label": str(labels[number]),
                "probability": round(100 * row.probability),
                "decided": bool(row.decided),
                "votes": said or "none",
                "ask": str(row.annotator) if row.gain > 0 else "an answer of your own",
            }
        )
    return shown


def _labels(found: VoteAggregation) -> list[dict[str, Any]]:
    votes = found.votes
    labels = found.probability.argmax(axis=1)
    right = votes.right(labels[votes.item])
    given = np.bincount(votes.label, votes.weight, minlength=len(votes.classes))
    confirmed = np.bincount(votes.label, votes.weight * right, minlength=len(votes.classes))
    return [
        {
            "name": str(name),
            "tasks": f"{int((labels == c).sum()):,}",
            "votes": f"{given[c]:,.0f}",
            "confirmed": f"{100 * confirmed[c] / given[c]:.0f} %" if given[c] else "",
        }
        for c, name in enumerate(votes.classes.tolist())
    ]


# -- certificates: what survives how many wrong labels, and what does not ----------------------------------------------


def survival(flips: np.ndarray, n_labels: int) -> list[tuple[int, float]]:
    """Numbers of flips worth telling, and the share of predictions that survive so many."""
    shares = (0.01, 0.02, 0.05, 0.1, 0.2)
    counts = sorted({0, 1, *(int(share * n_labels) for share in shares)})
    return [(count, float((flips >= count).mean())) for count in counts]


def headline(flips: np.ndarray, n_labels: int) -> str:
    """One sentence: the largest told number of flips that most predictions survive, or that few survive any."""
    told = [(count, share) for count, share in survival(flips, n_labels) if count > 0]
    good = [pair for pair in told if pair[1] >= 0.5]
    count, share = good[-1] if good else told[0]
    few = "" if good else "Only "
    labels, which = ("label", "it is") if count == 1 else ("labels", "they are")
    return (
        f"{few}{100 * share:.0f} % of the predictions on rows like yours survive {count:,} wrong {labels} "
        f"of {n_labels:,}, whichever {which}."
    )


def certificate_page(found: Certificate, rows: Any, *, title: str, notes: list[str], weakest: int = 10) -> str:
    """The page for `found`.

    Parameters
    ----------
    rows : pandas.DataFrame
        A line per certified row: row, id where rows have one, label, prediction, survives, turned_by.
    title : str
        Heading, such as the file's name.
    notes : list of str
        How the features were made.
    weakest : int
        Predictions in the list of those that survive least.
    """
    least = rows.sort_values("survives", kind="stable").head(weakest)
    return render_page(
        "certify",
        title=title,
        headline=headline(found.flips, found.n_labels),
        table=[
            {"count": f"{count:,}", "share": f"{100 * share:.0f} %", "bar": round(100 * share)}
            for count, share in survival(found.flips, found.n_labels)
        ],
        n_rows=f"{len(found.flips):,}",
        n_labels=f"{found.n_labels:,}",
        fixed=f"{found.n_labels - found.n_reachable:,}" if found.n_reachable < found.n_labels else "",
        median=f"{int(np.percentile(found.flips, 50, method='lower')):,}",
        exact=found.exact,
        none=f"{int((found.flips < 0).sum()):,}" if (found.flips < 0).any() else "",
        weakest=least.to_dict(orient="records"),
        assumed=found.settings(),
        notes=notes,
    )
