"""Which tasks need another vote, and whose."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from floral_learn.base.frames import same_kind

from .aggregate import VoteAggregation
from .readings import ERROR_RATE


def next_tasks(found: VoteAggregation, n: int = 10, *, annotators: Any = None) -> Any:
    """Return the tasks whose label is likeliest to be put right by one more vote, and whom to ask.

    The gain of asking person a about task i is the expected rise of the label's probability of being right,
    sum_v p(v) max_c p(c | v) - max_c p(c), under a's confusion matrix. Items with two readings come first where gains
    are equal; nobody is asked twice about one task, and the work is dealt out among the reliable.

    Parameters
    ----------
    found : VoteAggregation
    n : int, default=10
        Number of tasks.
    annotators : list, optional
        People who can be asked; by default all.

    Returns
    -------
    DataFrame
        task, annotator (empty where everybody has voted), gain, probability (of the present label), decided, most
        useful first. Tasks that are not decided come early: there an answer of your own (`gold`) says more than any
        vote.
    """
    import pandas as pd

    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n={n!r} must be a number of tasks, at least 1")
    votes = found.votes
    asked = _who(found, annotators)
    probability = found.solution.held  # one more person is misled as well where everybody is
    rows = np.arange(len(probability)) if found.gold is None else np.flatnonzero(found.gold < 0)
    confusions = found.solution.fit.confusions(asked)
    typical = confusions.mean(axis=0)
    first = (
        _gain(probability[rows], typical) + 1e-6 * found.contested[rows] + 1e-9 * (1 - probability[rows].max(axis=1))
    )
    rows = rows[np.argsort(-first, kind="stable")[:n]]
    gains = np.column_stack([_gain(probability[rows], confusion) for confusion in confusions])
    seen = np.isin(votes.item, rows)
    column = {a: c for c, a in enumerate(asked.tolist())}
    place = {r: p for p, r in enumerate(rows.tolist())}
    for i, a in zip(votes.item[seen].tolist(), votes.annotator[seen].tolist(), strict=True):
        if a in column:
            gains[place[i], column[a]] = -1.0
    load = np.zeros(len(asked))
    chosen = []
    for number in range(len(rows)):
        best = gains[number].max()
        good = np.flatnonzero(gains[number] >= 0.95 * best) if best > 0 else np.array([int(gains[number].argmax())])
        who = good[np.argmin(load[good])]
        load[who] += 1
        chosen.append(int(who))
    names = [votes.annotators[asked[who]] for who in chosen]
    chosen_tasks = pd.DataFrame(
        {
            "task": votes.items[rows],
            "annotator": [name if row.max() >= 0 else None for name, row in zip(names, gains, strict=True)],
            "gain": np.maximum(gains[np.arange(len(rows)), chosen], 0.0) if len(rows) else [],
            "probability": found.probability[rows].max(axis=1),
            "decided": found.decided[rows],
        }
    )
    return same_kind(chosen_tasks, found.like)


def _who(found: VoteAggregation, annotators: Any) -> np.ndarray:
    """The people to ask: named ones, or those who are not doubtful, best first and at most fifty."""
    votes = found.votes
    if annotators is not None:
        return np.flatnonzero(votes.people(annotators))
    people = found.judged
    trusted = np.flatnonzero(people.p_value > ERROR_RATE)
    if not len(trusted):
        trusted = np.arange(len(votes.annotators))
    return trusted[np.argsort(-people.low[trusted], kind="stable")[:50]]


def _gain(probability: np.ndarray, confusion: np.ndarray) -> np.ndarray:
    """Expected rise of the largest probability by one vote with this confusion matrix, (n,)."""
    n, k = probability.shape
    right = np.empty(n)
    for part in gen_batches(n, max(1, 4_000_000 // k**2)) if n else ():  # (rows, truth, vote) at a time
        joint = probability[part, :, None] * confusion[None]
        right[part] = joint.max(axis=1).sum(axis=1)
    return right - probability.max(axis=1)
