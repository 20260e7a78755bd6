"""Which rows to ask about: the answers that would settle most of what is still in doubt elsewhere."""

from __future__ import annotations

import numpy as np

from floral_learn.review.posterior import Posterior, squashed

_CANDIDATES = 400
_REFERENCES = 1000
_POOL = 3000


def settled(posterior: Posterior, candidates: np.ndarray, references: np.ndarray) -> np.ndarray:
    """Expected fall of doubt about `references` by the answer to each candidate, (len(candidates),).

    An answer about row i lowers the variance of row j's logit by cov_ij^2 / (var_i + noise_i); it counts as far as j
    is in doubt, exp(-|mean_j| / sd_j), and the components count by their weights.
    """
    gain = np.zeros(len(candidates))
    means, variances = posterior.moments(references)
    own_means, own_variances = posterior.moments(candidates)
    for which, weight in enumerate(posterior.weights):
        if weight < 1e-3:
            continue
        chance = squashed(own_means[which], own_variances[which])
        noise = 1.0 / np.maximum(chance * (1 - chance), 0.05)
        doubt = np.exp(-np.abs(means[which]) / np.sqrt(variances[which]))
        covariance = posterior.covariance(which, candidates, references)
        gain += weight * ((covariance**2) @ doubt) / (own_variances[which] + noise)
    return gain


def subset(rows: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """At most `size` of `rows`, at random."""
    return rows if len(rows) <= size else np.sort(rng.choice(rows, size, replace=False))


def pool_of(n: int, rng: np.random.Generator) -> np.ndarray:
    """Rows among which questions are sought: all, or a random sample that stands for them."""
    return subset(np.arange(n), _POOL, rng)


def ask_settling(
    posterior: Posterior, free: np.ndarray, pool: np.ndarray, n: int, rng: np.random.Generator
) -> np.ndarray:
    """At most `n` of the rows `free`, best first; each further one counts only what the former leave in doubt."""
    candidates = subset(free, _CANDIDATES, rng)
    references = subset(pool, _REFERENCES, rng)
    gain = settled(posterior, candidates, references)
    order = np.argsort(-gain, kind="stable")[: max(n, 1)]
    return candidates[order]
