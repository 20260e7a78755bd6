"""Turn a raw score into P(label is wrong), from flips planted by ourselves in the data at hand.

Flip a tenth of the given labels at random and score again: f1, the density of raw scores of wrong labels, is that of
the planted ones, and f that of all the others, which hold an unknown share pi of wrong labels already. By Bayes

    P(wrong | s) = pi f1(s) / f(s),          f1 / f = P(planted | s) / P(not planted | s) * (1 - rho) / rho,

with rho the planted share. The ratio is monotone in s by isotonic regression. pi is the largest share for which
f - pi f1 stays a density, the usual estimate of a mixture's proportion: it is read off the tail of large scores.
True flips are never used, and none need be known. What the planted flips are (scattered) bounds what the probability
means: labels flipped together, region by region, look less wrong than they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.isotonic import IsotonicRegression

PLANTED = 0.1  # share of the rows


@dataclass(frozen=True)
class Calibration:
    """Monotone map from raw scores to probabilities, and the estimated share of wrong labels."""

    scores: np.ndarray  # (m,), increasing
    ratios: np.ndarray  # (m,), f1 / f at the scores
    wrong_share: float  # pi

    def __call__(self, raw: np.ndarray) -> np.ndarray:
        """P(wrong) for raw scores; strictly increasing in them, so that the ranking is kept."""
        ratio = np.interp(raw, self.scores, self.ratios)
        return np.clip(np.clip(self.wrong_share * ratio, 0, 1) * 0.999 + 0.001 * raw, 0, 1)


def plant(labels: np.ndarray, allowed: np.ndarray, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Row numbers of the planted flips, (m,), among the `allowed` ones; a class that would lose all rows keeps them."""
    rows = np.flatnonzero(allowed)
    chosen = rng.choice(rows, size=max(1, int(PLANTED * len(rows))), replace=False)
    counts = np.bincount(labels, minlength=n_classes)
    taken = np.bincount(labels[chosen], minlength=n_classes)
    return chosen[(taken < counts)[labels[chosen]]]


def calibrate(raw_planted: np.ndarray, planted: np.ndarray) -> Calibration:
    """Fit the map from the raw scores (n,) of the labels with planted flips, and which rows these are, bool (n,)."""
    order = np.argsort(raw_planted, kind="stable")
    s, hit = raw_planted[order], planted[order].astype(float)
    rho = hit.mean()
    if not 0 < rho < 1:
        return Calibration(np.array([0.0, 1.0]), np.array([0.0, 1.0]), 0.0)
    smooth = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(s, hit)
    knots = np.unique(np.quantile(s, np.linspace(0, 1, 200)))
    p = np.clip(smooth.predict(knots), 0, 1 - 1e-6)
    ratios = p / (1 - p) * (1 - rho) / rho
    # Tails that hold a third to two thirds of the planted flips: the ratio of tail masses bounds 1 / pi.
    tail_planted = np.cumsum(hit[::-1]) / hit.sum()
    tail_others = np.cumsum(1 - hit[::-1]) / (1 - hit).sum()
    enough = (tail_planted >= 1 / 3) & (tail_planted <= 2 / 3)
    if not enough.any():
        enough = tail_planted > 0
    # One more row in the tail than seen: an empty tail must not read as a certainty.
    share = (tail_others[enough] + 1 / (1 - hit).sum()) / tail_planted[enough]
    return Calibration(knots, ratios, float(min(share.min(), 0.5)))
