"""From votes, and features where there are some, to the truth, and to what of it is decided.

Three things keep a label from being decided. The votes show no common truth: nobody's votes can be foretold from those
of the others, and the label is that of the majority. Or believing those who contradict the labels gives another reading
that many people fit better: which of the two is right is not in the votes. Or a reading that foretells hidden votes as
well says something else on this task.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import softmax

from floral_learn.crowd.votes import Votes

from .camps import later_half, opposing_start, other_camp
from .features import OutOfFold
from .pairs import Agreement, agreement
from .readings import (
    ERROR_RATE,
    PLAIN,
    Answers,
    Fit,
    Hidden,
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
MISLED = 0.15  # share of the tasks on which the votes say nothing at all, since everybody was misled
DECIDED = 1 - MISLED  # probability from which a label is decided, and what is promised: with many classes none is surer
CAMP = 1 / 3  # share of the votes, of the smaller camp or unexplained, from which nobody can tell who is right
OPINION = 2.0  # how often the classifier's log-probabilities count beside those of the votes


@dataclass(frozen=True)
class Solution:
    """What is held to be true, and how sure that is."""

    votes: Votes
    posterior: np.ndarray  # (n, K)
    held: np.ndarray  # (n, K) what the votes say, before mistakes that people share were allowed for
    fit: Fit  # everybody's errors, given `held`
    leave_one_out: np.ndarray  # (V, K): posterior of the voted task without this vote
    decided: np.ndarray  # (n,)
    contested: np.ndarray  # (n,) tasks on which another reading, nearly as good, says something else
    mirror: np.ndarray | None  # (n, K) the opposing reading where nobody can tell it from the truth
    checked: bool  # whether votes show a common truth at all; the labels are those of the majority where not
    view: int | None  # which representation of the tasks was chosen
    featured: bool  # whether features were listened to
    agreement: Agreement | None  # None where votes are too many to be paired

    @property
    def settled(self) -> bool:
        """False where nobody can tell a reading from the opposing one, or from no reading at all."""
        return self.mirror is None and self.checked


def solve(
    votes: Votes,
    views: list[np.ndarray] | None,
    *,
    rng: np.random.Generator,
    gold: np.ndarray | None = None,
) -> Solution:
    """Find the truth behind `votes`, with features `views` of the tasks where there are any."""
    features = None if views is None else OutOfFold.split(views, rng)
    crowd, found, featured = best_crowd(votes, features, gold, int(rng.integers(2**31)))
    turned = crowd.opposing(found, featured)
    known = crowd.gold_evidence(turned, found)
    settled = abs(known) > -np.log(ERROR_RATE)  # a wrong reading is favoured twenty to one once in twenty times at most
    enough = len(votes.annotators) >= 3  # two who agree may be wrong together, as one alone may
    checked = featured or settled or (enough and shows_common_truth(votes, found))
    same = (found.posterior.argmax(axis=1) == turned.argmax(axis=1)).mean() >= 0.5
    by_camp = not same and other_camp(votes, found.posterior, turned, found.strength) > 0.5
    if known > 0 if settled else by_camp:
        found, turned = crowd.turn(turned, featured), found.posterior
    held = found.posterior if checked else fix_known(majority_with_ties(votes, found.posterior), gold)
    label, answers = held.argmax(axis=1), Answers(votes)
    fit = m_step(answers, held[:, :, None], Reading(found.strength))
    without = leave_one_out(answers, held, fit, gold, found.temperature)
    pairs = agreement(votes, without, fit)
    camp, sure, mirror = 0.0, np.full(len(held), checked and enough), None
    if checked and not settled:
        unexplained = votes.share_of(pairs.found)
        camps = (other_camp(part, held, turned) for part in (votes, votes.some(later_half(votes))))
        camp = max(unexplained, *camps)
    if camp >= CAMP:
        # An opposing reading that agrees on most tasks is the same one, in doubt on the others.
        agree = turned.argmax(axis=1) == label
        same = agree.mean() >= 0.5 and unexplained < CAMP
        sure, mirror = sure & agree & same, None if same else turned
    posterior = fix_known(allow_for_shared_mistakes(held if mirror is None else mixed(held, mirror, camp)), gold)
    least, contested = other_opinions(found, label)
    decided = sure & ~contested & (posterior.max(axis=1) >= DECIDED) & survives_any_vote(votes, without, label)
    decided &= (1 - MISLED) * least + MISLED / held.shape[1] >= DECIDED
    if gold is not None:
        decided |= gold >= 0
    view = None if crowd.features is None else crowd.features.chosen or 0
    return Solution(votes, posterior, held, fit, without, decided, contested, mirror, checked, view, featured, pairs)


class _Crowd:
    """Votes with what else is known, and the ways to read them."""

    def __init__(self, votes: Votes, features: OutOfFold | None, gold: np.ndarray | None, seed: int) -> None:
        self.votes, self.features, self.gold = votes, features, gold
        self.answers = Answers(votes)
        self.hidden: Hidden = hide_votes(self.answers, np.random.default_rng(seed))

    def best_stack(self) -> tuple[Stack, bool]:
        """Readings by votes alone, or with features where these foretell hidden votes better."""
        found = stack(self.answers, self.hidden, majority(self.votes), self.gold)
        if self.features is None:
            return found, False
        # From what most say, and from what is read of it: liars may have taught the classifier, or led the reading.
        starts = (majority(self.votes), found.posterior)
        opinion, informed = max((self.with_features(start) for start in starts), key=lambda pair: pair[1].score)
        if not self.tells(opinion, informed):
            return found, False
        # Votes can be hidden on tasks with several only. Where these are few, somebody chose them for being hard.
        few = np.mean(np.bincount(self.votes.item, minlength=len(self.votes.items)) > 1) < 0.5
        return (informed, True) if few or informed.score > found.score else (found, False)

    def with_features(self, start: np.ndarray) -> tuple[np.ndarray, Stack]:
        """The opinion of a classifier that learns from readings in turn, and readings with it."""
        opinion = self.taught(start)
        return opinion, stack(self.answers, self.hidden, softmax(opinion, axis=1), self.gold, opinion)

    def tells(self, opinion: np.ndarray, found: Stack) -> bool:
        """Whether the classifier foretells votes on tasks that it never saw better than the classes' shares do."""
        votes = self.votes
        fit = m_step(self.answers, found.posterior[:, :, None], Reading(found.strength))
        says = fit.likelihood()[self.answers.pair, :, 0]
        by_features = (softmax(opinion / OPINION, axis=1)[votes.item] * says).sum(axis=1)
        return beyond_chance(np.log(by_features / (says @ found.posterior.mean(axis=0))), votes.item)

    def taught(self, start: np.ndarray, refits: int = 3) -> np.ndarray:
        """The opinion (n, K) of a classifier, which never judges a task that it learned from, in logarithms."""
        assert self.features is not None
        has_vote = self.votes.per_item > 0
        learned = (has_vote if self.gold is None else has_vote | (self.gold >= 0))[:, None]
        posterior = fix_known(start, self.gold)
        fit = m_step(self.answers, posterior[:, :, None], Reading(4.0))
        said = self.answers.by_task @ np.log(fit.likelihood()[:, :, 0])
        posterior = np.exp(self.features.log_probability(posterior * learned, said))
        for _ in range(refits):
            opinion = OPINION * self.features.log_probability(fix_known(posterior, self.gold) * learned)
            posterior = read(self.answers, Reading(4.0), posterior, gold=self.gold, opinion=opinion).posterior
        return opinion

    def opposing(self, found: Stack, featured: bool) -> np.ndarray:
        """(n, K) what is read if those are believed who contradict the labels."""
        start = opposing_start(self.votes, found.posterior)
        opinion = None
        if featured:
            opinion = self.taught(start)
            start = softmax(opinion, axis=1)
        reading = found.fits[found.best].reading
        return read(self.answers, reading, start, gold=self.gold, opinion=opinion).posterior

    def turn(self, start: np.ndarray, featured: bool) -> Stack:
        """The readings from another start."""
        return self.with_features(start)[1] if featured else stack(self.answers, self.hidden, start, self.gold)

    def gold_evidence(self, other: np.ndarray, found: Stack) -> float:
        """Log-likelihood of the votes on known answers: by how much `other` is better, both without these tasks."""
        if self.gold is None:
            return 0.0
        known = np.flatnonzero(self.gold[self.votes.item] >= 0)
        rest, truth = self.answers.without(known), self.gold[self.votes.item[known]]
        weight = self.votes.weight[known]
        fits = (m_step(rest, q[:, :, None], Reading(found.strength)) for q in (other, found.posterior))
        there, here = (weight @ np.log(fit.likelihood()[self.answers.pair[known], truth, 0]) for fit in fits)
        return float(there - here)


