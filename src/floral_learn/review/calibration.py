"""How far the model's probabilities of wrong labels are off, and what the share of wrong labels is then.

The model's log-odds l become alpha + beta l. Before any answer alpha is the one by which the model agrees with the
audit's estimate of the share of wrong labels; answers move both, by how well the model foretold each of them from the
others. Rows that are asked about are mostly those that the model suspects: that they turn out wrong even more often
than foretold says that it ranks well (beta), not that all labels are worse (alpha). So every number that is shown comes
from one posterior, starts from the audit and ends with the answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, expit, logit, logsumexp
from scipy.stats import norm

from floral_learn.base import Shown
from floral_learn.review.answers import ERROR_PRIOR, USUAL
from floral_learn.review.expectation_propagation import sigmoid
from floral_learn.review.posterior import NEGLIGIBLE, SPREAD

# how often an interval may miss on each side, and names that mean nothing may pass for groups
TAIL = 0.05
# How much wider the share's interval is than the model's own, in log-odds: at 1 it held in 70 % of 46 cases after 10,
# 20 and 50 answers, at 2.5 in 90 % of 48 on development sets and in 93 % of 116 on eight others, all in view; chosen
MISFIT = 2.5
NORMAL = float(norm.ppf(1 - TAIL))  # and in standard deviations
_SHIFTS, _SLOPES = np.arange(-10.0, 10.1, 0.5), np.array([0.5, 1.0, 2.0, 4.0])


@dataclass(frozen=True)
class Calibration:
    """A grid of `shift` and `slope` (points,), with weights that sum to one.

    `none_wrong` is the probability that every label is right: wrong answers fall on any row, wrong labels on those that
    the model suspects. Shifted log-odds alone never come down to that.
    """

    shift: np.ndarray
    slope: np.ndarray
    weights: np.ndarray
    none_wrong: float

    def corrected(self, chance: np.ndarray) -> np.ndarray:
        """P(wrong), from the model's."""
        found = np.zeros(len(chance))
        log_odds = _logit(chance)
        for shift, slope, weight in zip(self.shift, self.slope, self.weights, strict=True):
            found += weight * sigmoid(shift + slope * log_odds)
        return found

    def interval(self, chance: np.ndarray, told: float) -> tuple[float, float]:
        """About 90 % for the sum of labels that are wrong: `told` among the answered, and others by the model's P.

        How far the model may be off, and what is left to chance once it is known.
        """
        log_odds = _logit(chance)
        at = (sigmoid(shift + slope * log_odds) for shift, slope in zip(self.shift, self.slope, strict=True))
        total, squares = np.array([(p.sum(), (p**2).sum()) for p in at]).T
        mean = float(self.weights @ total)
        by_chance = np.sqrt(NORMAL**2 * float(self.weights @ (total - squares)))
        order = np.argsort(total)
        low, high = np.interp([TAIL, 1 - TAIL], np.cumsum(self.weights[order]), total[order])
        low = max(0.0, mean - np.hypot(mean - low, by_chance))
        high = mean + np.hypot(high - mean, by_chance)
        return (0.0 if self.none_wrong > TAIL else told + low), told + min(high, len(chance))


def calibrate(before: np.ndarray, audited: float, foretold: np.ndarray, contradicted: np.ndarray) -> Calibration:
    """Learn shift and slope by Bayes' rule.

    Parameters
    ----------
    before : ndarray
        The model's P(wrong) of some rows before any answer.
    audited : float
        The audit's estimate of the share of wrong labels.
    foretold : ndarray of shape (m,)
        P(wrong) of each answered row by the other answers.
    contradicted : bool ndarray of shape (m,)
        Whether the answer contradicts the label.
    """
    slope, shift = (part.ravel() for part in np.meshgrid(_SLOPES, _SHIFTS, indexing="ij"))
    prior = np.empty(len(shift))
    for b in _SLOPES:
        shares = [sigmoid(a + b * _logit(before)).mean() for a in _SHIFTS]
        prior[slope == b] = -0.5 * ((_SHIFTS - np.interp(audited, shares, _SHIFTS)) / SPREAD) ** 2
    prior -= logsumexp(prior)
    chance = sigmoid(shift[:, None] + slope[:, None] * _logit(foretold))
    # P(the answer contradicts)
    seen = np.clip(chance * (1 - USUAL) + (1 - chance) * USUAL, 1e-9, 1 - 1e-9)
    log = np.where(contradicted, np.log(seen), np.log1p(-seen)).sum(axis=1) + prior
    total = logsumexp(log)
    a, b = ERROR_PRIOR
    only_answers_wrong = betaln(a + contradicted.sum(), b + (~contradicted).sum()) - betaln(a, b)
    kept = (weights := np.exp(log - total)) >= NEGLIGIBLE
    none_wrong = float(expit(only_answers_wrong - total)) if len(foretold) else 0.0
    return Calibration(shift[kept], slope[kept], weights[kept] / weights[kept].sum(), none_wrong)


def widened(estimate: float, low: float, high: float) -> tuple[float, float]:
    """The interval of the share, `MISFIT` times as wide in log-odds: errors need not lie as any hypothesis has them."""
    middle, ends = logit(np.clip(estimate, 1e-9, 1 - 1e-9)), logit(np.clip([low, high], 1e-9, 1 - 1e-9))
    below, above = expit(middle + MISFIT * (ends - middle))
    return 0.0 if low <= 0 else float(min(below, estimate)), float(max(above, estimate))


def _logit(p: np.ndarray) -> np.ndarray:
    p = np.clip(p, 0.001, 0.999)
    return np.log(p) - np.log1p(-p)


@dataclass(frozen=True, repr=False)
class WrongShare(Shown):
    """The share of given labels that are wrong: an interval of about 90 %, and an estimate.

    Attributes
    ----------
    estimate : float
        The mean of `LabelReview.wrong_probability`; before the first answer the audit's estimate.
    low, high : float
        The interval.
    known : bool
        Whether there are at least twenty answers; before that the estimate is hardly more than the audit's.
    """

    estimate: float
    low: float
    high: float
    known: bool = True

    def __float__(self) -> float:
        return self.estimate

    def _facts(self) -> dict[str, str]:
        point = f"{self.estimate:.1%}" + ("" if self.known else ", from few answers")
        return {"wrong labels": f"{self.low:.1%} to {self.high:.1%}", "estimate": point}

    def __str__(self) -> str:
        return f"{self.low:.1%} to {self.high:.1%} (estimate {self._facts()['estimate']})"


@dataclass(frozen=True, repr=False)
class Expected(Shown):
    """An expected number of labels, and an interval of about 90 % around it."""

    labels: float
    low: float
    high: float

    def __float__(self) -> float:
        return self.labels

    def _facts(self) -> dict[str, str]:
        return {"labels": f"{self.labels:.1f}", "interval": f"{self.low:.1f} to {self.high:.1f}"}
