"""How far each person can be relied on, how sure that is, and whom the evidence names.

Naming somebody is a decision with an error rate. The question is whether a person's answers follow the truth less than
those of a weak but honest person of the same crowd: one who knows the answer a fifth as often as the better half of the
crowd does, and otherwise guesses in a habitual way. It is asked of all answers, of the later half of them, and of the
half on which the others are surest. The p-value is the probability that such a person agrees so rarely with labels that
do not count the person's own votes, the smallest of the three times three (Bonferroni). Named are those whom Benjamini
and Hochberg's procedure (1995) finds at 5 %: where everybody is honest, somebody is named in at most one crowd of
twenty; where some are not, at most one in twenty of the named is honest, on average. Where nobody can tell a reading
from its mirror image, nobody is.

The other question is whether a person agrees with another one beyond what the tasks explain. That has a p-value of its
own and names nobody: honest people agree, too, where the labels are wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta, binom

from floral_learn.labels.votes import Votes

from .agreement import benjamini_hochberg
from .mirror import upper_half
from .solve import Solution

# Chosen so that people who know one answer in five are not named (benchmarks/crowd.py, choose and honest).
WEAK = 0.2  # how often, compared with the better half of the crowd, a weak but honest person knows the answer


@dataclass(frozen=True)
class People:
    """One entry per annotator."""

    reliability: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p_value: np.ndarray
    named: np.ndarray
    evidence: list[str]  # in words, for those who are named


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
    p_value, evidence = _tests(votes, solution)
    named = benjamini_hochberg(p_value) if solution.settled else np.zeros(len(n), dtype=bool)
    told = [text if who else "" for text, who in zip(evidence, named.tolist(), strict=True)]
    return People((middle + 0.5) / (n + 1), low, high, p_value, named, told)


def _tests(votes: Votes, solution: Solution) -> tuple[np.ndarray, list[str]]:
    """(A,) p-values, and in words what each rests on."""
    people = len(votes.annotators)
    if len(votes.classes) < 2:
        return np.ones(people), [""] * people
    without = solution.leave_one_out
    label = without.argmax(axis=1)
    agrees, weak = votes.label == label, _weak_agreement(votes, solution, label)
    sure = without[np.arange(len(votes)), label]
    parts = {
        "": np.ones(len(votes), dtype=bool),
        ", the later half of their answers": upper_half(votes, np.arange(len(votes))),
        ", the half of their answers on which the others are surest": upper_half(votes, sure),
    }
    p_values, words = [], []
    for part, inside in parts.items():
        n, agreed, expected = (
            np.bincount(votes.annotator, votes.weight * inside * values, minlength=people)
            for values in (1.0, agrees, weak)
        )
        # P(sum of Bernoulli(p_i) <= x) is at most that of a binomial with their mean (Hoeffding, 1956), x below it.
        rate = expected / np.maximum(n, 1e-9)
        p_values.append(np.where(agreed < expected - 1, binom.cdf(np.floor(agreed), np.ceil(n), rate), 1.0))
        words.append(
            [
                f"agrees with the labels that the others give on {a:.0f} of {t:.0f} tasks{part}; a weak but honest "
                f"person would on {e:.0f}"
                for a, e, t in zip(agreed, expected, n, strict=True)
            ]
        )
    first = np.argmin(p_values, axis=0)
    p_value = np.minimum(len(p_values) * np.min(p_values, axis=0), 1.0)
    return p_value, [f"{words[f][a]} (p = {p_value[a]:.1g})" for a, f in enumerate(first.tolist())]


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
            "evidence": people.evidence,
            "agrees_with": _partners(solution, given),
            "most_confused": _most_confused(solution.confusions.counts, given.classes),
        }
    )
    return found.sort_values(["high", "reliability"], kind="stable").reset_index(drop=True)


def _partners(solution: Solution, given: Votes) -> list[str]:
    """With whom a person agrees beyond what the tasks explain, in words; empty for everybody else."""
    pairs = solution.agreement
    if pairs is None:
        return [""] * len(given.annotators)
    return [
        f"{given.annotators[pairs.partner[a]]}: on {pairs.agreed[a]:.0f} of {pairs.tasks[a]:.0f} tasks; the tasks "
        f"explain {pairs.expected[a]:.0f} (p = {pairs.p_value[a]:.1g})"
        if found
        else ""
        for a, found in enumerate(pairs.found.tolist())
    ]


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
