"""One label per row with a column of authors is a crowd, too: what each author's other labels say about this one.

A judge's held-out probabilities take the place of the crowd's own classifier; confusion matrices, their priors and the
judgement of people are those of votes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln, softmax

from floral_learn.crowd.votes import Votes

from . import annotators as people
from .readings import Answers, Reading, fix_known, leave_one_out, m_step

_LEAST = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Confusions:
    """Expected counts (A, truth, label) and what they are shrunk to: the pool of all labels, by `strength` labels."""

    counts: np.ndarray
    pool: np.ndarray  # (truth, label)
    strength: float

    @property
    def matrix(self) -> np.ndarray:
        """(A, truth, label), rows sum to 1."""
        return (self.counts + self.strength * self.pool) / (self.counts.sum(axis=2, keepdims=True) + self.strength)


def estimate(counts: np.ndarray) -> Confusions:
    """Choose the strength under which the counts are most probable (Dirichlet-multinomial, empirical Bayes).

    The unit of the pool is a label, never an account: ten accounts with one label each weigh as much as one with ten.
    Two pseudo-labels per class, most of them right, say that people tend to tell the truth.
    """
    k = counts.shape[1]
    pool = counts.sum(axis=0) + np.where(np.eye(k, dtype=bool), 1.4, 0.6 / max(k - 1, 1))
    pool /= pool.sum(axis=1, keepdims=True)
    strengths, rows = 2.0 ** np.arange(7), counts.sum(axis=2)

    def evidence(s: float) -> float:
        of_rows = (gammaln(s) - gammaln(rows + s)).sum()
        return float(of_rows + (gammaln(counts + s * pool) - gammaln(s * pool)).sum())

    return Confusions(counts, pool, float(max(strengths, key=evidence)))


@dataclass(frozen=True)
class Authors:
    """What is known of the people behind n labels of K classes; see `judge_authors`."""

    votes: Votes
    posterior: np.ndarray  # (n, K) of the truth, given the judge and the labels
    confusions: Confusions
    known: np.ndarray | None

    @property
    def log_ratio(self) -> np.ndarray:
        """(n, K) log of P(label | truth, its author) over P(label | truth, anyone), the label itself left out.

        Zero for an author who is like everyone else, and for one of whom nothing but this label is known.
        """
        votes, confusions = self.votes, self.confusions
        who, said = votes.annotator, votes.label
        mine = self.posterior[votes.item]
        own = np.maximum(confusions.counts[who, :, said] - mine, 0)
        rest = np.maximum(confusions.counts.sum(axis=2)[who] - mine, 0)
        s, guess = confusions.strength, confusions.pool[:, said].T
        return np.log((own + s * guess) / (rest + s)) - np.log(guess)

    def weigh(self, probabilities: np.ndarray) -> np.ndarray:
        """Probabilities (n, K) of the truth, given what a judge says and who gave the label."""
        return softmax(np.log(np.maximum(probabilities, _LEAST)) + self.log_ratio, axis=1)

    def shift(self, probabilities: np.ndarray) -> np.ndarray:
        """What the author adds to the log-odds that a label is wrong, (n,), beside `probabilities` (n, K)."""
        rows, given = np.arange(len(self.votes.label)), self.votes.label
        before = np.clip(probabilities[rows, given], _LEAST, 1 - _LEAST)
        after = np.clip(self.weigh(probabilities)[rows, given], _LEAST, 1 - _LEAST)
        return np.log(before / (1 - before)) - np.log(after / (1 - after))

    @property
    def frame(self) -> Any:
        """DataFrame of the people, as `VoteAggregation.annotators`."""
        answers = Answers(self.votes)
        fit = m_step(answers, self.posterior[:, :, None], Reading(self.confusions.strength))
        without = leave_one_out(answers, self.posterior, fit, self.known)
        return people.frame(people.judge(self.votes, self.posterior, without), self.votes, fit)


def judge_authors(
    labels: np.ndarray,
    groups: np.ndarray,
    probabilities: np.ndarray,
    *,
    known: np.ndarray | None = None,
    max_iter: int = 50,
    tol: float = 1e-3,
) -> Authors:
    """Find how far the author of each label can be relied on.

    Parameters
    ----------
    labels : int ndarray of shape (n,)
        Given class numbers.
    groups : ndarray of shape (n,)
        Who gave each label.
    probabilities : ndarray of shape (n, K)
        Held-out probabilities of the classes, from a judge that did not see the row's own label.
    known : int ndarray of shape (n,), optional
        Class numbers of answers that are right, -1 elsewhere: an author who is found wrong there is trusted less.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.crowd.authors import judge_authors
    >>> truth = np.tile([0, 1], 100)
    >>> who = np.repeat(["ann", "bob", "cy", "di"], 50)
    >>> given = np.where(who == "cy", 1 - truth, truth)
    >>> judge = np.where(truth[:, None] == [0, 1], 0.7, 0.3)
    >>> found = judge_authors(given, who, judge)
    >>> found.frame["annotator"][0], bool(found.shift(judge)[who == "cy"].min() > 1)
    ('cy', True)
    """
    names, numbers = np.unique(groups, return_inverse=True)
    n, k = probabilities.shape
    votes = Votes(np.arange(n), numbers, labels, np.ones(n), np.arange(n), names, np.arange(k))
    opinion = np.log(np.maximum(probabilities, _LEAST))
    posterior = fix_known(probabilities, known)
    for _ in range(max_iter):  # what each author says of each class, and the classes, in turn (EM)
        confusions = estimate(_expected_counts(votes, posterior))
        said = np.log(np.maximum(confusions.matrix[numbers, :, labels], 1e-9))
        new = fix_known(softmax(opinion + said, axis=1), known)
        moved = np.abs(new - posterior).max(axis=1).mean()
        posterior = new
        if moved < tol:
            break
    return Authors(votes, posterior, estimate(_expected_counts(votes, posterior)), known)


def _expected_counts(votes: Votes, posterior: np.ndarray) -> np.ndarray:
    """(A, truth, label) expected counts."""
    people, k = len(votes.annotators), len(votes.classes)
    counts = np.zeros((people, k, k))
    np.add.at(counts.transpose(0, 2, 1), (votes.annotator, votes.label), posterior[votes.item])
    return counts
