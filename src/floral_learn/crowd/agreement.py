"""Who agrees with whom beyond what the tasks explain.

Two people agree because both know the answer, because both share a habit, or because a task is hard and a wrong answer
tempting. What is left is one who copies, two accounts of one person, two judges of the same make, or people who agreed
on their answers beforehand. Two tests must say so of a pair, since each of them can be misled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import softmax
from scipy.stats import binom, norm

from floral_learn.labels.votes import Votes

from .readings import ROUNDS, class_shares, habits, log_likelihood

ERROR_RATE = 0.05  # of every statement about a person
COPIES = 0.9  # share of common tasks on which those agree who count once; chosen on two judges beside five people


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

    def counted_once(self, votes: Votes) -> Votes:
        """The votes, with one vote per task for all who nearly always agree, and beyond what the tasks explain."""
        found = np.flatnonzero(self.found & (self.agreed >= COPIES * self.tasks))
        if not len(found):
            return votes
        people = len(votes.annotators)
        edges = coo_array((np.ones(len(found)), (found, self.partner[found])), shape=(people, people))
        bloc = connected_components(edges, directed=False)[1][votes.annotator]
        _, place, sharing = np.unique(votes.item * people + bloc, return_inverse=True, return_counts=True)
        return votes.reweighted(votes.weight / sharing[place])


@dataclass(frozen=True)
class _Pairs:
    """P pairs of people with common tasks, and Q pairs of votes on one task."""

    left: np.ndarray  # (Q,) numbers of votes
    right: np.ndarray
    number: np.ndarray  # (Q,) which pair of people
    one: np.ndarray  # (P,) numbers of people
    other: np.ndarray
    tasks: np.ndarray  # (P,)
    agreed: np.ndarray


def agreement(votes: Votes, posterior: np.ndarray, matrix: np.ndarray) -> Agreement:
    """Compare how often each pair agrees with what the tasks explain, given a reading and its confusion matrices."""
    people = len(votes.annotators)
    pairs = _common_tasks(votes)
    if not len(pairs.left) or len(votes.classes) < 2:
        zero = np.zeros(people)
        return Agreement(np.ones(people), np.full(people, -1), zero, zero, zero)
    expected, p = _beyond_skill(votes, pairs)
    chosen = np.flatnonzero(p < ERROR_RATE)
    if len(chosen):
        by_truth, second = _beyond_truth(votes, pairs, chosen, posterior, matrix)
        p[chosen], expected[chosen] = np.maximum(p[chosen], second), np.maximum(expected[chosen], by_truth)
    return _per_person(people, pairs, p, expected)


def unexplained(votes: Votes, without: np.ndarray, matrix: np.ndarray) -> float:
    """Share of the votes of people who agree with somebody more than the confusion `matrix` (A, K, K) explains.

    The truth of a task has the probabilities `without` (V, K) the person's own vote. All pairs together disagree less
    often than that, since tasks are hard and answers tempting: by how much less is allowed for. Unlike `agreement`,
    which asks about a pair, this asks whether the reading can be right: where it is not, honest people agree, too.
    """
    pairs = _common_tasks(votes)
    if not len(pairs.left):
        return 0.0
    agrees = np.einsum("pcv,pcv->pc", matrix[votes.annotator[pairs.left]], matrix[votes.annotator[pairs.right]])
    differ = np.maximum(1 - ((without[pairs.left] + without[pairs.right]) / 2 * agrees).sum(axis=1), 1e-6)
    differ *= min(float((pairs.tasks - pairs.agreed).sum() / differ.sum()), 1.0)
    expected = np.bincount(pairs.number, 1 - differ)
    found = _per_person(len(votes.annotators), pairs, _upper_tail(pairs.agreed, pairs.tasks, expected), expected).found
    return float(votes.per_annotator[found].sum() / votes.per_annotator.sum())


def _upper_tail(agreed: np.ndarray, tasks: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """P(sum of Bernoulli(p_i) >= x) is at most that of a binomial with their mean (Hoeffding, 1956), x above it."""
    return np.where(agreed > expected + 1, binom.sf(agreed - 1, tasks, expected / tasks), 1.0)


def _per_person(people: int, pairs: _Pairs, p: np.ndarray, expected: np.ndarray) -> Agreement:
    """The best partner of everybody; the p-value allows for as many tries as there are partners."""
    person, partner = np.r_[pairs.one, pairs.other], np.r_[pairs.other, pairs.one]
    place = np.tile(np.arange(len(p)), 2)
    order = np.lexsort((p[place], person))
    person, partner, place = person[order], partner[order], place[order]
    known, first, tries = np.unique(person, return_index=True, return_counts=True)
    p_value, with_whom, best = np.ones(people), np.full(people, -1), np.zeros(people, dtype=int)
    p_value[known] = np.minimum(p[place[first]] * tries, 1.0)
    with_whom[known], best[known] = partner[first], place[first]
    return Agreement(p_value, with_whom, pairs.tasks[best], pairs.agreed[best], expected[best])


def _common_tasks(votes: Votes) -> _Pairs:
    order = np.argsort(votes.item, kind="stable")
    item, people = votes.item[order], len(votes.annotators)
    steps = [np.flatnonzero(item[s:] == item[:-s]) for s in range(1, int(np.bincount(item).max()))]
    none = np.zeros(0, dtype=int)
    left = np.concatenate([none, *(order[at] for at in steps)])
    right = np.concatenate([none, *(order[at + s] for s, at in enumerate(steps, 1))])
    swap = votes.annotator[left] > votes.annotator[right]
    left, right = np.where(swap, right, left), np.where(swap, left, right)
    pair, number = np.unique(votes.annotator[left] * people + votes.annotator[right], return_inverse=True)
    same = votes.label[left] == votes.label[right]
    return _Pairs(
        left, right, number, pair // people, pair % people, np.bincount(number).astype(float), np.bincount(number, same)
    )


def _beyond_skill(votes: Votes, pairs: _Pairs) -> tuple[np.ndarray, np.ndarray]:
    """(P,) expected agreements and p-values if pairs differ in skill alone.

    Agreement beyond that of two habits (Cohen's kappa, 1960) is a product of two skills, however hard and tempting the
    tasks are, as long as they are so for everybody (Kleindessner and Awasthi, 2018). Skills are fitted to all pairs,
    those far off weighed down (Huber, 1964), and a pair is held against skills that do not count it.
    """
    people, habit = len(votes.annotators), habits(votes)
    one, other, n = pairs.one, pairs.other, pairs.tasks
    by_habit = (habit[one] * habit[other]).sum(axis=1)
    kappa = (pairs.agreed / n - by_habit) / (1 - by_habit)
    error = 0.5 / (1 - by_habit) / np.sqrt(n)  # standard error of kappa, at most
    skill = np.full(people, 0.5)
    for _ in range(ROUNDS):
        weight = n * np.minimum(1.0, error / np.maximum(np.abs(kappa - skill[one] * skill[other]), 1e-12))
        above, below = (
            np.bincount(one, weight * ours, people) + np.bincount(other, weight * theirs, people)
            for ours, theirs in ((kappa * skill[other], kappa * skill[one]), (skill[other] ** 2, skill[one] ** 2))
        )
        skill = (skill + np.clip(above / np.maximum(below, 1e-9), -1, 1)) / 2
    without = []
    for person, partner in ((one, other), (other, one)):
        rest = below[person] - weight * skill[partner] ** 2
        alone = np.clip((above[person] - weight * kappa * skill[partner]) / np.maximum(rest, 1e-9), -1, 1)
        without.append((alone, np.where(rest > 1e-9, rest, np.nan)))
    (ours, n_ours), (theirs, n_theirs) = without
    rate = np.clip(by_habit + (1 - by_habit) * ours * theirs, 1e-3, 1 - 1e-3)
    # Of a binomial, and of the skills: each rests on so many common tasks with others.
    variance = n * rate * (1 - rate) + 0.25 * n**2 * (theirs**2 / n_ours + ours**2 / n_theirs)
    p = norm.sf((pairs.agreed - n * rate - 0.5) / np.sqrt(variance))
    return n * rate, np.where(np.isnan(p) | (pairs.agreed < n * rate + 1), 1.0, p)


def _beyond_truth(
    votes: Votes, pairs: _Pairs, chosen: np.ndarray, posterior: np.ndarray, matrix: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Expected agreements and p-values of the pairs `chosen`, if each of the two errs independently given the truth.

    The truth is what all the others say, and the pair's confusion matrices are counted from it. On a task with truth c
    two people agree with probability sum_v M_a[c, v] M_b[c, v].
    """
    k = len(votes.classes)
    rows = np.flatnonzero(np.isin(pairs.number, chosen))
    number = np.searchsorted(chosen, pairs.number[rows])
    left, right = pairs.left[rows], pairs.right[rows]
    own = log_likelihood(votes, matrix)
    total = votes.by_item @ own + class_shares(posterior)
    truth = softmax(total[votes.item[left]] - own[left] - own[right], axis=1)
    counted = []
    for vote in (left, right):
        counts = np.full((len(chosen), k, k), 1 / k)  # pair, vote, truth
        np.add.at(counts, (number, votes.label[vote]), truth)
        counted.append(counts / counts.sum(axis=1, keepdims=True))
    rate = np.einsum("pvc,pvc->pc", *counted)[number]
    expected = np.bincount(number, (truth * rate).sum(axis=1), len(chosen))
    return expected, _upper_tail(pairs.agreed[chosen], pairs.tasks[chosen], expected)


def benjamini_hochberg(p_value: np.ndarray, rate: float = ERROR_RATE) -> np.ndarray:
    """(A,) mask of the p-values p_(1) <= ... <= p_(r), r the largest rank with p_(r) <= rate * r / A."""
    order = np.argsort(p_value, kind="stable")
    below = p_value[order] <= rate * np.arange(1, len(order) + 1) / len(order)
    found = np.zeros(len(order), dtype=bool)
    found[order[: int(np.flatnonzero(below)[-1]) + 1 if below.any() else 0]] = True
    return found
