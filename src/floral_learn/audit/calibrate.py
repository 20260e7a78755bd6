"""Turn a raw score into P(label is wrong), from flips planted by ourselves in the data at hand.

Flip a tenth of the given labels at random and score again. Let pi be the unknown share of wrong labels, f1 and f0 the
densities of the raw scores of wrong and right ones. A planted flip makes a right label wrong and, with probability
1 / (M - 1), a wrong one right, so that with p' = pi / (M - 1) the planted and the other labels have the densities

    g = (1 - p') f1 + p' f0          f = pi f1 + (1 - pi) f0,

and g / f = P(planted | s) / P(not planted | s) * (1 - rho) / rho, rho the planted share, is known: monotone in s, by
isotonic regression. Eliminating f0 gives

    P(wrong | s) = pi f1(s) / f(s) = pi ((1 - pi) g/f - p') / (1 - pi - p').

pi is the largest share that the tail of large scores allows (there f0 vanishes and f / g is pi / (1 - p')), the usual
estimate of a mixture's proportion. True flips are never used, and none need be known. What the planted flips are
(scattered) bounds what the probability means: labels flipped together, region by region, look less wrong than they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.isotonic import IsotonicRegression

PLANTED = 0.1  # share of the rows
MOST_WRONG = 0.45  # at half and half, right and wrong change places


@dataclass(frozen=True)
class Calibration:
    """Monotone map from raw scores to probabilities, and the estimated share of wrong labels."""

    scores: np.ndarray  # (m,), increasing
    ratios: np.ndarray  # (m,), g / f at the scores
    wrong_share: float  # pi
    n_classes: int
    most: float  # no probability is above this: some hundred planted flips cannot show more

    def __call__(self, raw: np.ndarray) -> np.ndarray:
        """P(wrong) for raw scores; a thousandth of the raw score is mixed in, which keeps the ranking within steps."""
        ratio = np.interp(raw, self.scores, self.ratios)
        pi = self.wrong_share
        back = pi / (self.n_classes - 1)
        p = pi * ((1 - pi) * ratio - back) / (1 - pi - back)
        return 0.999 * np.clip(p, 0, self.most) + 0.001 * np.clip(raw, 0, 1)


def plant(labels: np.ndarray, allowed: np.ndarray, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Row numbers of the planted flips, (m,), among the `allowed` ones; a class that would lose all rows keeps them."""
    rows = np.flatnonzero(allowed)
    chosen = rng.choice(rows, size=max(1, int(PLANTED * len(rows))), replace=False)
    counts = np.bincount(labels, minlength=n_classes)
    taken = np.bincount(labels[chosen], minlength=n_classes)
    return chosen[(taken < counts)[labels[chosen]]]


def calibrate(raw_planted: np.ndarray, planted: np.ndarray, n_classes: int = 2) -> Calibration:
    """Fit the map from the raw scores (n,) of the labels with planted flips, and which rows these are, bool (n,)."""
    order = np.argsort(raw_planted, kind="stable")
    s, hit = raw_planted[order], planted[order].astype(float)
    rho = hit.mean()
    if not 0 < rho < 1:
        return Calibration(np.array([0.0, 1.0]), np.array([0.0, 1.0]), 0.0, n_classes, 0.0)
    steps = IsotonicRegression(y_min=0.0, y_max=1.0).fit_transform(s, hit)
    _, step, count = np.unique(steps, return_inverse=True, return_counts=True)
    # A step of m planted rows and no other does not prove that no other can lie there: one more is counted.
    height = np.maximum.accumulate(np.bincount(step, weights=hit) / (count + 1))
    knots = np.unique(np.quantile(s, np.linspace(0, 1, 500), method="nearest"))
    p = height[step[np.searchsorted(s, knots)]]
    ratios = p / (1 - p) * (1 - rho) / rho
    # Tails that hold a third to two thirds of the planted flips: short ones are noise, long ones hold right labels.
    tail_planted = np.cumsum(hit[::-1]) / hit.sum()
    tail_others = np.cumsum(1 - hit[::-1]) / (1 - hit).sum()
    enough = (tail_planted >= 1 / 3) & (tail_planted <= 2 / 3)
    if not enough.any():
        enough = tail_planted > 0
    # The mean over these tails, since the smallest of many noisy ratios is too small. One more row than seen: an empty
    # tail must not read as a certainty.
    share = float(((tail_others[enough] + 1 / (1 - hit).sum()) / tail_planted[enough]).mean())
    pi = min(share / (1 + share / (n_classes - 1)), MOST_WRONG)
    return Calibration(knots, ratios, pi, n_classes, 1 - 1 / np.sqrt(1 + hit.sum()))
