"""Readings of votes: what the truth is and how each person errs, found together by EM (Dawid and Skene, 1979).

A reading says how much may differ from person to person and from task to task. Person a has an accuracy r_a, and row c
of a's confusion matrix is shrunk towards a coin that is right so often:

    M_a[c, v]  =  (N_a[c, v] + s * coin_a[c, v]) / (N_a[c, .] + s),   N_a: expected counts, s: strength in votes.

A weak strength leaves everybody an own matrix, a strong one hardly more than the accuracy. Classes are as probable as
each other before any vote, or as frequent as they are found to be. Tasks are of one kind, or some are clear and some
hard: there people err together, which a matrix per person cannot say.

A vote may also say what a task is not. Such answers have columns of their own, M_a is K x 2K then, and the coin of "not
v" is right where the truth is any other class. In which of the two ways a person votes does not depend on the truth.

Which reading fits a crowd can be seen without the truth. Some votes are hidden, the rest is read, and the hidden votes
are foretold; the readings are mixed with the weights under which the hidden votes are most probable (stacking: Wolpert,
1992; Yao et al., 2018). More freedom than uniform classes and one kind must show in hidden votes beyond chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from scipy.stats import norm
from sklearn.model_selection import KFold

from floral_learn.crowd.votes import Votes

ERROR_RATE = 0.05  # of every statement about a person or a reading: the usual one
# right and, for each other class, wrong pseudo-votes of a person: as in EBCC (Li et al., 2019)
PRIOR = (4.0, 1.0)
STRENGTHS = (1.0, 4.0, 16.0)  # nearly own matrices to nearly one accuracy; hidden votes weigh them
FOLDS = KFold().n_splits  # of votes that are hidden, and of tasks: each is held out once
LEAST = float(np.finfo(float).eps)  # probability, where a logarithm is taken


@dataclass(frozen=True)
class Reading:
    """How much a reading lets people, classes and tasks differ."""

    strength: float
    estimated: bool = False  # shares of the classes, which are uniform otherwise
    kinds: int = 1  # of tasks: one, or clear and hard


PLAIN = [Reading(s) for s in STRENGTHS]
RICH = [Reading(s, True) for s in STRENGTHS] + [Reading(s, True, 2) for s in STRENGTHS[1:]]


@dataclass(frozen=True)
class Answers:
    """Votes as sparse matrices: column p stands for a person and an answer that this person gave.

    No array has a place for answers that nobody gave, so that many people and many classes fit into memory.
    """

    votes: Votes
    keys: np.ndarray  # (P,) person * number of answers + answer, in order
    pair: np.ndarray  # (V,) the column of each vote

    @classmethod
    def of(cls, votes: Votes) -> Answers:
        """One column for each answer that each person gave."""
        return cls(votes, *np.unique(votes.annotator * len(votes.answers) + votes.label, return_inverse=True))

    @cached_property
    def person(self) -> np.ndarray:
        """(P,) the person of each column."""
        return self.keys // len(self.votes.answers)

    @cached_property
    def answer(self) -> np.ndarray:
        """(P,) the answer of each column."""
        return self.keys % len(self.votes.answers)

    @cached_property
    def by_task(self) -> sp.csr_matrix:
        """(n, P) weights of the votes."""
        shape = (len(self.votes.items), len(self.keys))
        return sp.csr_matrix((self.votes.weight, (self.votes.item, self.pair)), shape=shape)

    @cached_property
    def by_person(self) -> sp.csr_matrix:
        """(A, P) ones: sums over the answers of each person."""
        shape = (len(self.votes.annotators), len(self.keys))
        return sp.csr_matrix((np.ones(len(self.keys)), (self.person, np.arange(len(self.keys)))), shape=shape)

    @cached_property
    def varied(self) -> np.ndarray:
        """(A,) who gave more than one answer: votes of everybody else cannot be checked by hiding them."""
        return np.bincount(self.person, minlength=len(self.votes.annotators)) > 1

    @cached_property
    def unseen(self) -> np.ndarray:
        """(K,) classes for which nobody voted: free to explain whatever fits nothing else, they explain nothing."""
        k = len(self.votes.classes)
        return (np.bincount(self.answer, minlength=k)[:k] == 0) & (self.answer < k).all()

    def without(self, hidden: np.ndarray) -> Answers:
        """The same columns without the votes `hidden`."""
        weight = self.votes.weight.copy()
        weight[hidden] = 0.0
        return Answers(replace(self.votes, weight=weight), self.keys, self.pair)


def fits_in_memory(shape: tuple[int, ...], what: str, most: float = 1.5) -> None:
    """Refuse an array of numbers that is larger than the memory limit, by its size."""
    gib = 8 * float(np.prod([float(size) for size in shape])) / 2**30
    if gib > most:
        raise MemoryError(f"votes: {what}, {' x '.join(f'{size:,}' for size in shape)} numbers, take {gib:.1f} GiB")


@dataclass(frozen=True)
class Fit:
    """A reading of some votes: G kinds of tasks, P pairs of a person and an answer."""

    reading: Reading
    answers: Answers
    joint: np.ndarray  # (n, K, G) probability of class and kind
    counts: np.ndarray  # (P, K, G) expected votes by truth and kind
    total: np.ndarray  # (A, K, G)
    # (A, 2) how often a person's votes are right that name a class, and those that say "not"
    coin: np.ndarray
    names: np.ndarray  # (A,) share of the person's votes that name a class

    @property
    def posterior(self) -> np.ndarray:
        """(n, K) probability of each class."""
        return self.joint.sum(axis=2)

    def likelihood(self) -> np.ndarray:
        """(P, K, G) probability of each pair's answer, given the truth and the kind."""
        a = self.answers
        return self._shrunk(self.counts, a.person, a.answer)

    def says(self, person: np.ndarray, answer: np.ndarray) -> np.ndarray:
        """(V, K, G) probability that `person` (V,) gives `answer` (V,), given the truth and the kind."""
        keys, wanted = self.answers.keys, person * len(self.answers.votes.answers) + answer
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        given = (keys[place] == wanted)[:, None, None]
        return self._shrunk(np.where(given, self.counts[place], 0.0), person, answer)

    def confusions(self, people: np.ndarray | None = None) -> np.ndarray:
        """(A, K, answers) probability of each answer given each truth, of all or some `people`; of one kind of task."""
        (a, k, _), wide = self.total.shape, len(self.answers.votes.answers)
        chosen = np.arange(a) if people is None else people
        fits_in_memory((len(chosen), k, wide), "confusion matrices of people x classes x answers")
        says = self.says(np.repeat(chosen, wide), np.tile(np.arange(wide), len(chosen)))[:, :, 0]
        return says.reshape(len(chosen), wide, k).transpose(0, 2, 1)

    def _shrunk(self, counts: np.ndarray, person: np.ndarray, answer: np.ndarray) -> np.ndarray:
        k = self.total.shape[1]
        named, other = (answer % k)[:, None] == np.arange(k), max(k - 1, 1)
        right, denied, names = (values[person][:, None] for values in (*self.coin.T, self.names))
        coin = names * np.where(named, right, (1 - right) / other)
        if len(self.answers.votes.answers) > k:
            not_so = (1 - names) * np.where(named, 1 - denied, denied / other)
            coin = np.where((answer < k)[:, None], coin, not_so)
        s = self.reading.strength
        return (counts + s * coin[:, :, None]) / (self.total[person] + s)


