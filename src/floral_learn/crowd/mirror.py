"""A reading and its mirror image: in which of the two the liars are the honest people is not in the votes.

Where people contradict a reading time and again, believing them gives another one, which explains the votes about as
well. Of the two, the one is kept under which most votes come from people who fit it. It is sure only if those who would
fit the other one are few: five of eight liars in concert look exactly like three of eight.
"""

from __future__ import annotations

import numpy as np

from floral_learn.labels.votes import Votes

from .confusion import estimate
from .readings import expected_counts, log_likelihood

LEAST_OPPOSED = 0.1  # share of the votes by people who contradict, below which no mirror image is looked for
# Chosen on LabelMe, rte and simulated crowds with 20 and 40 % of liars (benchmarks/crowd.py):
UNSURE = 1 / 3  # share of the votes of people who fit the mirror image, from which nobody can tell who lies
PREFERRED = 0.58  # share from which the mirror image is preferred to what began with the majority
SECOND = 0.45  # weight of the mirror image where nobody can tell: labels stay, and are hardly more probable than not
SETTLED = 3.0  # log-odds by which votes on known answers must favour one of the two


def opposing_start(votes: Votes, posterior: np.ndarray) -> np.ndarray | None:
    """(n, K) what people say where they mostly contradict the reading; None where they have few votes.

    Counted per person and class as read: a liar may lie about one class alone. With few votes a person is taken to err
    as often as all do.
    """
    n, k = posterior.shape
    label = posterior.argmax(axis=1)[votes.item]
    wrong = votes.weight * (votes.label != label)
    usual = float(wrong.sum() / votes.weight.sum())
    cell, size = votes.annotator * k + label, len(votes.annotators) * k
    share = (np.bincount(cell, wrong, minlength=size) + 2 * usual) / (
        np.bincount(cell, votes.weight, minlength=size) + 2
    )
    opposed = share[cell] > 0.5
    if float(votes.weight[opposed].sum()) < LEAST_OPPOSED * float(votes.weight.sum()):
        return None
    cell = votes.item[opposed] * k + votes.label[opposed]
    said = np.bincount(cell, votes.weight[opposed], minlength=n * k).reshape(n, k)
    there = said.sum(axis=1) > 0
    start = posterior.copy()
    start[there] = (said[there] + 0.1 / k) / (said[there].sum(axis=1, keepdims=True) + 0.1)
    return start


def fitting_votes(votes: Votes, posterior: np.ndarray) -> float:
    """Number of votes that come from people who fit the reading: whose answers follow it beyond chance.

    A person's surplus is the number of right answers less those expected of answers that ignore the items; the votes of
    a person with surplus s count tanh(s / 2), or not at all.
    """
    label = posterior.argmax(axis=1)
    share = np.bincount(label, minlength=posterior.shape[1]) / len(label)
    surplus = votes.weight * ((votes.label == label[votes.item]) - share[votes.label])
    surplus = np.bincount(votes.annotator, surplus, minlength=len(votes.annotators))
    return float(np.dot(np.maximum(np.tanh(surplus / 2), 0.0), votes.per_annotator))


def gold_evidence(votes: Votes, posterior: np.ndarray, gold: np.ndarray | None) -> float:
    """Log-likelihood of the votes on known answers, by confusion matrices that have not seen these."""
    if gold is None:
        return 0.0
    known = gold[votes.item] >= 0
    matrix = estimate(expected_counts(votes.reweighted(votes.weight * ~known), posterior)).matrix
    at = np.flatnonzero(known)
    return float(log_likelihood(votes, matrix)[at, gold[votes.item[at]]].sum())


def contradicting(posterior: np.ndarray, readings: list[np.ndarray]) -> np.ndarray | None:
    """The reading (n, K) that gives most tasks another label, the farthest of them; None where there is none."""
    label = posterior.argmax(axis=1)
    agree = [float((reading.argmax(axis=1) == label).mean()) for reading in readings]
    return readings[int(np.argmin(agree))] if min(agree, default=1.0) < 0.5 else None


def settle(
    votes: Votes,
    posterior: np.ndarray,
    mirror: np.ndarray | None,
    gold: np.ndarray | None,
    rival: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """The posterior to be used, the mirror image where nobody can tell, and the tasks (n,) that can be decided.

    Known answers decide where there are enough of them. A `rival` is a reading of the same votes that contradicts the
    posterior on most tasks: it takes the place of the mirror image where that one has too few votes.
    """
    both = np.ones(len(posterior), dtype=bool)
    share = 0.0
    if mirror is not None:
        known = gold_evidence(votes, mirror, gold) - gold_evidence(votes, posterior, gold)
        if abs(known) > SETTLED:
            return mirror if known > 0 else posterior, None, both
        fits, opposed = fitting_votes(votes, posterior), fitting_votes(votes, mirror)
        share = opposed / max(fits + opposed, 1e-12)
        if share > PREFERRED:
            posterior, mirror, share = mirror, posterior, 1 - share
    if share < UNSURE:
        if rival is None or gold is not None:
            return posterior, None, both
        mirror = rival
    assert mirror is not None
    agree = posterior.argmax(axis=1) == mirror.argmax(axis=1)
    settled = bool(agree.mean() >= 0.8)
    if agree.mean() < 0.5:  # the mirror image of nearly everything: what is common to both is an accident
        agree[:] = False if gold is None else gold >= 0
    mixed = np.where(agree[:, None], posterior, (1 - SECOND) * posterior + SECOND * mirror)
    # Where that turns a label, the mirror image has half of the weight only.
    turned = np.flatnonzero(mixed.argmax(axis=1) != posterior.argmax(axis=1))
    mixed[turned] = 0.5 * mixed[turned] + 0.5 * posterior[turned]
    return mixed, None if settled else mirror, agree
