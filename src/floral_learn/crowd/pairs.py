"""Who agrees with whom beyond what the tasks explain: copies, two accounts of one person, people in concert.

Given the truth, people vote independently in every reading. So the probability that b says what a said on a task is
sum_c P(c | all votes but b's) M_b[c, what a said], and the agreements of a pair are a sum of such coins. Tasks are hard
and answers tempting, for which people agree more often than that: by how much they do on the whole is allowed for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom
from sklearn.utils import gen_batches

from floral_learn.crowd.votes import Votes

from .readings import ERROR_RATE, Fit


@dataclass(frozen=True)
class Agreement:
    """One entry per annotator: the partner with whom agreement is least likely to be chance."""

    p_value: np.ndarray
    partner: np.ndarray  # number of the annotator; -1 where there is none
    tasks: np.ndarray  # that both voted on
    agreed: np.ndarray
    expected: np.ndarray

    @property
    def found(self) -> np.ndarray:
        """(A,) who agrees with somebody beyond what the tasks explain."""
        return benjamini_hochberg(self.p_value)


def agreement(votes: Votes, without: np.ndarray, fit: Fit) -> Agreement:
    """Hold each pair's agreements against the reading `fit`; `without` (V, K) are posteriors without each vote."""
    people = len(votes.annotators)
    left, right = vote_pairs(votes)
    if not len(left):
        zero = np.zeros(people)
        return Agreement(np.ones(people), np.full(people, -1), zero, zero, zero)
    agrees = (_agrees(votes, without, fit, left, right) + _agrees(votes, without, fit, right, left)) / 2
    one, other = votes.annotator[left], votes.annotator[right]
    key, number = np.unique(np.minimum(one, other) * people + np.maximum(one, other), return_inverse=True)
    tasks = np.bincount(number).astype(float)
    agreed = np.bincount(number, votes.label[left] == votes.label[right])
    differ = np.maximum(1 - agrees, 1e-6)
    differ *= min(float((tasks - agreed).sum() / differ.sum()), 1.0)
    expected = np.bincount(number, 1 - differ)
    # P(sum of coins >= x) is at most that of a binomial with their mean (Hoeffding, 1956), x above it.
    p = np.where(agreed > expected + 1, binom.sf(agreed - 1, tasks, expected / tasks), 1.0)
    person, partner = np.r_[key // people, key % people], np.r_[key % people, key // people]
    place = np.tile(np.arange(len(p)), 2)
    order = np.lexsort((p[place], person))
    known, first, tries = np.unique(person[order], return_index=True, return_counts=True)
    best = np.zeros(people, dtype=int)
    best[known] = place[order][first]
    p_value, with_whom = np.ones(people), np.full(people, -1)
    p_value[known] = np.minimum(p[best[known]] * tries, 1.0)  # as many tries as partners (Bonferroni)
    with_whom[known] = partner[order][first]
    return Agreement(p_value, with_whom, tasks[best], agreed[best], expected[best])


def vote_pairs(votes: Votes) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of all pairs of votes by two people on one task."""
    order = np.argsort(votes.item, kind="stable")
    item, none = votes.item[order], np.zeros(0, dtype=int)
    steps = [np.flatnonzero(item[s:] == item[:-s]) for s in range(1, int(np.bincount(item).max()))]
    left = np.concatenate([none, *(order[at] for at in steps)])
    right = np.concatenate([none, *(order[at + s] for s, at in enumerate(steps, 1))])
    two = votes.annotator[left] != votes.annotator[right]
    return left[two], right[two]


def _agrees(votes: Votes, without: np.ndarray, fit: Fit, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(Q,) probability that the person of vote `other` says what vote `one` says, a block of pairs at a time."""
    found = np.empty(len(one))
    for part in gen_batches(len(one), max(1, 4_000_000 // without.shape[1])):
        says = fit.says(votes.annotator[other[part]], votes.label[one[part]])[:, :, 0]
        found[part] = (without[other[part]] * says).sum(axis=1)
    return found


def benjamini_hochberg(p_value: np.ndarray, rate: float = ERROR_RATE) -> np.ndarray:
    """(A,) mask of the p-values p_(1) <= ... <= p_(r), r the largest rank with p_(r) <= rate * r / A."""
    order = np.argsort(p_value, kind="stable")
    below = p_value[order] <= rate * np.arange(1, len(order) + 1) / len(order)
    found = np.zeros(len(order), dtype=bool)
    found[order[: int(np.flatnonzero(below)[-1]) + 1 if below.any() else 0]] = True
    return found
