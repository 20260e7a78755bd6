"""A reading and its mirror image: in which of the two the liars are the honest people is not in the votes.

Where people contradict a reading time and again, believing them gives another one, which explains the votes about as
well. Everybody belongs to the camp of the reading that they fit better, and the reading with the larger camp is kept.
It is sure only if the other camp is small: five of eight liars in concert look exactly like three of eight.
"""

from __future__ import annotations

import numpy as np

from floral_learn.labels.votes import Votes

from .agreement import ERROR_RATE
from .confusion import estimate
from .readings import expected_counts, leave_out, log_likelihood

# Chosen on LabelMe, rte and simulated crowds with 20 and 40 % of liars (benchmarks/crowd.py, choose):
UNSURE = 1 / 3  # share of the votes, of the smaller camp or unexplained, from which nobody can tell who lies
SECOND = 0.45  # weight of the mirror image where nobody can tell: labels stay, and are hardly more probable than not


def opposing_start(votes: Votes, posterior: np.ndarray) -> np.ndarray:
    """(n, K) what those say who contradict the label of each task; the posterior where nobody does."""
    n, k = posterior.shape
    said = votes.shares.copy()
    said[np.arange(n), posterior.argmax(axis=1)] = 0.0
    there = said.sum(axis=1) > 0
    start = posterior.copy()
    start[there] = (said[there] + 0.1 / k) / (said[there].sum(axis=1, keepdims=True) + 0.1)
    return start


def surplus(votes: Votes, posterior: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(A,) right answers beyond those of a person who ignores the tasks, and the share of that which is not chance.

    `label` (V,) is what each vote is held against. With s the surplus and v the variance that chance gives it, that
    share is 1 - v / s^2 where positive (James and Stein, 1961): nearly 1 for who is right twenty times of twenty, 0 for
    who is hardly better than a coin.
    """
    shares = np.bincount(posterior.argmax(axis=1), minlength=posterior.shape[1]) / len(posterior)
    by_chance, people = shares[votes.label], len(votes.annotators)
    found = np.bincount(votes.annotator, votes.weight * ((votes.label == label) - by_chance), people)
    variance = np.bincount(votes.annotator, votes.weight * by_chance * (1 - by_chance), people)
    return found, np.where(found > 0, np.maximum(1 - variance / np.maximum(found**2, 1e-12), 0.0), 0.0)


def other_camp(votes: Votes, posterior: np.ndarray, mirror: np.ndarray, own_votes: bool = True) -> float:
    """Share of the mirror image's camp among the votes of people who fit one of the two readings.

    Without `own_votes` a vote is held against what the others say: who answers at random fits a reading that is made
    of the own votes, where tasks have few.
    """
    camps = []
    for reading in (posterior, mirror):
        label = reading.argmax(axis=1)[votes.item]
        if not own_votes:
            matrix = estimate(expected_counts(votes, reading)).matrix
            label = leave_out(votes, reading, matrix, 1.0, None).argmax(axis=1)
        camps.append(surplus(votes, reading, label))
    (here, fits_here), (there, fits_there) = camps
    camp = float(np.dot(votes.per_annotator, fits_here * (here >= there)))
    other = float(np.dot(votes.per_annotator, fits_there * (there > here)))
    return other / max(camp + other, 1e-12)


def upper_half(votes: Votes, value: np.ndarray) -> np.ndarray:
    """(V,) whether a vote is in the upper half of its person's votes by `value` (V,)."""
    order = np.lexsort((value, votes.annotator))
    size = np.bincount(votes.annotator, minlength=len(votes.annotators))
    first = np.concatenate([[0], np.cumsum(size)[:-1]])
    place = np.empty(len(votes))
    place[order] = np.arange(len(votes)) - first[votes.annotator[order]]
    return place >= size[votes.annotator] / 2


def gold_evidence(votes: Votes, posterior: np.ndarray, gold: np.ndarray | None) -> float:
    """Log-likelihood of the votes on known answers, by confusion matrices that have not seen these."""
    if gold is None:
        return 0.0
    known = gold[votes.item] >= 0
    matrix = estimate(expected_counts(votes.reweighted(votes.weight * ~known), posterior)).matrix
    at = np.flatnonzero(known)
    return float(log_likelihood(votes, matrix)[at, gold[votes.item[at]]].sum())


def settle(
    votes: Votes, posterior: np.ndarray, mirror: np.ndarray, gold: np.ndarray | None, doubtful: float = 0.0
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """The posterior to be used, the mirror image where nobody can tell, and the tasks (n,) that can be decided.

    Known answers decide where there are enough of them. A mirror image that agrees on most tasks is the same reading,
    in doubt on the others. Where people whose agreement the reading does not explain hold a large share `doubtful` of
    the votes, it is not to be trusted.
    """
    known = gold_evidence(votes, mirror, gold) - gold_evidence(votes, posterior, gold)
    if abs(known) > -np.log(ERROR_RATE):  # a wrong reading is favoured twenty to one once in twenty times at most
        return mirror if known > 0 else posterior, None, np.ones(len(posterior), dtype=bool)
    agree = posterior.argmax(axis=1) == mirror.argmax(axis=1)
    same = bool(agree.mean() >= 0.5) and doubtful < UNSURE
    later = votes.some(upper_half(votes, np.arange(len(votes))))  # some are honest at first
    if not same and other_camp(votes, posterior, mirror, own_votes=False) > 0.5:
        posterior, mirror = mirror, posterior
    if max(other_camp(votes, posterior, mirror), other_camp(later, posterior, mirror), doubtful) < UNSURE:
        return posterior, None, np.ones(len(posterior), dtype=bool)
    if not same:  # what is common to both is an accident
        agree = np.zeros(len(posterior), dtype=bool) if gold is None else gold >= 0
    mixed = np.where(agree[:, None], posterior, (1 - SECOND) * posterior + SECOND * mirror)
    # Where that turns a label, the mirror image has half of the weight only.
    turned = np.flatnonzero(mixed.argmax(axis=1) != posterior.argmax(axis=1))
    mixed[turned] = 0.5 * mixed[turned] + 0.5 * posterior[turned]
    return mixed, None if same else mirror, agree
