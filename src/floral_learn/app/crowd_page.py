"""One self-contained HTML file about votes and the people behind them, which names somebody only on evidence."""

from __future__ import annotations

from typing import Any

import numpy as np

from floral_learn.app.pages import render_page
from floral_learn.crowd import VoteAggregation, next_tasks

MOST_PEOPLE = 500
MOST_TASKS = 50


def remark(row: Any) -> str:
    """What to say about a person: the evidence where somebody is named, nothing about a failing otherwise."""
    said = []
    if row.named:
        said.append("named: " + row.evidence + (f"; most often {row.most_confused}" if row.most_confused else ""))
    if row.agrees_with:
        said.append(f"agrees with {row.agrees_with}")
    return "; ".join(said)


def render(found: VoteAggregation, *, title: str = "Votes") -> str:
    """Return the page for `found`."""
    votes, frame = found.votes, found.people
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
        people=[_person(row) for row in frame.head(MOST_PEOPLE).itertuples()],
        hidden_people=max(len(frame) - MOST_PEOPLE, 0),
        tasks=_tasks(found),
        undecided=f"{len(found.undecided):,}" if len(found.undecided) else "",
        labels=_labels(found),
    )


def _person(row: Any) -> dict[str, Any]:
    low, fit, high = (round(100 * value) for value in (row.low, row.reliability, row.high))
    return {
        "name": str(row.annotator), "votes": f"{row.votes:,}", "low": low, "fit": fit, "high": high,
        "width": max(high - low, 1), "remark": remark(row),
    }  # fmt: skip


def _tasks(found: VoteAggregation) -> list[dict[str, Any]]:
    votes = found.votes
    tasks = next_tasks(found, MOST_TASKS)
    tasks = tasks[(tasks["gain"] > 0) | ~tasks["decided"]]
    place = {name: row for row, name in enumerate(votes.items.tolist())}
    labels = found.labels
    shown = []
    for row in tasks.itertuples():
        number = place[row.task]
        counts = votes.shares[number]
        said = ", ".join(
            f"{votes.classes[c]} {counts[c]:g}" for c in np.argsort(-counts, kind="stable") if counts[c] > 0
        )
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
    given = np.bincount(votes.label, votes.weight, minlength=len(votes.answers))
    confirmed = np.bincount(votes.label, votes.weight * right, minlength=len(votes.answers))
    return [
        {
            "name": str(name),
            "tasks": f"{int((labels == c).sum()):,}",
            "votes": f"{given[c]:,.0f}",
            "confirmed": f"{100 * confirmed[c] / given[c]:.0f} %" if given[c] else "",
        }
        for c, name in enumerate(votes.classes.tolist())
    ]
