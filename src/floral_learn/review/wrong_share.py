"""The model's own estimate of how many labels are wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from floral_learn.base.shown import Shown
from floral_learn.review.posterior import Posterior, wrong_chance

FIRST_ANSWERS, FIRST_DRAWN = 20, 5  # answers, and those to rows drawn at random, before which no share is named
_WIDTH = 1.645  # standard deviations on each side: nine in ten, if the model is right
_WORTH = 4  # an answer, with the model's help, is believed to be worth at most so many random ones
_SAMPLE = 300  # rows on which what they share is measured


@dataclass(frozen=True, repr=False)
class WrongShare(Shown):
    """The share of given labels that are wrong: an estimate once there are answers enough, and an interval.

    Attributes
    ----------
    estimate : float
        The model's estimate; NaN as long as it is not `known`: before that it would be the prior.
    low, high : float
        An interval of about 90 %: the model's, or, as long as nothing is known, what the rows drawn at random allow.
    known : bool
        Whether there are at least twenty answers, of them five to rows drawn at random (or all rows are answered).
    """

    estimate: float
    low: float
    high: float
    known: bool = True

    def __float__(self) -> float:
        return self.estimate

    def _facts(self) -> dict[str, str]:
        interval = f"{self.low:.1%} to {self.high:.1%}"
        if not self.known:
            return {"wrong labels, estimated": "not known yet", "what answers allow so far": interval}
        return {"wrong labels, estimated": f"{self.estimate:.1%}", "interval": interval}

    def __str__(self) -> str:
        interval = f"({self.low:.1%} to {self.high:.1%})"
        return f"{self.estimate:.1%} {interval}" if self.known else f"not known yet {interval}"


def enough_answers(answered: int, drawn: int, total: int) -> bool:
    """Whether so many answered rows, `drawn` of them at random, allow to name a share of wrong labels."""
    return answered >= min(FIRST_ANSWERS, total) and drawn >= min(FIRST_DRAWN, total)


def estimated_share(posterior: Posterior, wrong: np.ndarray, pool: np.ndarray) -> WrongShare:
    """The share with its spread: between components, within the main one, and the toss of a coin for every row.

    Parameters
    ----------
    posterior : Posterior
    wrong : ndarray of shape (n,)
        P(wrong) of every row.
    pool : ndarray
        Rows that stand for all.
    """
    estimate = float(wrong.mean())
    by_component = posterior.by_component(pool).mean(axis=1)
    between = float(posterior.weights @ (by_component - posterior.weights @ by_component) ** 2)
    tosses = float((wrong * (1 - wrong)).sum()) / len(wrong) ** 2
    least = estimate * (1 - estimate) / (_WORTH * (len(posterior.at) + 1))
    half = _WIDTH * np.sqrt(max(between + _within(posterior, pool), least) + tosses)
    return WrongShare(estimate, max(0.0, estimate - half), min(1.0, estimate + half))


def _within(posterior: Posterior, pool: np.ndarray) -> float:
    """Variance of the mean probability that rows share under the main component, to first order."""
    main = posterior.thinned(posterior.weights.max())
    some = pool[:: max(1, len(pool) // _SAMPLE)]
    seen = main.seen_from(some)
    own, mean, variance = main.own(some)[0], seen.mean[0], seen.variance[0]
    step = 1e-3
    slope = (wrong_chance(own, mean + step, variance) - wrong_chance(own, mean - step, variance)) / (2 * step)
    return float(slope @ main.covariance(seen, seen)[0] @ slope) / len(some) ** 2
