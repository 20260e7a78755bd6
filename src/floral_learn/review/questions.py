"""Which rows to ask about: those whose answers are expected to set most labels right, their own and others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from floral_learn.review.beliefs import Beliefs
from floral_learn.review.calibration import NORMAL, Expected
from floral_learn.review.expectation_propagation import averaged_sigmoid
from floral_learn.review.posterior import NEGLIGIBLE, SAMPLE, Moments, Posterior, wrong_chance

POOL = 10 * SAMPLE  # rows among which questions are sought


class Question(NamedTuple):
    """A row to ask about, and whether it comes from the random order."""

    row: int
    drawn: bool


@dataclass(frozen=True)
class Ranking:
    """Rows to ask about, best first, and how many labels each answer is expected to set right.

    `own` is the row's own label, `elsewhere` those that will be corrected with it if labels were flipped in regions, of
    each further row as far as it is not like the former; `regions` is the probability that they were.
    """

    rows: np.ndarray
    own: np.ndarray
    elsewhere: np.ndarray
    regions: float

    def expected(self, n: int) -> Expected:
        """What the first `n` answers set right together."""
        own, elsewhere = self.own[:n], float(self.elsewhere[:n].sum())
        total, spread = float(own.sum()), NORMAL * float(np.sqrt((own * np.maximum(1 - own, 0.0)).sum()))
        labels = total + self.regions * elsewhere
        return Expected(labels, max(0.0, total - spread), max(labels, total + spread + elsewhere))


def settled(posterior: Posterior, candidates: Moments, references: Moments, weight: np.ndarray) -> np.ndarray:
    """Expected fall of doubt about `references`, each by its `weight`, by the answer to each candidate, (candidates,).

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
    now = posterior.weights @ wrong_chance(here, far_mean, far_variance)
    covariance = posterior.covariance(candidates, references).astype(np.float32)
    squared = covariance * covariance
    fall = np.zeros(len(candidates.at))
    # the label turns out wrong, or right
    for plain, turned in ((own, 1 - own), (1 - own, own)):
        foretold = plain + (turned - plain) * chance
        share = posterior.weights[:, None] * foretold
        total = share.sum(axis=0)
        # moments after the answer by the derivatives of its log probability (Rasmussen and Williams 2006, 3.59)
        step = (turned - plain) * first / foretold
        bend = (turned - plain) * second / foretold - step**2
        moved = covariance * step.astype(np.float32)[..., None]
        moved += far_mean[:, None]
        spread = squared * bend.astype(np.float32)[..., None]
        spread += far_variance[:, None]
        np.maximum(spread, 1e-9, out=spread)
        weights = (share / total).astype(np.float32)
        after = np.einsum("ci,cij->ij", weights, wrong_chance(here[:, None], moved, spread))
        fall += total * ((after - now) ** 2 @ weight)
    return fall


def subset(rows: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """At most `size` of `rows`, at random."""
    return rows if len(rows) <= size else np.sort(rng.choice(rows, size, replace=False))


def rank_questions(beliefs: Beliefs, weight: np.ndarray, n: int, rng: np.random.Generator) -> Ranking:
    """At most `n` of the rows that may still be asked about, of the pool, best first.

    An answer sets its own row right with the probability that the likeliest class is not the true one. What it settles
    elsewhere counts by the probability that labels were flipped in regions. Rows count by their `weight` (n,).
    """
    posterior, pool = beliefs.posterior, beliefs.data.pool
    chance, free = posterior.regions_chance, pool[beliefs.free[pool]]
    if not len(free):
        return Ranking(free, np.zeros(0), np.zeros(0), chance)
    unsure = weight[free] * (1 - beliefs.of(free).max(axis=1))
    doubted = free[np.argsort(-unsure, kind="stable")[: SAMPLE // 4]]
    some = np.union1d(subset(free, SAMPLE - len(doubted), rng), doubted)
    own = unsure[np.searchsorted(free, some)]
    likely = posterior.only(np.flatnonzero(posterior.weights >= 10 * NEGLIGIBLE))
    candidates = likely.moments(some)
    references = likely.moments(subset(pool, 2 * SAMPLE, rng))
    stands_for = weight[references.at] * (len(weight) / len(references.at))
    # in parts: what an answer would do to each reference takes much memory
    blocks = np.array_split(np.arange(len(some)), -(-len(some) // (SAMPLE // 4)))
    elsewhere = np.concatenate([settled(likely, candidates.only(at), references, stands_for) for at in blocks])
    chosen: list[int] = []
    left = elsewhere.copy()
    for _ in range(min(n, len(some))):
        gain = own + chance * left
        gain[chosen] = -1.0
        chosen.append(int(np.argmax(gain)))
        if len(chosen) < n:
            news = left[chosen[-1]]
            left *= 1 - _alike(likely, candidates, chosen[-1])
            left[chosen[-1]] = news
    return Ranking(some[chosen], own[chosen], left[chosen], chance)


def rows_like(posterior: Posterior, row: int, pool: np.ndarray) -> int:
    """About how many other rows an answer about `row` tells, too: squared correlations of their fields, summed."""
    likely = posterior.only(np.flatnonzero(posterior.components.regional))
    here, there = likely.moments(np.array([row])), likely.moments(pool)
    shared = likely.covariance(here, there)[:, 0] ** 2 / (here.variance * there.variance)
    each = posterior.regions_chance * (likely.weights @ np.minimum(shared, 1.0)).mean()
    return round(float(each) * (len(posterior.problem.codes) - 1))


def _alike(posterior: Posterior, candidates: Moments, one: int) -> np.ndarray:
    """Squared correlation of every candidate's field with that of one of them, averaged over components."""
    covariance = posterior.covariance(candidates, candidates.only(np.array([one])))[..., 0]
    variance = candidates.variance
    return posterior.weights @ np.minimum(covariance**2 / (variance * variance[:, [one]]), 1.0)