def best_crowd(
    votes: Votes, features: OutOfFold | None, gold: np.ndarray | None, seed: int
) -> tuple[_Crowd, Stack, bool]:
    """The votes as they are, or with one vote per task for all who copy each other.

    Two who always agree may both know the answers, or be one judge asked twice: what the others say is foretold better
    by the right one of the two.
    """
    crowd = _Crowd(votes, features, gold, seed)
    found, featured = crowd.best_stack()
    copies = find_copies(votes, gold)
    if not len(copies):
        return crowd, found, featured
    people = len(votes.annotators)
    bloc = connected_components(coo_array((np.ones(len(copies)), copies.T), shape=(people, people)), directed=False)[1]
    _, place, sharing = np.unique(votes.item * people + bloc[votes.annotator], return_inverse=True, return_counts=True)
    once = _Crowd(votes.reweighted(votes.weight / sharing[place]), features, gold, seed)
    found_once, featured_once = once.best_stack()
    others = ~np.isin(votes.annotator[found.hidden], copies)
    score, score_once = (np.log(each.weights @ each.foretold)[others].sum() for each in (found, found_once))
    return (once, found_once, featured_once) if score_once > score else (crowd, found, featured)


def find_copies(votes: Votes, gold: np.ndarray | None) -> np.ndarray:
    """(B, 2) pairs of people who nearly always agree, and beyond what the tasks explain."""
    answers, reading = Answers(votes), PLAIN[1]
    first = read(answers, reading, majority(votes), gold=gold)
    fit = m_step(answers, first.posterior[:, :, None], reading)
    pairs = agreement(votes, leave_one_out(answers, first.posterior, fit, gold), fit)
    copies = np.flatnonzero(pairs.found & (pairs.agreed >= DECIDED * pairs.tasks))
    return np.column_stack([copies, pairs.partner[copies]])


