"""How sure is a vote of noisy labels? Chernoff bounds on P(a'Y >= 1/2), and the flips they certify.

Y has independent 0/1 entries: the given label y_i, flipped with probability q. All functions work on
rows ``a`` (m, n) of weights that do not depend on the labels.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import binom

_NEWTON_STEPS = 30
_DOUBLINGS = 40


def chernoff_log_failure(
    a: NDArray[np.float64], y: NDArray[np.float64], q: float, positive: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """log of an upper bound (m,) on the probability that a noisy vote misses the side in ``positive``.

    For side 1: P(a'Y < 1/2) <= min_{t >= 0} exp(t/2) prod_i E exp(-t a_i Y_i); side 0 mirrors it. The
    exponent is convex in t; a bracketed Newton iteration finds its minimum. Any t >= 0 gives a valid
    bound, so stopping early costs tightness, never soundness.
    """
    sign = np.where(positive, 1.0, -1.0)[:, None]
    signed = sign * a
    chance = np.where(y > 0.5, 1.0 - q, q)  # P(Y_i = 1)
    offset, floor = logit(chance), np.log1p(-chance).sum()

    def slope(t: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        share = expit(offset - t[:, None] * signed)
        first = 0.5 * sign[:, 0] - (signed * share).sum(axis=1)
        return first, (signed**2 * share * (1.0 - share)).sum(axis=1)

    low = np.zeros(len(a))
    high = np.ones(len(a))
    for _ in range(_DOUBLINGS):
        rising = slope(high)[0] >= 0
        if rising.all():
            break
        high = np.where(rising, high, 2.0 * high)
    t = low.copy()
    for _ in range(_NEWTON_STEPS):
        first, second = slope(t)
        low = np.where(first < 0, t, low)
        high = np.where(first >= 0, np.minimum(t, high), high)
        step = t - first / np.maximum(second, 1e-300)
        inside = (step > low) & (step < high)
        t = np.where(inside, step, 0.5 * (low + high))
    exponents = offset - t[:, None] * signed
    log_bound = 0.5 * sign[:, 0] * t + np.logaddexp(0.0, exponents).sum(axis=1) + floor
    # The terms cancel; what their rounding could hide is added back, so that the bound stays one.
    log_bound += 1e-13 * t * (0.5 + np.abs(a).sum(axis=1))
    return np.minimum(log_bound, 0.0)


def certified_flips(log_failure: NDArray[np.float64], q: float, n: int) -> NDArray[np.intp]:
    """Label flips (m,), at most n, that cannot turn a noisy majority that fails with probability <= exp(log_failure).

    -1 where that probability is not below 1/2. After r flips the noisy labels differ in law only on r rows. By
    Neyman and Pearson the worst vote of a given failure probability fails where most of the r noisy labels equal
    the flipped ones; it still wins if that set has less than half of the new mass. This is tight for what is
    known of the vote, and never below the closed form of the paper,
    r = floor(log(4 p (1 - p)) / (2 (1 - 2 q) log(q / (1 - q)))) with p = 1 - failure.
    """
    # Rounding must never round a certificate up: the failure is taken a hair larger than it is.
    reached = (log_failure[:, None] + 1e-9 < _log_turning_mass(np.arange(1, n + 1), q)[None]).sum(axis=1)
    return np.where(log_failure < np.log(0.5), reached, -1)


def _log_turning_mass(r: NDArray[np.intp], q: float) -> NDArray[np.float64]:
    """log of the smallest failure probability (len(r),) with which some vote is turned by r flips.

    D, the number of the r noisy labels that equal the flipped ones, is Bin(r, q) before and Bin(r, 1 - q) after
    the flips. The set that holds half of the mass after is {D > c} and a share of {D = c}; this is its mass before.
    """
    c = binom.median(r, 1.0 - q)
    above, at = binom.sf(c, r, 1.0 - q), binom.pmf(c, r, 1.0 - q)
    share = np.clip((0.5 - above) / at, np.finfo(float).tiny, 1.0)
    return np.logaddexp(binom.logsf(c, r, q), np.log(share) + binom.logpmf(c, r, q))


def flips_to_cross(
    a: NDArray[np.float64], y: NDArray[np.float64], q: float, margin: NDArray[np.float64]
) -> NDArray[np.intp]:
    """Flips (m,) that the mean vote E[a'Y] survives, exactly: the best attack takes the largest steps first.

    ``margin`` (m,) is E[a'Y] - 1/2. Flipping label i moves it by (1 - 2 q) a_i (1 - 2 y_i).
    """
    moves = (1.0 - 2.0 * q) * a * (1.0 - 2.0 * y)
    against = np.where((margin >= 0)[:, None], -moves, moves)
    gains = np.cumsum(-np.sort(-np.maximum(against, 0.0), axis=1), axis=1)
    return (gains < np.abs(margin)[:, None] * (1.0 - 1e-12)).sum(axis=1)
