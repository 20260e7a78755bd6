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
from scipy.special import expit, logsumexp, xlog1py, xlogy

from floral_learn.base import Shown
from floral_learn.review.expectation_propagation import sigmoid

FIRST_ANSWERS = 20  # answers before which the share is hardly more than what the audit said
_TAIL = 0.05  # on each side of an interval
# How often people answer wrongly, all alike before anything is known, and how far alpha is believed to be off; priors
_ANSWER_ERRORS, _SPREAD = (0.0, 0.075, 0.15), 1.5
_SHIFTS, _SLOPES = np.arange(-10.0, 10.1, 0.25), np.array([0.5, 1.0, 2.0, 4.0])
_LEAST = 1e-3  # weight below which a point of the grid is left out


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
        """About 90 % for the sum of labels that are wrong: `told` among the answered, and others by the model's P."""
        log_odds = _logit(chance)
        total = np.array([sigmoid(a + b * log_odds).sum() for a, b in zip(self.shift, self.slope, strict=True)])
        order = np.argsort(total)
        below = np.cumsum(self.weights[order])
        low, high = (told + float(np.interp(p, below, total[order])) for p in (_TAIL, 1 - _TAIL))
        return (0.0 if self.none_wrong > _TAIL else low), high


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
        prior[slope == b] = -0.5 * ((_SHIFTS - np.interp(audited, shares, _SHIFTS)) / _SPREAD) ** 2
    prior -= logsumexp(prior)
    chance = sigmoid(shift[:, None] + slope[:, None] * _logit(foretold))
    by_error, none_wrong = [], []  # log probability of the answers, by point, and if every label is right
    for error in _ANSWER_ERRORS:
        seen = np.clip(chance * (1 - error) + (1 - chance) * error, 1e-9, 1 - 1e-9)  # P(the answer contradicts)
        by_error.append(np.where(contradicted, np.log(seen), np.log1p(-seen)).sum(axis=1) + prior)
        none_wrong.append(xlogy(contradicted.sum(), error) + xlog1py((~contradicted).sum(), -error))
    log = logsumexp(by_error, axis=0)
    total = logsumexp(log)
    weights = np.exp(log - total)
    kept = weights >= min(_LEAST, weights.max())
    none = float(expit(logsumexp(none_wrong) - total)) if len(foretold) else 0.0
    return Calibration(shift[kept], slope[kept], weights[kept] / weights[kept].sum(), none)


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
