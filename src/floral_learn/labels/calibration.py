"""Held-out scores become probabilities of the given labels: one temperature and one shift per class."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

_MOST_ROWS = 20_000  # M + 1 numbers are known well enough from as many rows


def calibrate(scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Turn decision values or log-probabilities (n, M) into probabilities of the labels `codes`, (n, M).

    softmax(a scores + b) with a > 0 and one b per class, by maximum likelihood (temperature scaling; Guo et al.,
    2017): where the scores say nothing about the labels, a falls to zero and the class shares are left.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.labels.calibration import calibrate
    >>> codes = np.repeat([0, 1], 50)
    >>> calibrate(np.zeros((100, 2)), codes)[0].round(2).tolist()
    [0.5, 0.5]
    """
    n, m = scores.shape
    some = np.arange(n) if n <= _MOST_ROWS else np.random.default_rng(0).permutation(n)[:_MOST_ROWS]
    spread = max(float(scores.std()), 1e-300)
    told, labels = scores[some] / spread, codes[some]
    rows = np.arange(len(some))
    given = np.zeros(told.shape)
    given[rows, labels] = 1

    def loss(t: np.ndarray) -> tuple[float, np.ndarray]:
        scale = np.exp(t[0])
        logs = log_softmax(scale * told + t[1:], axis=1)
        slope = np.exp(logs) - given
        ridge = 0.1 * t[1:]  # of no weight beside data; it keeps an absent class finite
        value = -logs[rows, labels].sum() + 0.5 * ridge @ t[1:]
        return value / n, np.append((slope * told).sum() * scale, slope.sum(axis=0) + ridge) / n

    t = minimize(loss, np.zeros(m + 1), jac=True, method="L-BFGS-B", bounds=[(-12, 6)] + [(-20, 20)] * m).x
    return softmax(np.exp(t[0]) * (scores / spread) + t[1:], axis=1)


def log_or_floor(probability: np.ndarray) -> np.ndarray:
    """Logarithms of probabilities (n, M); zero stands for half of the smallest probability above it.

    That is what zero means for votes of trees or neighbours, and for probabilities in half precision.
    """
    floor = 0.5 * float(np.min(probability, where=probability > 0, initial=1.0))
    return np.log(np.maximum(probability, floor))
