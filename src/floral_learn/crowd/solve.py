"""From votes, and features where there are some, to the truth, and to what of it is decided.

Votes can be read in several ways: with a classifier or without, from one start or another, and by believing those who
contradict the labels. Two readings that agree on most tasks, beyond chance, are one and the same in doubt about the
others: the one counts that foretells hidden votes better. Liars foretell each other as well as honest people do, so of
two that differ the one counts that more people fit. Known answers come before both.

Four things keep a label from being decided. The votes show no common truth: nobody's votes can be foretold from those
of the others, and the label is that of the majority. Or people with a third of the votes fit the opposing reading, as
far as their number can be told: five of eight liars in concert look exactly like three of eight. Or a reading that
foretells hidden votes as well says something else on this task. Or known answers show that labels which look sure are
wrong more often than that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import log_softmax, logsumexp, softmax

from floral_learn.crowd.votes import Votes

from .annotators import Agreement, agreement, later_half
from .features import OutOfFold
from .readings import (
    ERROR_RATE,
    LEAST,
    PLAIN,
    STRENGTHS,
    Answers,
    Fit,
    Reading,
    Stack,
    beyond_chance,
    fix_known,
    habits,
    hide_votes,
    leave_one_out,
    m_step,
    majority,
    read,
    stack,
    tempered,
)

# Chosen on LabelMe and rte, with and without liars (docs/results/crowd.md):
# share of the tasks on which the votes say nothing at all, since everybody was misled
MISLED = 0.15
# probability from which a label is decided, and what is promised: with many classes none is surer
DECIDED = 1 - MISLED
# share of the votes, of the smaller camp or unexplained, from which nobody can tell who is right
CAMP = 1 / 3


@dataclass(frozen=True)
class Solution:
    """What is held to be true, and how sure that is."""

    votes: Votes
    posterior: np.ndarray  # (n, K)
    # (n, K) what the votes say, before mistakes that people share were allowed for
    held: np.ndarray
    fit: Fit  # everybody's errors, given `held`
    leave_one_out: np.ndarray  # (V, K): posterior of the voted task without this vote
    decided: np.ndarray  # (n,)
    # (n,) tasks on which another reading, nearly as good, says something else
    contested: np.ndarray
    mirror: np.ndarray | None  # (n, K) the opposing reading where nobody can tell it from the truth
    # whether votes show a common truth at all; the labels are those of the majority where not
    checked: bool
    featured: bool  # whether features were listened to
    agreement: Agreement  # who agrees with whom

    @property
    def settled(self) -> bool:
        """False where nobody can tell a reading from the opposing one, or from no reading at all."""
        return self.mirror is None and self.checked


def solve(
    votes: Votes,
    Z: np.ndarray | None,
    *,
    rng: np.random.Generator,
    gold: np.ndarray | None = None,
) -> Solution:
    """Find the truth behind `votes`, with features `Z` (n, d) of the tasks where there are any."""
    features = None if Z is None else OutOfFold.split(Z, rng)
    crowd = count_copies_once(_Crowd(votes, features, gold, int(rng.integers(2**31))))
    found, turned, settled = crowd.believed()
    enough = len(votes.annotators) >= 3  # two who agree may be wrong together, as one alone may
    checked = found.featured or settled or (enough and shows_common_truth(votes, found))
    held = found.posterior if checked else fix_known(majority_with_ties(votes, found.posterior), gold)
    label = held.argmax(axis=1)
    fit = m_step(Answers.of(votes), held[:, :, None], Reading(found.strength))
    without = leave_one_out(held, fit, gold, found.temperature)
    pairs = agreement(votes, without, fit)
    sure, mirror = np.full(len(held), checked and enough), None
    unexplained = float(votes.per_annotator[pairs.found].sum() / votes.per_annotator.sum())
    camps = [other_camp(part, held, turned) for part in (votes, votes.some(later_half(votes)))]
    if checked and not settled and max(unexplained, *map(sum, camps)) >= CAMP:
        agree = turned.argmax(axis=1) == label
        same = same_reading(held, turned) and unexplained < CAMP
        sure, mirror = sure & agree & same, None if same else turned
    both = held if mirror is None else mixed(held, mirror, max(unexplained, *(share for share, _ in camps)))
    misled = crowd.share_misled(found)
    posterior = allow_for_shared_mistakes(both, misled, len(held.T))
    least, contested = other_opinions(found, label)
    decided = sure & ~contested & (posterior.max(axis=1) >= DECIDED) & survives_any_vote(votes, without, label)
    decided &= allow_for_shared_mistakes(least, misled, len(held.T)) >= DECIDED
    if gold is not None:
        decided |= gold >= 0
    return Solution(
        votes, fix_known(posterior, gold), held, fit, without, decided, contested, mirror, checked,
        found.featured, pairs,
    )  # fmt: skip


@dataclass(frozen=True)
class _Crowd:
    """Votes with what else is known, and the ways to read them."""

    votes: Votes
    features: OutOfFold | None
    gold: np.ndarray | None
    seed: int  # of the votes that are hidden

    @cached_property
    def answers(self) -> Answers:
        return Answers.of(self.votes)

    @cached_property
    def by_votes(self) -> Stack:
        """Readings of the votes alone."""
        return self.stacked(majority(self.votes))

    def stacked(self, start: np.ndarray, opinion: np.ndarray | None = None) -> Stack:
        hidden = hide_votes(self.answers, np.random.default_rng(self.seed))
        return stack(self.answers, hidden, start, self.gold, opinion)

    def believed(self) -> tuple[Stack, np.ndarray, bool]:
        """The readings to go by, the opposing one (n, K), and whether known answers settled which of the two it is."""
        found = self.by_votes
        if self.features is not None:
            # From what most say, and from what is read of it: liars may have taught the classifier, or led the reading.
            starts = (majority(self.votes), found.posterior)
            informed = [each for each in map(self.with_features, starts) if self.tells(each)]
            found = self.better(*informed) if len(informed) == 2 else (informed or [found])[0]
        turned = self.opposing(found)
        right = (self.on_known(each) for each in (turned, found.posterior))
        there, here = (np.log(allow_for_shared_mistakes(each, MISLED, len(turned.T))).sum() for each in right)
        known = float(there - here)
        # a wrong reading is favoured twenty to one once in twenty times
        settled = abs(known) > -np.log(ERROR_RATE)
        if (settled and known < 0) or not (settled or self.more_fit(found.posterior, turned)):
            return found, turned, settled
        other = self.with_features(turned) if found.featured else self.stacked(turned)
        if settled or self.more_fit(found.posterior, other.posterior):
            return other, found.posterior, settled
        return found, turned, settled

    def better(self, one: Stack, other: Stack) -> Stack:
        """Of two that are the same the one that foretells hidden votes better, else the one that more people fit."""
        if same_reading(one.posterior, other.posterior):
            return max(one, other, key=lambda each: each.log_score.sum())
        return other if self.more_fit(one.posterior, other.posterior) else one

    def more_fit(self, here: np.ndarray, there: np.ndarray) -> bool:
        """Whether `there` is another reading than `here`, and more people fit it, by more than a standard error."""
        share, error = other_camp(self.votes, here, there)
        return share - error > 0.5 and not same_reading(here, there)

    def with_features(self, start: np.ndarray) -> Stack:
        """Readings with the opinion of a classifier that learns from readings in turn."""
        opinion = self.taught(start)
        return self.stacked(softmax(opinion, axis=1), opinion)

    def tells(self, found: Stack) -> bool:
        """Whether the classifier foretells votes on tasks that it never saw better than the classes' shares do."""
        fit = m_step(self.answers, found.posterior[:, :, None], Reading(found.strength))
        says = fit.likelihood()[self.answers.pair, :, 0]
        assert found.opinion is not None
        by_features = (softmax(found.opinion, axis=1)[self.votes.item] * says).sum(axis=1)
        return beyond_chance(np.log(by_features / (says @ found.posterior.mean(axis=0))), self.votes.item)

    def taught(self, start: np.ndarray, refits: int = 3) -> np.ndarray:
        """The opinion (n, K) of a classifier, which never judges a task that it learned from, in logarithms."""
        assert self.features is not None
        has_vote, reading = self.votes.per_item > 0, Reading(STRENGTHS[1])
        learned = (has_vote if self.gold is None else has_vote | (self.gold >= 0))[:, None]
        posterior = fix_known(start, self.gold)
        for turn in range(refits + 1):
            opinion = self.features.log_probability(fix_known(posterior, self.gold) * learned)
            fit = m_step(self.answers, posterior[:, :, None], reading)
            opinion = log_softmax(self.scale(opinion, fit) * opinion, axis=1)
            start = posterior if turn else np.exp(opinion)
            posterior = read(self.answers, reading, start, gold=self.gold, opinion=opinion).posterior
        return opinion

    def scale(self, opinion: np.ndarray, fit: Fit) -> float:
        """How often the classifier's logarithms count: so that votes on tasks that it never saw are most probable."""
        said = self.answers.by_task @ np.log(fit.likelihood()[:, :, 0])

        def unlikely(scale: float) -> float:
            return -float(logsumexp(log_softmax(scale * opinion, axis=1) + said, axis=1).sum())

        return float(minimize_scalar(unlikely, bounds=(0, 10), method="bounded").x)

    def opposing(self, found: Stack) -> np.ndarray:
        """(n, K) what is read if those are believed who contradict the labels."""
        start, opinion = opposing_start(self.votes, found.posterior), None
        if found.featured:
            opinion = self.taught(start)
            start = softmax(opinion, axis=1)
        reading = found.fits[found.best].reading
        return read(self.answers, reading, start, gold=self.gold, opinion=opinion).posterior

    def on_known(self, posterior: np.ndarray) -> np.ndarray:
        """(m,) probability of each known answer by the votes on its task, of people as they err on all other tasks."""
        if self.gold is None:
            return np.ones(0)
        known = np.flatnonzero((self.gold >= 0) & (self.votes.per_item > 0))
        rest = np.where((self.gold >= 0)[:, None], 0.0, posterior)
        fit = m_step(self.answers, rest[:, :, None], Reading(STRENGTHS[1]))
        share = rest.sum(axis=0) + 1
        log = self.answers.by_task[known] @ np.log(fit.likelihood()[:, :, 0]) + np.log(share / share.sum())
        return softmax(log, axis=1)[np.arange(len(known)), self.gold[known]]

    def share_misled(self, found: Stack) -> float:
        """Share of the tasks on which the votes say nothing: MISLED, or more if known answers are far likelier then."""
        right, k = self.on_known(found.posterior), len(self.votes.classes)

        def unlikely(misled: float) -> float:
            return -float(np.log(allow_for_shared_mistakes(right, misled, k)).sum())

        most = minimize_scalar(unlikely, bounds=(MISLED, 1), method="bounded")
        return float(most.x) if unlikely(MISLED) - most.fun > -np.log(ERROR_RATE) else MISLED


