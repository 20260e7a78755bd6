"""How far each person can be relied on, how sure that is, and whom the evidence names.

Naming somebody is a decision with an error rate. The null hypothesis is a weak but honest person, who knows one answer
in five and otherwise guesses by habit; held against it are a person who guesses always, and one who avoids the truth,
from the first answer on or in the later half of the answers. The truth is not known: it has the probabilities that the
other people's votes give it. The likelihood ratio of the two, which is the most powerful test there is (Neyman and
Pearson, 1933), has a p-value, from answers drawn anew. Named are those whom Benjamini and Hochberg's procedure (1995)
finds at 5 %: where everybody is honest, somebody is named in at most one crowd of twenty; where some are not, at most
one in twenty of the named is honest, on average. Where nobody can tell a reading from its mirror image, nobody is.

The other question is who agrees with whom beyond what the tasks explain: copies, two accounts of one person, people in
concert. Given the truth, people vote independently in every reading. So the probability that b says what a said on a
task is sum_c P(c | all votes but b's) M_b[c, what a said], and the agreements of a pair are a sum of such coins. Tasks
are hard and answers tempting, for which people agree more often than that: by how much they do on the whole is allowed
for. This names nobody: honest people agree, too, where the labels are wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import logsumexp
from scipy.stats import beta, binom
from sklearn.utils import gen_batches

from floral_learn.crowd.votes import Votes

from .readings import ERROR_RATE, Fit, habits

# Chosen so that people who know one answer in five are not named (benchmarks/crowd.py, honest).
WEAK = 0.2  # share of the answers that a weak but honest person knows


def judge(
    fit: Fit, held: np.ndarray, without: np.ndarray, mirror: np.ndarray | None, settled: bool, pairs: Agreement
) -> dict[str, Any]:
    """Share of right answers with an interval, and the evidence against "weak but honest".

    The label of a task leans towards the person's own vote, and without that vote it is less often right. Counted with
    it the share of right answers is too high, without it too low: the interval reaches from the lower end of one to the
    upper end of the other (Jeffreys' interval of a binomial share, at each end), and farther by the share of labels
    that the votes themselves expect to be wrong. Where nobody can tell a reading from the opposing one, `mirror`, it
    spans both. `held` (n, K) are the probabilities of the labels, `without` (V, K) those without each vote.
    """
    votes = fit.answers.votes
    n = np.maximum(votes.per_annotator, 1e-9)
    counted_out = votes.per_person(votes.belief(without))
    counted_in = np.maximum(votes.per_person(votes.belief(held[votes.item])), counted_out)
    low = beta.ppf(ERROR_RATE / 2, counted_out + 0.5, n - counted_out + 0.5)
    high = beta.ppf(1 - ERROR_RATE / 2, counted_in + 0.5, np.maximum(n - counted_in, 0.0) + 0.5)
    wrong = float(1 - held.max(axis=1).mean())
    low, high = np.maximum(low - wrong, 0.0), np.minimum(high + wrong, 1.0)
    if mirror is not None:
        other = np.clip(votes.per_person(votes.belief(mirror[votes.item])), 0, n)
        low = np.minimum(low, beta.ppf(ERROR_RATE / 2, other + 0.5, n - other + 0.5))
        high = np.maximum(high, beta.ppf(1 - ERROR_RATE / 2, other + 0.5, n - other + 0.5))
    middle = (counted_in + counted_out) / 2
    p_value, evidence = _tests(votes, without)
    named = benjamini_hochberg(p_value) if settled else np.zeros(len(n), dtype=bool)
    return {
        "annotator": votes.annotators,
        "votes": np.round(votes.per_annotator).astype(int),
        "reliability": (middle + 0.5) / (n + 1),
        "low": low,
        "high": high,
        "named": named,
        "p_value": p_value,
        "evidence": np.where(named, evidence, ""),
        "agrees_with": _partners(pairs, votes.annotators),
        "most_confused": _most_confused(fit, votes),
    }


def _tests(votes: Votes, without: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """(A,) p-values, and in words what each rests on: votes that name a class."""
    votes, without = votes.some(~votes.negative), without[~votes.negative]
    if len(votes.classes) < 2 or not len(votes):
        return np.ones(len(votes.annotators)), [""] * len(votes.annotators)
    every, later = np.ones(len(votes), dtype=bool), later_half(votes)  # some are honest at first
    p_value, part = weaker_than_weak(votes, without, [every, later])
    inside, label = np.where(part[votes.annotator] == 0, every, later), without.argmax(axis=1)
    weak = WEAK * without[np.arange(len(votes)), label] + (1 - WEAK) * habits(votes)[votes.annotator, label]
    counts = (votes.per_person(inside * values) for values in (votes.label == label, 1.0, weak))
    return p_value, [
        f"agrees with the labels that the others give on {agreed:.0f} of {tasks:.0f} tasks"
        f"{', the later half of their answers' if half else ''}; a weak but honest person would on {expected:.0f} "
        f"(p = {p:.1g})"
        for agreed, tasks, expected, half, p in zip(*counts, part.tolist(), p_value, strict=True)
    ]


def weaker_than_weak(
    votes: Votes, truth: np.ndarray, parts: list[np.ndarray], draws: int = 200
) -> tuple[np.ndarray, np.ndarray]:
    """(A,) p-values of "knows at least the share WEAK of the answers", and the part (A,) that says most against it.

    `truth` (V, K) holds the probabilities of each voted item's class without the vote. With h the habit of a person, a
    weak but honest one says v with probability p(v) = WEAK truth(v) + (1 - WEAK) h(v); who guesses does with h(v); who
    avoids the truth says it WEAK times as often: h(v) (1 - (1 - WEAK) truth(v)), up to a factor. Each of the two may
    hold in each of the `parts` (masks (V,)), and is as probable before. exp(T), the mean of their likelihood ratios to
    p, has the expectation 1 under p, and T falls with every answer that is true. P(T >= t) under p is the expectation
    of exp(-T) [T >= t] under the alternatives, from which answers are drawn; counting the given answers as one draw
    more keeps its error rate (Harrison, 2012).
    """
    people, k, ways = len(votes.annotators), len(votes.classes), 2 * len(parts)

    def ratios(habit: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(V, K) p, and (2, V, K) log-likelihood ratios to it."""
        weak = WEAK * truth + (1 - WEAK) * habit
        avoids = habit * (1 - (1 - WEAK) * truth)
        avoids /= avoids.sum(axis=1, keepdims=True)
        return weak, np.log(np.stack([habit, avoids])) - np.log(weak)

    habit, rows = habits(votes)[votes.annotator], np.arange(len(votes))
    said = ratios(habit, truth)[1][:, rows, votes.label]
    found = np.stack([votes.per_person(part * way) for part in parts for way in said])
    best = found.argmax(axis=0) // 2
    evidence = logsumexp(found, axis=0) - np.log(ways)
    p_value = np.ones(people)
    suspects = np.flatnonzero(evidence > 0)
    at = np.flatnonzero(np.isin(votes.annotator, suspects))
    if not len(at):
        return p_value, best
    weak, ratio = ratios(habit[at], truth[at])
    inside = np.stack(parts)[:, at]
    scores = (ratio[None] * (votes.weight[at] * inside)[:, None, :, None]).reshape(ways, len(at), k)
    answers = np.where(inside[:, None, :, None], weak * np.exp(ratio), weak).reshape(ways, len(at), k).cumsum(axis=2)
    member = csr_array((np.ones(len(at)), (np.arange(len(at)), np.searchsorted(suspects, votes.annotator[at]))))
    rng, total = np.random.default_rng(0), np.exp(-evidence[suspects])
    for draw in range(draws):
        vote = np.minimum((rng.random((len(at), 1)) > answers[draw % ways]).sum(axis=1), k - 1)
        again = logsumexp([score[np.arange(len(at)), vote] @ member for score in scores], axis=0) - np.log(ways)
        total += np.where(again >= evidence[suspects] - 1e-9, np.exp(-again), 0.0)
    p_value[suspects] = np.minimum(total / (draws + 1), 1.0)
    return p_value, best


def _partners(pairs: Agreement, names: np.ndarray) -> list[str]:
    """With whom a person agrees beyond what the tasks explain, in words; empty for everybody else."""
    return [
        f"{names[pairs.partner[a]]}: on {pairs.agreed[a]:.0f} of {pairs.tasks[a]:.0f} tasks; the tasks "
        f"explain {pairs.expected[a]:.0f} (p = {pairs.p_value[a]:.1g})"
        if found
        else ""
        for a, found in enumerate(pairs.found.tolist())
    ]


def _most_confused(fit: Fit, votes: Votes) -> list[str]:
    """The most frequent mistake of each person, in words; empty where there was less than one."""
    answers, counts, k = fit.answers, fit.counts.sum(axis=2), len(votes.classes)
    said = (answers.answer % k)[:, None] == np.arange(k)
    # the answer is right there
    counts = np.where(said == (answers.answer < k)[:, None], 0.0, counts)
    truth, times = counts.argmax(axis=1), counts.max(axis=1)
    order = np.argsort(-times, kind="stable")
    worst = np.zeros(len(fit.total), dtype=int)
    worst[answers.person[order][::-1]] = order[::-1]
    return [
        f"says {votes.answers[answers.answer[p]]} for {votes.classes[truth[p]]} ({times[p]:.0f}x)"
        if times[p] >= 0.95
        else ""
        for p in worst.tolist()
    ]


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
    # as many tries as partners (Bonferroni)
    p_value[known] = np.minimum(p[best[known]] * tries, 1.0)
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


def later_half(votes: Votes) -> np.ndarray:
    """(V,) whether a vote is in the later half of its person's votes: some are honest at first."""
    order = np.argsort(votes.annotator, kind="stable")
    who, later = votes.annotator[order], np.empty(len(votes), dtype=bool)
    later[order] = 2 * np.arange(len(who)) >= np.searchsorted(who, who) + np.searchsorted(who, who, "right")
    return later
