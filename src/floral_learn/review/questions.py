"""Which rows to ask about: the answers that would settle most of what is still in doubt elsewhere."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from floral_learn.review.posterior import Posterior, turned

_CANDIDATES = 200
_REFERENCES = 400
_POOL = 3000


def settled(posterior: Posterior, candidates: np.ndarray, references: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Expected fall of doubt about `references` by the answer to each candidate, (len(candidates),).

    Doubt is p (1 - p), p the probability that a label is wrong, so the fall is the expected squared change of p. Each
    component's field moves by matched moments, and the components' weights move by how well they foretold the answer.
    """
    own, here = posterior.own(candidates), posterior.own(references)
    mean, variance = posterior.moments(candidates)
    far_mean, far_variance = posterior.moments(references)
    covariance = posterior.covariance(candidates, references).astype(np.float32)
    scale = 1 / np.sqrt(1 + np.pi / 8 * variance)
    chance = expit(scale * mean)
    first = scale * chance * (1 - chance)
    second = scale * first * (1 - 2 * chance)
    here, far_mean, far_variance = (part.astype(np.float32) for part in (here, far_mean, far_variance))
    now = posterior.weights @ turned(here, far_mean, far_variance)
    fall = np.zeros(len(candidates))
    for calm, stormy in ((own, 1 - own), (1 - own, own)):  # the label turns out wrong, or right
        foretold = calm + (stormy - calm) * chance
        step = (stormy - calm) * first / foretold
        bend = (stormy - calm) * second / foretold - step**2
        moved = far_mean[:, None, :] + covariance * step.astype(np.float32)[..., None]
        spread = np.maximum(far_variance[:, None, :] + covariance**2 * bend.astype(np.float32)[..., None], 1e-9)
        then = turned(here[:, None, :], moved, spread)
        share = posterior.weights[:, None] * foretold
        total = share.sum(axis=0)
        after = np.einsum("ci,cij->ij", share / total, then)
        fall += total * ((after - now) ** 2 @ weight)
    return fall


def subset(rows: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """At most `size` of `rows`, at random."""
    return rows if len(rows) <= size else np.sort(rng.choice(rows, size, replace=False))


def pool_of(n: int, rng: np.random.Generator) -> np.ndarray:
    """Rows among which questions are sought: all, or a random sample that stands for them."""
    return subset(np.arange(n), _POOL, rng)


def ask_settling(
    posterior: Posterior, free: np.ndarray, pool: np.ndarray, weight: np.ndarray, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """At most `n` of the rows `free`, best first, and what the first is expected to settle.

    Doubt about a row counts by its `weight` (rows of all, as `sample_weight`). Each further row counts only as far as
    it is not like the former.
    """
    posterior = posterior.thinned(0.01)
    candidates = subset(free, _CANDIDATES, rng)
    references = subset(pool, _REFERENCES, rng)
    share = weight[references] / max(float(weight[references].sum()), 1e-300)
    gain = settled(posterior, candidates, references, share)
    chosen: list[int] = []
    most = float(gain.max(initial=0.0))
    for _ in range(min(n, len(candidates))):
        best = int(np.argmax(gain))
        chosen.append(best)
        gain = gain * (1 - _alike(posterior, candidates, best))
        gain[chosen] = -1.0
    return candidates[chosen], most


def _alike(posterior: Posterior, candidates: np.ndarray, one: int) -> np.ndarray:
    """Squared correlation of every candidate's field with that of one of them, averaged over components."""
    _, variance = posterior.moments(candidates)
    covariance = posterior.covariance(candidates, candidates[[one]])[..., 0]
    return posterior.weights @ np.minimum(covariance**2 / (variance * variance[:, [one]]), 1.0)