def m_step(answers: Answers, joint: np.ndarray, reading: Reading) -> Fit:
    """Expected counts and accuracies, given the probabilities (n, K, G) of classes and kinds."""
    n, k, kinds = joint.shape
    flat = answers.by_task.T @ joint.reshape(n, -1)
    total = (answers.by_person @ flat).reshape(-1, k, kinds)
    counts = flat.reshape(-1, k, kinds)
    by_class, against = counts.sum(axis=2), answers.answer >= k
    given, named = by_class.sum(axis=1), by_class[np.arange(len(counts)), answers.answer % k]

    def per_person(values: np.ndarray) -> np.ndarray:
        """(A, 2) sums over votes that name a class, and over those that say "not"."""
        return np.bincount(2 * answers.person + against, values, minlength=2 * len(total)).reshape(-1, 2)

    # One vote for each wrong class, four for each right one: a vote "not v" is wrong for one class, right for the rest.
    wrong = PRIOR[1] * np.array([k - 1, 1 / max(k - 1, 1)])
    each = per_person(given)
    coin = (per_person(np.where(against, given - named, named)) + PRIOR[0]) / (each + PRIOR[0] + wrong)
    ways = len(answers.votes.answers) / k
    return Fit(reading, answers, joint, counts, total, coin, (each[:, 0] + 1) / (each.sum(axis=1) + ways))


def e_step(fit: Fit, there: np.ndarray, gold: np.ndarray | None, opinion: np.ndarray | None) -> np.ndarray:
    """(n, K, G) probabilities of classes and kinds, given how everybody errs."""
    n, k, kinds = fit.joint.shape
    mass = fit.joint[there].sum(axis=0)
    prior = np.log((mass + 0.5) / (mass + 0.5).sum(axis=1, keepdims=True))
    if fit.reading.estimated:
        prior = prior + np.log((mass.sum(axis=1) + 1) / (mass.sum() + k))[:, None]
    log = (fit.answers.by_task @ np.log(fit.likelihood()).reshape(-1, k * kinds)).reshape(n, k, kinds) + prior
    log[:, fit.answers.unseen] = -np.inf
    if opinion is not None:
        log += opinion[:, :, None]
    if gold is not None:
        known = np.flatnonzero(gold >= 0)
        other = np.arange(k) != gold[known][:, None]
        log[known] = np.where(other[:, :, None], -np.inf, np.maximum(log[known], np.log(LEAST)))
    return softmax(log, axis=(1, 2))


