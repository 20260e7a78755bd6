"""The truth behind votes: p(y_i = c) is proportional to p(c | x_i) * prod_a conf_a[c, vote]^u, by EM.

The classifier behind p(c | x_i) has not seen item i, and counts as far as left-out votes bear it out: where features
say little, log p(c | x_i) is mixed with the shares of the classes. The votes on one item share its difficulty (and
perhaps a liar's plan) and are less evidence than as many independent ones: u is below 1. Within the EM the posterior is
sharpened, since confusion matrices counted from vague labels look vaguer still; in the end all log-probabilities are
scaled by one number, under which each vote is most likely given everything but that vote.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax

from floral_learn.labels.votes import Votes

from .confusion import Confusions, estimate
from .features import Opinion

# Chosen on simulated crowds over digits, wine and breast cancer.
TRUST = 0.5  # u: how much a vote counts beside the classifier
SHARP = 2.0  # scale of the log-probabilities within the EM
TEMPERS = (1.0, 0.75, 0.5, 0.25, 0.1)  # share of the classifier's opinion, the classes' shares being the rest
SCALES = np.exp(np.linspace(np.log(0.5), np.log(2.5), 13))
MARGIN = 2 / 3  # real people share mistakes, which makes their votes look surer than they are
REFITS = (0, 4, 10)
ROUNDS = 30
LARGE = 300_000  # votes from which rounds, scales and hidden votes are fewer
MOST_JUDGED = 50_000  # votes from which t and u are chosen


@dataclass
class State:
    """Where one start of the EM ended."""

    posterior: np.ndarray  # (n, K)
    leave_one_out: np.ndarray  # (V, K): posterior of the voted item without this vote
    confusions: Confusions
    log_classifier: np.ndarray  # (n, K), out of fold, tempered
    evidence: np.ndarray  # (V, K): log-probability of each vote if the truth were c, times u and the vote's weight
    trust: float  # u
    scale: float  # of the log-probabilities
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
    features: Opinion,
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
    logp, trust = np.log(posterior + 1e-12), TRUST
    residual, done = np.inf, 0
    told = (votes.per_item > 0) | (False if gold is None else gold >= 0)
    for number in range(rounds):
        done = number + 1
        evidence = loglik(votes, confusions.matrix)
        votes_say = votes.by_item @ evidence
        if number in REFITS:
            logp = features.log_probability(posterior * told[:, None], votes_say)
            shares = _class_shares(posterior)
            opinions = [t * logp + (1 - t) * shares for t in TEMPERS]
            logp = opinions[_likeliest(votes, confusions, votes_say, evidence, [(o, trust) for o in opinions], judged)]
        total = trust * votes_say + logp
        new = clamp(softmax(SHARP * total, axis=1), gold)
        residual = float(np.abs(new - posterior).max(axis=1).mean())
        posterior = new
        confusions = estimate(counts(votes, posterior[votes.item]))
        if residual < tolerance and number > REFITS[-1]:
            break
    return _finish(votes, total, trust * evidence, judged, gold, log_classifier=logp, trust=trust, rounds=done,
                   residual=residual)  # fmt: skip


def _finish(
    votes: Votes, total: np.ndarray, evidence: np.ndarray, judged: np.ndarray, gold: np.ndarray | None, **known: Any
) -> State:
    """Scale all log-probabilities so that left-out votes are most likely, less a margin.

    Left-out votes show only those mistakes that people do not share.
    """
    total = log_softmax(total, axis=1)

    def at(scale: float) -> tuple[np.ndarray, Confusions]:
        posterior = clamp(softmax(scale * total, axis=1), gold)
        return posterior, estimate(counts(votes, posterior[votes.item]))

    def left_out(scale: float, confusions: Confusions) -> np.ndarray:
        loo = softmax(scale * (total[votes.item[judged]] - evidence[judged]), axis=1)
        return predictive(votes, confusions, loo, judged)

    scales = SCALES if len(votes) <= LARGE else SCALES[::3]
    scale = MARGIN * float(max(scales, key=lambda s: left_out(s, at(s)[1]).sum()))
    posterior, confusions = at(scale)
    loo = clamp_votes(votes, softmax(scale * (total[votes.item] - evidence), axis=1), gold)
    return State(posterior, loo, confusions, evidence=scale * evidence, scale=scale, **known)


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


def _likeliest(
    votes: Votes,
    confusions: Confusions,
    votes_say: np.ndarray,
    evidence: np.ndarray,
    choices: list[tuple[np.ndarray, float]],
    judged: np.ndarray,
) -> int:
    """Which of several (prior (n, K), u) makes left-out votes most likely."""
    rows = votes.item[judged]
    others = votes_say[rows] - evidence[judged]
    scores = [
        float(predictive(votes, confusions, softmax(prior[rows] + trust * others, axis=1), judged).sum())
        for prior, trust in choices
    ]
    return int(np.argmax(scores))
