"""The truth behind votes: p(y_i = c) is proportional to p(c | x_i)^t * prod_a conf_a[c, vote]^u, by EM.

The classifier behind p(c | x_i) has not seen item i. t and u, at most 1, say how far the classifier and the votes are
trusted to be independent evidence; they maximise the likelihood of each vote given everything but that vote.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax, softmax

from floral_learn.core.votes import Votes

from .confusion import Confusions, estimate
from .features import OutOfFold

TEMPERS = (0.3, 0.5, 0.75, 1.0)
TRUSTS = (0.4, 0.6, 0.8, 1.0)
REFITS = (0, 4, 10)
ROUNDS = 30
MOST_JUDGED = 50_000  # votes from which t and u are chosen


@dataclass
class State:
    """Where one start of the EM ended."""

    posterior: np.ndarray  # (n, K)
    leave_one_out: np.ndarray  # (V, K): posterior of the voted item without this vote
    confusions: Confusions
    log_classifier: np.ndarray | None  # (n, K), out of fold, not tempered
    evidence: np.ndarray  # (V, K): log-probability of each vote if the truth were c, times u and the vote's weight
    temper: float
    trust: float
    score: float  # mean log-likelihood of a vote given all other votes
    rounds: int
    residual: float  # mean change of the posteriors in the last round


def counts(votes: Votes, posterior: np.ndarray) -> np.ndarray:
    """Expected counts (A, truth, vote) of posteriors (V, K), one per vote."""
    n_annotators, k = len(votes.annotators), len(votes.classes)
    return (votes.by_answer @ posterior).reshape(n_annotators, k, k).transpose(0, 2, 1)


def loglik(votes: Votes, matrix: np.ndarray) -> np.ndarray:
    """(V, K) log-probability of each vote if the truth were c, times the vote's weight."""
    k = len(votes.classes)
    table = np.log(matrix).transpose(0, 2, 1).reshape(-1, k)
    return table[votes.annotator * k + votes.label] * votes.weight[:, None]


def predictive(votes: Votes, confusions: Confusions, leave_one_out: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Log-probability of the votes `chosen`, each left out of its item and of its author's confusion matrix."""
    who, what, w = votes.annotator[chosen], votes.label[chosen], votes.weight[chosen]
    mine = leave_one_out * w[:, None]
    own = np.maximum(confusions.counts[who, :, what] - mine, 0)
    rest = np.maximum(confusions.counts.sum(axis=2)[who] - mine, 0)
    s = confusions.strength
    conf = (own + s * confusions.guess[who, :, what]) / (rest + s)
    return w * np.log(np.maximum((leave_one_out * conf).sum(axis=1), 1e-12))


def run(
    votes: Votes,
    start: np.ndarray,
    features: OutOfFold | None,
    *,
    rng: np.random.Generator,
    gold: np.ndarray | None = None,
    rounds: int = ROUNDS,
    tolerance: float = 1e-3,
) -> State:
    """EM from the posterior `start` (n, K).

    Parameters
    ----------
    gold : array (n,) of class codes, optional
        -1 where the truth is not known; elsewhere the posterior is fixed.
    """
    judged = _sample(votes, gold, rng)
    posterior = clamp(start, gold)
    confusions = estimate(counts(votes, posterior[votes.item]))
    logp, temper, trust = None, 1.0, 1.0
    residual, done = np.inf, 0
    told = (votes.per_item > 0) | (False if gold is None else gold >= 0)
    for number in range(rounds):
        done = number + 1
        evidence = loglik(votes, confusions.matrix)
        votes_say = votes.by_item @ evidence
        if features is not None and number in REFITS:
            logp = features.log_probability(posterior * told[:, None], votes_say)
        prior = _class_shares(posterior) if logp is None else logp
        if number in REFITS:
            temper, trust = _choose(votes, confusions, votes_say, evidence, prior, judged, logp is not None)
        total = trust * votes_say + temper * prior
        new = clamp(softmax(total, axis=1), gold)
        residual = float(np.abs(new - posterior).max(axis=1).mean())
        posterior = new
        confusions = estimate(counts(votes, posterior[votes.item]))
        if residual < tolerance and number > REFITS[-1]:
            break
    evidence = trust * evidence
    loo = clamp_votes(votes, softmax(total[votes.item] - evidence, axis=1), gold)
    score = float(predictive(votes, confusions, loo[judged], judged).mean()) if len(judged) else 0.0
    return State(posterior, loo, confusions, logp, evidence, temper, trust, score, done, residual)


def clamp(posterior: np.ndarray, gold: np.ndarray | None) -> np.ndarray:
    """Posteriors with the known answers put in."""
    if gold is None:
        return posterior
    posterior = posterior.copy()
    known = gold >= 0
    posterior[known] = 0.0
    posterior[known, gold[known]] = 1.0
    return posterior


def clamp_votes(votes: Votes, share: np.ndarray, gold: np.ndarray | None) -> np.ndarray:
    """Put the known answers into posteriors per vote."""
    if gold is None:
        return share
    known = np.flatnonzero(gold[votes.item] >= 0)
    share[known] = 0.0
    share[known, gold[votes.item[known]]] = 1.0
    return share


def _sample(votes: Votes, gold: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    chosen = np.arange(len(votes)) if gold is None else np.flatnonzero(gold[votes.item] < 0)
    return chosen if len(chosen) <= MOST_JUDGED else np.sort(rng.choice(chosen, MOST_JUDGED, replace=False))


def _class_shares(posterior: np.ndarray) -> np.ndarray:
    share = posterior.sum(axis=0) + 1.0
    return np.broadcast_to(np.log(share / share.sum()), posterior.shape)


def _choose(
    votes: Votes,
    confusions: Confusions,
    votes_say: np.ndarray,
    evidence: np.ndarray,
    prior: np.ndarray,
    judged: np.ndarray,
    has_features: bool,
) -> tuple[float, float]:
    """t and u under which left-out votes are most likely."""
    rows = votes.item[judged]
    others = votes_say[rows] - evidence[judged]
    best, found = -np.inf, (1.0, 1.0)
    for temper in TEMPERS if has_features else (1.0,):
        base = log_softmax(temper * prior[rows], axis=1)
        for trust in TRUSTS:
            loo = softmax(base + trust * others, axis=1)
            score = float(predictive(votes, confusions, loo, judged).sum())
            if score > best:
                best, found = score, (temper, trust)
    return found
