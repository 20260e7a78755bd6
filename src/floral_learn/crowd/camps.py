"""A reading and the opposing one: in which of the two the liars are the honest people is not in the votes.

Believing those who contradict the labels gives an opposing reading, which may explain the votes as well. Everybody
belongs to the camp of the reading that they fit better, and the reading with the larger camp is kept. It is sure only
if the other camp is small: five of eight liars in concert look exactly like three of eight.
"""

from __future__ import annotations

import numpy as np

from floral_learn.crowd.votes import Votes

from .readings import Answers, Reading, leave_one_out, m_step


def opposing_start(votes: Votes, posterior: np.ndarray) -> np.ndarray:
    """(n, K) what those say who contradict the label of each task; the posterior where nobody does."""
    n, k = posterior.shape
    said = votes.shares.copy()
    said[np.arange(n), posterior.argmax(axis=1)] = 0.0
    total = said.sum(axis=1, keepdims=True)
    return np.where(total > 0, (said + 0.1 / k) / (total + 0.1), posterior)


def other_camp(votes: Votes, here: np.ndarray, there: np.ndarray, strength: float | None = None) -> float:
    """Share of the camp of `there` (n, K) among the votes of people who fit one of the two readings.

    With a `strength` each vote is held against what the others say: who answers at random fits a reading that is made
    of the own votes, where tasks have few.
    """
    camps = []
    for reading in (here, there):
        label = reading.argmax(axis=1)[votes.item]
        if strength is not None:
            answers = Answers(votes)
            fit = m_step(answers, reading[:, :, None], Reading(strength))
            label = leave_one_out(answers, reading, fit, None).argmax(axis=1)
        camps.append(surplus(votes, reading, label))
    (right, fits), (opposed, fits_other) = camps
    camp = float(votes.per_annotator @ (fits * (right >= opposed)))
    other = float(votes.per_annotator @ (fits_other * (opposed > right)))
    return other / max(camp + other, 1e-12)


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


def later_half(votes: Votes) -> np.ndarray:
    """(V,) whether a vote is in the later half of its person's votes: some are honest at first."""
    order = np.lexsort((np.arange(len(votes)), votes.annotator))
    size = np.bincount(votes.annotator, minlength=len(votes.annotators))
    first = np.concatenate([[0], np.cumsum(size)[:-1]])
    place = np.empty(len(votes))
    place[order] = np.arange(len(votes)) - first[votes.annotator[order]]
    return place >= size[votes.annotator] / 2
