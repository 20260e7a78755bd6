"""How far each person can be relied on, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta

from floral_learn.labels.votes import Votes

from .solve import Solution

PRIOR_HONEST = 0.8
MOST_BORROWED = 4.0  # votes that the pool may lend to a person: few own votes must leave a wide interval
LEAST_LIE = 0.02  # how often a liar is right by accident or for show


@dataclass(frozen=True)
class People:
    """One entry per annotator."""

    reliability: np.ndarray
    low: np.ndarray
    high: np.ndarray
    suspicion: np.ndarray


def judge(solution: Solution, level: float = 0.95) -> People:
    """Reliability with an interval, and the probability that a person's votes are not an attempt at the truth.

    Reliability is the expected share of right votes, shrunk to the pool; few votes leave a wide interval. Suspicion
    compares three explanations of a person's votes, by the posterior of each item without the person's own vote:
    honest as the pool is, answers that ignore the item, and answers that avoid the truth.
    """
    votes, confusions = solution.votes, solution.confusions
    k = len(votes.classes)
    diagonal = np.einsum("acc->a", confusions.counts)
    total = confusions.counts.sum(axis=(1, 2))
    share = float(diagonal.sum() / max(total.sum(), 1e-12))
    share = min(max(share, 0.05), 0.95)
    strength = min(confusions.accuracy_strength, MOST_BORROWED)
    a = diagonal + strength * share
    b = np.maximum(total - diagonal, 0) + strength * (1 - share)
    low, high = beta.ppf((1 - level) / 2, a, b), beta.ppf((1 + level) / 2, a, b)
    return People(a / (a + b), low, high, _suspicion(votes, solution, k))


def _suspicion(votes: Votes, solution: Solution, k: int) -> np.ndarray:
    if k < 2:
        return np.zeros(len(votes.annotators))
    honest = _honest(solution.confusions.counts, k)
    said = np.bincount(votes.label, votes.weight, minlength=k) + 1.0
    loo = solution.leave_one_out
    of_honest = np.log((loo * honest[:, votes.label].T).sum(axis=1))
    of_blind = np.log(0.5 / k + 0.5 * said / said.sum())[votes.label]
    right = loo[np.arange(len(votes)), votes.label]
    of_liar = np.log(right * LEAST_LIE + (1 - right) * (1 - LEAST_LIE) / (k - 1))
    sums = [
        solution.temperature * np.bincount(votes.annotator, value, minlength=len(votes.annotators))
        for value in (of_honest, of_blind, of_liar)
    ]
    prior = np.log([PRIOR_HONEST, (1 - PRIOR_HONEST) / 2, (1 - PRIOR_HONEST) / 2])
    stacked = np.column_stack(sums) + prior
    stacked -= stacked.max(axis=1, keepdims=True)
    weight = np.exp(stacked)
    return 1 - weight[:, 0] / weight.sum(axis=1)


def _honest(counts: np.ndarray, k: int) -> np.ndarray:
    """The confusions of the better half of the votes: what an honest person of this crowd is like."""
    total = counts.sum(axis=(1, 2))
    accuracy = (np.einsum("acc->a", counts) + 1) / (total + 2)
    order = np.argsort(-accuracy, kind="stable")
    inside = np.cumsum(total[order]) <= 0.5 * total.sum()
    inside[0] = True
    pool = counts[order[inside]].sum(axis=0) + np.eye(k) + 0.5 / k
    return pool / pool.sum(axis=1, keepdims=True)


def frame(solution: Solution, given: Votes) -> Any:
    """Everything about the annotators as a pandas DataFrame, least reliable first (by the interval's upper end)."""
    import pandas as pd

    people = judge(solution)
    names, classes = given.annotators, given.classes
    found = pd.DataFrame(
        {
            "annotator": names,
            "votes": np.round(given.per_annotator, 2),
            "reliability": people.reliability,
            "low": people.low,
            "high": people.high,
            "suspicion": people.suspicion,
            "most_confused": _most_confused(solution.confusions.counts, classes),
        }
    )
    found["votes"] = found["votes"].astype(int)
    return found.sort_values(["high", "reliability"], kind="stable").reset_index(drop=True)


def _most_confused(counts: np.ndarray, classes: np.ndarray) -> list[str]:
    """The most frequent mistake of each person, in words; empty where there was less than one."""
    k = len(classes)
    off = counts * ~np.eye(k, dtype=bool)
    flat = off.reshape(len(off), -1)
    place = flat.argmax(axis=1)
    times = flat[np.arange(len(flat)), place]
    return [
        f"says {classes[p % k]} for {classes[p // k]} ({t:.0f}x)" if t >= 0.95 else ""
        for p, t in zip(place.tolist(), times.tolist(), strict=True)
    ]
