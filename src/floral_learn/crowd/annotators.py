"""How far each person can be relied on, how sure that is, and whom the evidence names.

Naming somebody is a decision with an error rate. The question is whether a person's answers follow the truth less than
those of a weak but honest person of the same crowd: one who knows the answer a fifth as often as the better half of the
crowd does, and otherwise answers by the own habit. Its p-value is the probability that such a person agrees so rarely
with labels that do not count the person's own votes. Named are those whom Benjamini and Hochberg's procedure (1995)
finds at 5 %: where everybody is honest, somebody is named in at most one crowd of twenty; where some are not, at most
one in twenty of the named is honest, on average. Where nobody can tell a reading from its mirror image, nobody is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta, binom

from floral_learn.labels.votes import Votes

from .solve import Solution

# Chosen so that people who know one answer in five are not named (benchmarks/crowd.py, simulated crowds and LabelMe).
WEAK = 0.2  # how often, compared with the better half of the crowd, a weak but honest person knows the answer
ERROR_RATE = 0.05


@dataclass(frozen=True)
class People:
    """One entry per annotator."""

    reliability: np.ndarray
    low: np.ndarray
    high: np.ndarray
    agreed: np.ndarray  # answers that agree with the label that the others give
    expected: np.ndarray  # how many a weak but honest person would have
    p_value: np.ndarray
    named: np.ndarray


def judge(solution: Solution, level: float = 0.95) -> People:
    """Share of right answers with an interval, and the evidence against "weak but honest".

    The label of a task leans towards the person's own vote, and without that vote it is less often right. Counted with
    it the share of right answers is too high, without it too low: the interval reaches from the lower end of one to the
    upper end of the other (Jeffreys' interval of a binomial share, at each end), and farther by the share of labels
    that the votes themselves expect to be wrong. Where nobody can tell a reading from its mirror image, it spans both.
    """
    votes, without = solution.votes, solution.leave_one_out
    rows = np.arange(len(votes))
    n = np.maximum(votes.per_annotator, 1e-9)

    def per_person(values: np.ndarray) -> np.ndarray:
        return np.bincount(votes.annotator, votes.weight * values, minlength=len(votes.annotators))

    counted_out = per_person(without[rows, votes.label])
    counted_in = np.maximum(per_person(solution.held[votes.item, votes.label]), counted_out)
    low = beta.ppf((1 - level) / 2, counted_out + 0.5, n - counted_out + 0.5)
    high = beta.ppf((1 + level) / 2, counted_in + 0.5, np.maximum(n - counted_in, 0.0) + 0.5)
    wrong = float(1 - solution.held.max(axis=1).mean())
    low, high = np.maximum(low - wrong, 0.0), np.minimum(high + wrong, 1.0)
    if solution.mirror is not None:
        other = np.clip(per_person(solution.mirror[votes.item, votes.label]), 0, n)
        low = np.minimum(low, beta.ppf((1 - level) / 2, other + 0.5, n - other + 0.5))
        high = np.maximum(high, beta.ppf((1 + level) / 2, other + 0.5, n - other + 0.5))
    middle = (counted_in + counted_out) / 2
    if len(votes.classes) < 2:
        nobody = np.zeros(len(n), dtype=bool)
        return People((middle + 0.5) / (n + 1), low, high, counted_in, counted_in, np.ones(len(n)), nobody)
    label = without.argmax(axis=1)
    agreed = per_person(votes.label == label)
    expected = per_person(_weak_agreement(votes, solution, label))
    # P(sum of Bernoulli(p_i) <= x) is at most that of a binomial with their mean (Hoeffding, 1956), x below the mean.
    p_value = np.where(agreed < expected - 1, binom.cdf(np.floor(agreed), np.ceil(n), expected / n), 1.0)
    named = benjamini_hochberg(p_value) if solution.settled else np.zeros(len(n), dtype=bool)
    return People((middle + 0.5) / (n + 1), low, high, agreed, expected, p_value, named)


def _weak_agreement(votes: Votes, solution: Solution, label: np.ndarray) -> np.ndarray:
    """(V,) probability that a weak but honest person in the voter's place gives the `label`.

    With probability WEAK the answer is one of the crowd's better half, else one by the voter's own habit, the shares in
    which the voter gives the classes.
    """
    k = len(votes.classes)
    honest = _better_half(solution.confusions.counts)
    informed = (solution.leave_one_out * honest[:, label].T).sum(axis=1)
    habit = np.zeros((len(votes.annotators), k))
    np.add.at(habit, (votes.annotator, votes.label), votes.weight)
    habit = (habit + 1 / k) / (habit.sum(axis=1, keepdims=True) + 1)
    return WEAK * informed + (1 - WEAK) * habit[votes.annotator, label]


def _better_half(counts: np.ndarray) -> np.ndarray:
    """(truth, vote) what the people say who give the better half of all votes."""
    k = counts.shape[1]
    total = counts.sum(axis=(1, 2))
    accuracy = (np.einsum("acc->a", counts) + 1) / (total + 2)
    order = np.argsort(-accuracy, kind="stable")
    inside = np.cumsum(total[order]) <= 0.5 * total.sum()
    inside[0] = True
    pool = counts[order[inside]].sum(axis=0) + np.eye(k) + 0.5 / k
    return pool / pool.sum(axis=1, keepdims=True)


def benjamini_hochberg(p_value: np.ndarray, rate: float = ERROR_RATE) -> np.ndarray:
    """(A,) mask of the p-values p_(1) <= ... <= p_(r), r the largest rank with p_(r) <= rate * r / A."""
    order = np.argsort(p_value, kind="stable")
    below = p_value[order] <= rate * np.arange(1, len(order) + 1) / len(order)
    found = np.zeros(len(order), dtype=bool)
    found[order[: int(np.flatnonzero(below)[-1]) + 1 if below.any() else 0]] = True
    return found


def frame(solution: Solution, given: Votes) -> Any:
    """Everything about the annotators as a pandas DataFrame, least reliable first (by the interval's upper end)."""
    import pandas as pd

    people = judge(solution)
    found = pd.DataFrame(
        {
            "annotator": given.annotators,
            "votes": np.round(given.per_annotator).astype(int),
            "reliability": people.reliability,
            "low": people.low,
            "high": people.high,
            "named": people.named,
            "p_value": people.p_value,
            "evidence": _evidence(people, given),
            "most_confused": _most_confused(solution.confusions.counts, given.classes),
        }
    )
    return found.sort_values(["high", "reliability"], kind="stable").reset_index(drop=True)


def _evidence(people: People, given: Votes) -> list[str]:
    """For those who are named: how often they agree with the others, how often a weak but honest person would."""
    told = []
    for number, named in enumerate(people.named.tolist()):
        total = float(given.per_annotator[number])
        told.append(
            f"agrees with the labels that the others give on {people.agreed[number]:.0f} of {total:.0f} tasks; a "
            f"weak but honest person would on {people.expected[number]:.0f} (p = {people.p_value[number]:.1g})"
            if named
            else ""
        )
    return told


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