def count_copies_once(crowd: _Crowd) -> _Crowd:
    """The votes as they are, or with one vote per task for all who copy each other.

    Two who always agree may both know the answers, or be one judge asked twice: what the others say is foretold better
    by the right one of the two.
    """
    votes, answers, reading = crowd.votes, crowd.answers, PLAIN[1]
    first = read(answers, reading, majority(votes), gold=crowd.gold).posterior
    fit = m_step(answers, first[:, :, None], reading)
    pairs = agreement(votes, leave_one_out(first, fit, crowd.gold), fit)
    copies = np.flatnonzero(pairs.found & (pairs.agreed >= DECIDED * pairs.tasks))
    if not len(copies):
        return crowd
    people, both = len(votes.annotators), (copies, pairs.partner[copies])
    bloc = connected_components(coo_array((np.ones(len(copies)), both), shape=(people, people)), directed=False)[1]
    _, place, sharing = np.unique(votes.item * people + bloc[votes.annotator], return_inverse=True, return_counts=True)
    once = replace(crowd, votes=replace(votes, weight=votes.weight / sharing[place]))
    others = ~np.isin(votes.annotator[crowd.by_votes.hidden], both)
    return max(crowd, once, key=lambda each: each.by_votes.log_score[others].sum())


def same_reading(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two readings (n, K) agree on more than half of the tasks beyond chance (Cohen's kappa above 1/2)."""
    first, second = one.argmax(axis=1), other.argmax(axis=1)
    shares = (np.bincount(label, minlength=one.shape[1]) / len(label) for label in (first, second))
    by_chance = float(np.dot(*shares))
    return (first == second).mean() - by_chance > 0.5 * (1 - by_chance) or bool((first == second).all())


def opposing_start(votes: Votes, posterior: np.ndarray) -> np.ndarray:
    """(n, K) what those say who contradict the label of each task; the posterior where nobody does."""
    n, k = posterior.shape
    said = votes.shares.copy()
    said[np.arange(n), posterior.argmax(axis=1)] = 0.0
    total = said.sum(axis=1, keepdims=True)
    return np.where(total > 0, (said + 0.1 / k) / (total + 0.1), posterior)


def other_camp(votes: Votes, here: np.ndarray, there: np.ndarray) -> tuple[float, float]:
    """Share of the camp of `there` (n, K) in the votes of people who fit one of the two readings; its standard error.

    Everybody belongs to the camp of the reading that they fit better, as far as that is not chance. As far as it may be
    chance, nobody knows which camp it is.
    """
    (right, fits), (opposed, fits_other) = (surplus(votes, reading) for reading in (here, there))
    fit = np.where(right >= opposed, fits, fits_other)
    size, unknown = votes.per_annotator * fit, votes.per_annotator * (1 - fit)
    share = float(size @ (opposed > right)) / max(float(size.sum()), 1e-12)
    return share, float(np.sqrt(unknown @ unknown) / votes.per_annotator.sum())


def surplus(votes: Votes, posterior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(A,) right answers beyond those of a person who ignores the tasks, and the share of that which is not chance.

    With s the surplus and v the variance that chance gives it, that share is 1 - v / s^2 where positive (James and
    Stein, 1961): nearly 1 for who is right twenty times of twenty, 0 for who is hardly better than a coin.
    """
    label = posterior.argmax(axis=1)
    shares = np.bincount(label, minlength=posterior.shape[1]) / len(label)
    by_chance = votes.belief(np.broadcast_to(shares, (len(votes), len(shares))))
    found = votes.per_person(votes.right(label[votes.item]) - by_chance)
    variance = votes.per_person(by_chance * (1 - by_chance))
    return found, np.where(found > 0, np.maximum(1 - variance / np.maximum(found**2, 1e-12), 0.0), 0.0)


def shows_common_truth(votes: Votes, found: Stack) -> bool:
    """Whether hidden votes are foretold better by what others say than by each person's own habit."""
    at = found.hidden
    who, weight = votes.annotator[at], votes.weight[at]
    given = votes.per_annotator[who] + 1
    # the hidden vote left out
    habit = (habits(votes)[who, votes.label[at]] * given - weight) / (given - weight)
    return beyond_chance(found.log_score - np.log(habit), votes.item[at])


def majority_with_ties(votes: Votes, posterior: np.ndarray) -> np.ndarray:
    """(n, K) shares of the votes, one vote more spread over the classes as a reading has them."""
    return (votes.shares + posterior) / (votes.per_item[:, None] + 1)


def other_opinions(found: Stack, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of all readings that foretell hidden votes no worse than the best one: the lowest probability (n,) that one gives
    to the label, and whether one says something else."""
    item, rows = found.fits[0].answers.votes.item[found.hidden], np.arange(len(label))
    least, contested = np.ones(len(label)), np.zeros(len(label), dtype=bool)
    for foretold, fit in zip(found.foretold, found.fits, strict=True):
        if not beyond_chance(np.log(found.foretold[found.best] / foretold), item):
            posterior = tempered(fit.posterior, found.temperature)
            least = np.minimum(least, posterior[rows, label])
            contested |= posterior.argmax(axis=1) != label
    return least, contested


def survives_any_vote(votes: Votes, without: np.ndarray, label: np.ndarray) -> np.ndarray:
    """(n,) whether the label is twice as probable as all others without any one of its votes, whichever it is."""
    kept = without[np.arange(len(votes)), label[votes.item]] > 1 - CAMP
    return np.bincount(votes.item, ~kept, minlength=len(label)) == 0


def mixed(held: np.ndarray, mirror: np.ndarray, camp: float) -> np.ndarray:
    """Both readings, the opposing one by the size of its camp, or as far as the label stays the most probable class."""
    rows, label = np.arange(len(held)), held.argmax(axis=1)
    ahead, gain = held[rows, label][:, None] - held, np.maximum(mirror - mirror[rows, label][:, None], 0.0)
    most = np.where(gain > 0, ahead / np.maximum(ahead + gain, LEAST), 1.0).min(axis=1)
    weight = np.minimum(camp, most * (1 - np.sqrt(LEAST)))[:, None]
    return (1 - weight) * held + weight * mirror


def allow_for_shared_mistakes(probability: np.ndarray, misled: float, n_classes: int) -> np.ndarray:
    """Probabilities of classes if the votes say nothing at all on a share `misled` of the tasks.

    People who look at the same task make the same mistake, which hidden votes cannot show.
    """
    return (1 - misled) * probability + misled / n_classes
