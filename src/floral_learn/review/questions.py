"""Which rows to ask about: the answers that would settle most of what is still in doubt elsewhere."""

from __future__ import annotations

import numpy as np
from scipy.stats.qmc import Halton

from floral_learn.review.expectation_propagation import averaged_sigmoid
from floral_learn.review.posterior import SAMPLE, Posterior, Seen, wrong_chance

_POOL, _AT_ONCE = 3000, 50  # rows among which those of one question are drawn, and candidates that are judged at once


def settled(posterior: Posterior, candidates: Seen, references: Seen, weight: np.ndarray) -> np.ndarray:
    """Expected fall of doubt about `references` by the answer to each candidate, (candidates,).

    Doubt is p (1 - p), p the probability that a label is wrong, so the fall is the expected squared change of p. Each
    component's field moves by matched moments, and the components' weights move by how well they foretold the answer.
    """
    own, here = posterior.own(candidates.at), posterior.own(references.at).astype(np.float32)
    far_mean, far_variance = references.mean.astype(np.float32), references.variance.astype(np.float32)
    # E[r] of each candidate, and its first two derivatives by the mean of logit r
    scale = 1 / np.sqrt(1 + np.pi / 8 * candidates.variance)
    chance = averaged_sigmoid(candidates.mean, candidates.variance)
    first = scale * chance * (1 - chance)
    second = scale * first * (1 - 2 * chance)
    still = wrong_chance(here, far_mean, far_variance)
    now = posterior.weights @ still
    # a component without regions learns nothing about other rows from an answer: only its weight moves
    high = np.flatnonzero([c.height > 0 for c in posterior.components])
    flat = np.setdiff1d(np.arange(len(posterior.components)), high)
    some = posterior.only(high)
    covariance = some.covariance(candidates.of(high), references.of(high)).astype(np.float32)
    squared = covariance * covariance
    fall = np.zeros(len(candidates.at))
    for plain, turned in ((own, 1 - own), (1 - own, own)):  # the label turns out wrong, or right
        foretold = plain + (turned - plain) * chance
        share = posterior.weights[:, None] * foretold
        total = share.sum(axis=0)
        share = (share / total).astype(np.float32)
        after = share[flat].T @ still[flat].astype(np.float32)
        if len(high):
            # moments after the answer by the derivatives of its log probability (Rasmussen and Williams 2006, 3.59)
            step = (turned - plain) * first / foretold
            bend = (turned - plain) * second / foretold - step**2
            moved = covariance * step[high].astype(np.float32)[..., None]
            moved += far_mean[high][:, None]
            spread = squared * bend[high].astype(np.float32)[..., None]
            spread += far_variance[high][:, None]
            np.maximum(spread, 1e-9, out=spread)
            after += np.einsum("ci,cij->ij", share[high], wrong_chance(here[high][:, None], moved, spread))
        fall += total * ((after - now) ** 2 @ weight)
    return fall


def subset(rows: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """At most `size` of `rows`, at random."""
    return rows if len(rows) <= size else np.sort(rng.choice(rows, size, replace=False))


def pool_of(n: int, rng: np.random.Generator) -> np.ndarray:
    """Rows among which questions are sought: all, or a random sample that stands for them."""
    return subset(np.arange(n), _POOL, rng)


def ask_settling(
    posterior: Posterior,
    free: np.ndarray,
    pool: np.ndarray,
    misread: np.ndarray,
    weight: np.ndarray,
    n: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, float]:
    """At most `n` of the rows `free`, best first, and the most that one of them is expected to settle elsewhere.

    An answer settles doubt elsewhere, and it sets its own row right, which counts by the probability `misread` (n,)
    that a model would be trained on a wrong label there: where flips lie at random, that is all that answers can do.
    Rows count by their `weight` (n,). Each further row counts only as far as it is not like the former.
    """
    posterior = posterior.thinned()
    doubted = free[np.argsort(-misread[free], kind="stable")[: SAMPLE // 4]]
    some = np.union1d(subset(free, SAMPLE - len(doubted), rng), doubted)
    candidates = posterior.seen_from(some)
    references = posterior.seen_from(subset(pool, 2 * SAMPLE, rng))
    share = weight[references.at] / max(float(weight[references.at].sum()), 1e-300)
    # in parts: what an answer would do to each reference takes much memory
    blocks = [np.arange(len(some))[start : start + _AT_ONCE] for start in range(0, len(some), _AT_ONCE)]
    parts = [settled(posterior, candidates.only(block), references, share) for block in blocks]
    elsewhere = np.concatenate([np.zeros(0), *parts])
    gain = elsewhere + misread[candidates.at] * weight[candidates.at] / max(float(weight.sum()), 1e-300)
    chosen: list[int] = []
    most = float(elsewhere.max(initial=0.0))
    for _ in range(min(n, len(candidates.at))):
        best = int(np.argmax(gain))
        chosen.append(best)
        gain = gain * (1 - _alike(posterior, candidates, best))
        gain[chosen] = -1.0
    return candidates.at[chosen], most


def _alike(posterior: Posterior, candidates: Seen, one: int) -> np.ndarray:
    """Squared correlation of every candidate's field with that of one of them, averaged over components."""
    covariance = posterior.covariance(candidates, candidates.only(np.array([one])))[..., 0]
    variance = candidates.variance
    return posterior.weights @ np.minimum(covariance**2 / (variance * variance[:, [one]]), 1.0)


def look_along(scores: np.ndarray, free: np.ndarray, done: int, n: int, seed: int) -> np.ndarray:
    """At most n free rows spread over the `scores` (n,), after `done` that were asked before.

    In halves, quarters and so on of their order, shifted by chance: nobody who placed wrong labels can know where. A
    stretch of scores whose labels were turned over is seen before it is suspected.
    """
    shift = np.random.default_rng([seed, 7]).random()
    order = np.flatnonzero(free)
    order = order[np.argsort(scores[order], kind="stable")]
    halves = Halton(1, scramble=False).fast_forward(done + 1).random(n)[:, 0]  # 1/2, 1/4, 3/4, 1/8 and so on
    places = (len(order) * ((halves + shift) % 1.0)).astype(int).tolist()
    return order[list(dict.fromkeys(places))] if len(order) else order
