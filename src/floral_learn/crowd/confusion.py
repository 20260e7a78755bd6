"""What each person says when the truth is c: confusion matrices with a prior in three levels.

A row of person a's matrix is Dirichlet around a guess that has the shape of the pool of all votes and a's own accuracy;
that accuracy is Beta around the pool's. Both strengths are chosen by the likelihood of the counts (empirical Bayes).
The unit of the pool is a vote, never an account: ten accounts with one vote each weigh as much as one account with ten.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, expit, gammaln, logit

STRENGTHS = 2.0 ** np.arange(7)  # of both priors, in votes
_LEAST = 1e-3


@dataclass(frozen=True)
class Confusions:
    """Estimates for A people and K classes."""

    matrix: np.ndarray  # (A, truth, vote), rows sum to 1
    counts: np.ndarray  # (A, truth, vote): expected counts
    pool: np.ndarray  # (truth, vote)
    strength: float
    accuracy_strength: float
    share: float  # of right votes in the pool


def estimate(counts: np.ndarray) -> Confusions:
    """Shrink counts[a, truth, vote] to the person's own accuracy and the pool's pattern.

    Two pseudo-votes per class, most of them right, say before any vote is seen that people tend to tell the truth: this
    is what tells a crowd from its mirror image.
    """
    k = counts.shape[1]
    eye = np.eye(k, dtype=bool)
    start = np.where(eye, 1.4, 0.6 / max(k - 1, 1)) if k > 1 else np.ones((1, 1))
    pool = counts.sum(axis=0) + start
    right, total = counts[:, eye].sum(axis=1), counts.sum(axis=(1, 2))
    share = float((pool[eye].sum()) / pool.sum())
    pool = pool / pool.sum(axis=1, keepdims=True)
    accuracy_strength = _choose_beta(right, total, share)
    accuracy = (right + accuracy_strength * share) / (total + accuracy_strength)
    guess = _shaped(pool, accuracy, share)
    chosen = _choose_dirichlet(counts, guess)
    matrix = (counts + chosen * guess) / (counts.sum(axis=2, keepdims=True) + chosen)
    return Confusions(matrix, counts, pool, chosen, accuracy_strength, share)


def _shaped(pool: np.ndarray, accuracy: np.ndarray, share: float) -> np.ndarray:
    """The pool's pattern with each person's own accuracy: the diagonal is moved on the logit scale."""
    k = len(pool)
    if k == 1:
        return np.ones((len(accuracy), 1, 1))
    own = np.clip(np.diag(pool), _LEAST, 1 - _LEAST)
    shift = logit(np.clip(accuracy, _LEAST, 1 - _LEAST)) - logit(np.clip(share, _LEAST, 1 - _LEAST))
    diagonal = expit(logit(own)[None, :] + shift[:, None])
    off = pool * ~np.eye(k, dtype=bool)
    off = off / off.sum(axis=1, keepdims=True)
    guess = (1 - diagonal)[:, :, None] * off[None]
    guess[:, np.arange(k), np.arange(k)] = diagonal
    return np.maximum(guess, 1e-4) / np.maximum(guess, 1e-4).sum(axis=2, keepdims=True)


def left_out_guess(confusions: Confusions, who: np.ndarray, said: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """(V, K) what the prior expects of votes `said` by `who` if the truth were c, their own truths (V, K) left out."""
    eye = np.eye(len(confusions.pool), dtype=bool)
    right = confusions.counts[:, eye].sum(axis=1)[who] - truth[np.arange(len(who)), said]
    total = confusions.counts.sum(axis=(1, 2))[who] - truth.sum(axis=1)
    s, share = confusions.accuracy_strength, confusions.share
    accuracy = np.maximum(right, 0) + s * share
    accuracy /= np.maximum(total, 0) + s
    guess = np.empty(truth.shape)
    step = max(1, 4_000_000 // eye.size)  # whole matrices are made, a block at a time
    for at in range(0, len(who), step):
        part = slice(at, at + step)
        guess[part] = np.take_along_axis(
            _shaped(confusions.pool, accuracy[part], share), said[part, None, None], axis=2
        )[:, :, 0]
    return guess


def _choose_beta(right: np.ndarray, total: np.ndarray, share: float) -> float:
    mean = min(max(share, _LEAST), 1 - _LEAST)
    a, b = STRENGTHS * mean, STRENGTHS * (1 - mean)
    wrong = np.maximum(total - right, 0)
    score = betaln(right[:, None] + a, wrong[:, None] + b).sum(axis=0) - len(right) * betaln(a, b)
    return float(STRENGTHS[np.argmax(score)])


def _choose_dirichlet(counts: np.ndarray, guess: np.ndarray, most: int = 2000) -> float:
    if len(counts) > most:  # the strength is one number: two thousand people say enough
        keep = np.linspace(0, len(counts) - 1, most).astype(int)
        counts, guess = counts[keep], guess[keep]
    rows = counts.sum(axis=2)
    scores = [
        (gammaln(s) - gammaln(rows + s)).sum() + (gammaln(counts + s * guess) - gammaln(s * guess)).sum()
        for s in STRENGTHS
    ]
    return float(STRENGTHS[int(np.argmax(scores))])
