"""The model's own estimate of how many labels are wrong."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logsumexp, xlog1py, xlogy
from scipy.stats import beta

from floral_learn.base import Shown
from floral_learn.review.beliefs import Beliefs
from floral_learn.review.expectation_propagation import sigmoid

FIRST_ANSWERS, FIRST_DRAWN = 20, 5  # answers, and those to rows drawn at random, before which no share is named
_TAIL = 0.05  # on each side of the interval
# How often people answer wrongly, all alike before anything is known, and how far the model is believed to be off: the
# narrowest of a few by which intervals held on the development sets of benchmarks/questions.py
_ANSWER_ERRORS, _SHIFT_SPREAD = (0.0, 0.075, 0.15), 1.5
_SHIFTS = np.linspace(-6.0, 6.0, 121)
_GRID = 2001


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


def estimated_share(beliefs: Beliefs, wrong: np.ndarray, drawn: Container[int]) -> WrongShare:
    """The share of wrong labels by the posterior, put to the test of the answers, and by the rows drawn at random.

    Two opinions are averaged quantile by quantile, for neither alone is right often enough. The model's: P(wrong) of
    every row, shifted on the logit scale by what its own predictions of each answer from the others
    (`Posterior.left_out`) turn out to be off by. And, whatever the model says, a Beta posterior (Jeffreys' prior) of
    the share among rows drawn at random. Both allow for wrong answers. To average the distributions in place of their
    quantiles covered no more, and was wider.

    Shifted log-odds never come down to no wrong label at all, though every answer that contradicts one may itself be
    wrong. Wrong answers fall on any row, wrong labels on those that the model suspects: so that no label is wrong is a
    hypothesis of its own, at even odds with the model's, and where the answers leave it likely the interval reaches 0.

    Parameters
    ----------
    beliefs : Beliefs
        What is known after the answers.
    wrong : ndarray of shape (n,)
        P(wrong) of every row.
    drawn : container of int
        Answered rows that come from the random order.
    """
    codes, posterior = beliefs.data.codes, beliefs.posterior
    told = {row: code != codes[row] for row, code in beliefs.answers.agreed.items() if code is not None}
    known = [k for k, row in enumerate(posterior.at.tolist()) if row in told]
    rows = posterior.at[known].tolist()
    contradicted = np.array([told[row] for row in rows], dtype=bool)
    fair = np.array([row in drawn for row in rows], dtype=bool)
    foretold, free = _logit(posterior.left_out()[known]), _logit(wrong[beliefs.free])
    least = sum(told.values())  # labels that answers contradict
    shares = np.linspace(0.0, 1.0, _GRID)
    by_model, by_draw = np.zeros(_GRID), np.zeros(_GRID)  # distribution functions
    by_shift = np.array([sigmoid(free + shift).sum() for shift in _SHIFTS])
    hits, misses = (contradicted & fair).sum(), (~contradicted & fair).sum()
    prior = -0.5 * (_SHIFTS / _SHIFT_SPREAD) ** 2
    by_error, none_wrong = [], []  # log probability of the answers, by shift, and if every label is right
    for error in _ANSWER_ERRORS:
        # the shift of all log-odds, by Bayes' rule on a grid
        chance = sigmoid(foretold + _SHIFTS[:, None])
        seen = chance * (1 - error) + (1 - chance) * error  # P(the answer contradicts the label)
        fit = np.where(contradicted, np.log(seen), np.log1p(-seen)).sum(axis=1) + prior
        mass = np.exp(fit - fit.max())
        by_model += np.interp(
            shares, (least + by_shift) / len(wrong), np.cumsum(mass) / mass.sum(), left=0.0, right=1.0
        )
        by_error.append(logsumexp(fit))
        none_wrong.append(xlogy(contradicted.sum(), error) + xlog1py((~contradicted).sum(), -error))
        # the share s among drawn rows, as answers show it: s (1 - 2 error) + error
        drawn_below = beta.cdf(error + (1 - 2 * error) * shares, hits + 0.5, misses + 0.5)
        by_draw += (drawn_below - drawn_below[0]) / (drawn_below[-1] - drawn_below[0])
    both = [total / len(_ANSWER_ERRORS) for total in (by_model, by_draw)]
    low, high = (float(np.mean([np.interp(p, total, shares) for total in both])) for p in (_TAIL, 1 - _TAIL))
    estimate = float(np.mean([np.sum(0.5 * (shares[1:] + shares[:-1]) * np.diff(total)) for total in both]))
    most_share = (least + len(free)) / len(wrong)  # what answers leave possible
    if expit(logsumexp(none_wrong) - logsumexp(by_error) + logsumexp(prior)) > _TAIL:
        low = 0.0
    estimate, low, high = (min(value, most_share) for value in (estimate, low, high))
    return WrongShare(estimate, low, high)


def _logit(p: np.ndarray) -> np.ndarray:
    p = np.clip(p, 0.005, 0.995)
    return np.log(p) - np.log1p(-p)