def read(
    answers: Answers,
    reading: Reading,
    start: np.ndarray,
    *,
    gold: np.ndarray | None = None,
    opinion: np.ndarray | None = None,
    max_iter: int = 60,
    tol: float = 1e-4,
) -> Fit:
    """EM from the probabilities `start` (n, K), with known answers and an `opinion` (n, K), logarithms, of others."""
    there = answers.votes.per_item > 0
    if gold is not None:
        start = fix_known(start, gold)
    joint = start[:, :, None]
    if reading.kinds == 2:  # a task is clear as far as most agree on it
        top = np.sort(start, axis=1)
        clear = (top[:, -1:] - top[:, -2:-1])[:, :, None]
        joint = np.concatenate([joint * clear, joint * (1 - clear)], axis=2)
    fit = m_step(answers, joint, reading)
    for _ in range(max_iter):
        joint = e_step(fit, there, gold, opinion)
        moved = np.abs(joint - fit.joint).sum(axis=(1, 2)).mean()
        fit = m_step(answers, joint, reading)
        if moved < tol:
            break
    return fit


def majority(votes: Votes) -> np.ndarray:
    """(n, K) shares of the votes; uniform where there is none."""
    k = len(votes.classes)
    return np.where(votes.per_item[:, None] > 0, votes.shares / np.maximum(votes.per_item, 1e-9)[:, None], 1 / k)


def fix_known(posterior: np.ndarray, gold: np.ndarray | None) -> np.ndarray:
    """Posteriors with certainty where the answer is known."""
    if gold is None:
        return posterior
    known = gold >= 0
    fixed = posterior.copy()
    fixed[known] = np.eye(posterior.shape[1])[gold[known]]
    return fixed


def habits(votes: Votes) -> np.ndarray:
    """(A, answers) shares in which each person gives the answers, one vote more spread over them."""
    people, k = len(votes.annotators), len(votes.answers)
    place = votes.annotator * k + votes.label
    given = np.bincount(place, votes.weight, minlength=people * k).reshape(people, k)
    return (given + 1 / k) / (given.sum(axis=1, keepdims=True) + 1)


def leave_one_out(posterior: np.ndarray, fit: Fit, gold: np.ndarray | None, temperature: float = 1.0) -> np.ndarray:
    """(V, K) posterior of the voted task without this vote.

    `posterior` need not be a product over the votes (it is an average): what the votes on the task say together is
    taken out of it, and what all but one of them say is put in.
    """
    answers, votes = fit.answers, fit.answers.votes
    log = temperature * np.log(fit.likelihood()[:, :, 0])
    share = posterior.sum(axis=0) + 1.0
    together = answers.by_task @ log + np.log(share / share.sum())
    own = log[answers.pair] * votes.weight[:, None]
    found = softmax(together[votes.item] - own, axis=1)
    # Where the product and the posterior differ, so will what is left without one vote.
    found *= (posterior / np.maximum(softmax(together, axis=1), 1e-6)).clip(0.1, 10.0)[votes.item]
    found /= found.sum(axis=1, keepdims=True)
    return found if gold is None else fix_known(found, gold[votes.item])


# the rest, and the numbers of the hidden votes that can be checked
Hidden = list[tuple[Answers, np.ndarray]]


def hide_votes(answers: Answers, rng: np.random.Generator, enough: int = 100_000) -> Hidden:
    """Hide votes in turn, a fold each, until all or `enough` were hidden; tasks with one vote keep it."""
    votes = answers.votes
    several = np.flatnonzero(np.bincount(votes.item)[votes.item] > 1)
    fold = rng.permutation(len(several)) % FOLDS
    parts: Hidden = []
    for number in range(FOLDS):
        hidden = np.sort(several[fold == number])
        checked = hidden[answers.varied[votes.annotator[hidden]]]
        if len(checked) and sum(len(at) for _, at in parts) < enough:
            parts.append((answers.without(hidden), checked))
    return parts