def shows_common_truth(votes: Votes, found: Stack) -> bool:
    """Whether hidden votes are foretold better by what others say than by each person's own habit."""
    if not len(found.hidden):
        return False
    at = found.hidden
    who, weight = votes.annotator[at], votes.weight[at]
    given = votes.per_annotator[who] + 1
    habit = (habits(votes)[who, votes.label[at]] * given - weight) / (given - weight)  # the hidden vote left out
    return beyond_chance(np.log(found.weights @ found.foretold / habit), votes.item[at])


def majority_with_ties(votes: Votes, posterior: np.ndarray) -> np.ndarray:
    """(n, K) shares of the votes, one vote more spread over the classes as a reading has them."""
    return (votes.shares + posterior) / (votes.per_item[:, None] + 1)


def other_opinions(found: Stack, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of all readings that foretell hidden votes no worse than the best one: the lowest probability (n,) that one gives
    to the label, and whether one says something else."""
    item, rows = found.fits[0].answers.votes.item[found.hidden], np.arange(len(label))
    least, contested = np.ones(len(label)), np.zeros(len(label), dtype=bool)
    for number, fit in enumerate(found.fits):
        if not beyond_chance(found.log_ratio(number), item):
            posterior = tempered(fit.posterior, found.temperature)
            least = np.minimum(least, posterior[rows, label])
            contested |= posterior.argmax(axis=1) != label
    return least, contested


def survives_any_vote(votes: Votes, without: np.ndarray, label: np.ndarray) -> np.ndarray:
    """(n,) whether the label is twice as probable as all others without any one of its votes, whichever it is."""
    kept = without[np.arange(len(votes)), label[votes.item]] > 1 - CAMP
    return np.bincount(votes.item, ~kept, minlength=len(label)) == 0


def mixed(held: np.ndarray, mirror: np.ndarray, camp: float) -> np.ndarray:
    """Both readings, the opposing one by the size of its camp; labels stay."""
    weight = min(camp, 0.5)
    both = (1 - weight) * held + weight * mirror
    stays = both.argmax(axis=1) == held.argmax(axis=1)
    return np.where(stays[:, None], both, held)


def allow_for_shared_mistakes(posterior: np.ndarray) -> np.ndarray:
    """Posteriors under which the votes say nothing at all on a share MISLED of the tasks.

    People who look at the same task make the same mistake, which hidden votes cannot show.
    """
    return (1 - MISLED) * posterior + MISLED / posterior.shape[1]