@dataclass(frozen=True)
class Stack:
    """Readings of all votes, and how probable each of them made the votes that it had not seen."""

    fits: list[Fit]
    foretold: np.ndarray  # (R, H)
    hidden: np.ndarray  # (H,) numbers of votes
    weights: np.ndarray  # (R,)
    best: int  # the number of the reading, of those with a weight, that foretells hidden votes best
    temperature: float  # by which the mixture's log-probabilities are scaled
    # (n, K) of a classifier, in logarithms; None where features are not listened to
    opinion: np.ndarray | None

    @property
    def featured(self) -> bool:
        """Whether features were listened to."""
        return self.opinion is not None

    @cached_property
    def posterior(self) -> np.ndarray:
        """(n, K) the mixture."""
        found = sum(w * fit.posterior for w, fit in zip(self.weights, self.fits, strict=True) if w > 0)
        return tempered(np.asarray(found), self.temperature)

    @property
    def strength(self) -> float:
        """Of the mixture, in votes."""
        strengths = np.log([fit.reading.strength for fit in self.fits])
        return float(np.exp(self.weights @ strengths))

    @cached_property
    def log_score(self) -> np.ndarray:
        """(H,) log-probability of each hidden vote."""
        return np.log(self.weights @ self.foretold)


def stack(
    answers: Answers, hidden: Hidden, start: np.ndarray, gold: np.ndarray | None, opinion: np.ndarray | None = None
) -> Stack:
    """Mix readings by how probable they make votes that they have not seen."""
    votes = answers.votes
    at = np.concatenate([np.zeros(0, dtype=int), *(checked for _, checked in hidden)])
    readings = PLAIN + RICH if len(at) else PLAIN

    def foretell(reading: Reading) -> tuple[np.ndarray, np.ndarray]:
        """(H, K) probability of the class, and of the class and the hidden vote."""
        classes, both = [np.zeros((0, len(votes.classes)))], [np.zeros((0, len(votes.classes)))]
        for rest, checked in hidden:
            own = majority(rest.votes) if opinion is None else start
            fit = read(rest, reading, own, gold=gold, opinion=opinion)
            joint = fit.joint[votes.item[checked]]
            classes.append(joint.sum(axis=2))
            both.append((joint * fit.likelihood()[answers.pair[checked]]).sum(axis=2))
        return np.concatenate(classes), np.concatenate(both)

    foretold = np.array([foretell(reading)[1].sum(axis=1) for reading in readings])
    score, rich = np.log(foretold).sum(axis=1), np.array([reading.estimated for reading in readings])
    best_plain, best_rich = (int(np.where(some, score, -np.inf).argmax()) for some in (~rich, rich))
    used = ~rich | beyond_chance(np.log(foretold[best_rich] / foretold[best_plain]), votes.item[at])
    weights = np.zeros(len(readings))
    weights[used] = stacking_weights(foretold[used])
    best = int(np.where(used, score, -np.inf).argmax())
    temperature = 1.0
    if opinion is None and len(at):
        temperature = best_temperature(*foretell(readings[best]), votes.item[at])
    fits = [read(answers, reading, start, gold=gold, opinion=opinion) for reading in readings]
    return Stack(fits, foretold, at, weights, best, temperature, opinion)


def best_temperature(classes: np.ndarray, both: np.ndarray, item: np.ndarray) -> float:
    """The scale of log-probabilities (H, K) at which hidden votes are most probable, if that is more than chance.

    A reading takes votes on a task for independent and is too sure where people err together.
    """
    says = both / np.maximum(classes, np.finfo(float).tiny)

    def foretold(temperature: float) -> np.ndarray:
        return np.log(np.maximum((tempered(classes, temperature) * says).sum(axis=1), LEAST))

    best = float(minimize_scalar(lambda t: -foretold(t).sum(), bounds=(0, 1), method="bounded").x)
    return best if beyond_chance(foretold(best) - foretold(1.0), item) else 1.0


def tempered(posterior: np.ndarray, temperature: float) -> np.ndarray:
    """Posteriors with log-probabilities scaled by `temperature`."""
    return softmax(temperature * np.log(np.maximum(posterior, LEAST)), axis=1)


def stacking_weights(foretold: np.ndarray, max_iter: int = 200) -> np.ndarray:
    """(R,) weights of a mixture under which what its parts foretold (R, H) is most probable, by EM."""
    weights = np.full(len(foretold), 1 / len(foretold))
    if foretold.shape[1]:
        for _ in range(max_iter):
            share = weights[:, None] * foretold
            weights = (share / share.sum(axis=0)).mean(axis=1)
    return weights


def beyond_chance(gain: np.ndarray, item: np.ndarray) -> bool:
    """Whether the mean gain per vote is above zero, all votes on a task counted as one observation."""
    if not len(gain):
        return False
    per_task = np.bincount(item, gain)
    return bool(gain.sum() > norm.isf(ERROR_RATE) * np.sqrt((per_task**2).sum()))
