"""Scores become probabilities, and a model of how labels went wrong: true classes through a table of confusions.

`calibrate` puts any held-out scores on the scale of the given labels; `fit_noise` asks what lies behind these.

A row's true class c has the probability q_c = softmax(a log p + b)_c, where p are held-out probabilities of the *given*
labels; a label of class c is then written as g with the probability T[c, g] (the class-conditional noise of Angluin and
Laird, 1988, and Patrini et al., 2017). Both are fitted to the given labels together, by maximum likelihood of

    P(given = g | row) = sum_c q_c T[c, g].

Labels that went wrong at random keep p away from 0 and 1 even where a model is surest: T explains that, and q becomes
sharp. Classes that overlap do not: there p moves smoothly between the classes, a stays near 1 and T near the identity.
So the fit itself says whether contradicted labels are errors or overlap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

# a class's row of T starts as if so many labels had been seen, one of them wrong; an author, too
PRIOR_ROWS = 10.0
# penalty of b squared, halved, in nats: no weight beside data, but a class without rows stays finite
SHIFT_RIDGE = 0.1
# rows from which what has few parameters is learned: more change nothing that a user sees
MANY = 10_000


@dataclass(frozen=True)
class NoiseModel:
    """Fitted confusions of labels.

    Attributes
    ----------
    scale, shift : float and ndarray of shape (M,)
        a and b of q = softmax(a log p + b).
    confusion : ndarray of shape (M, M)
        T: how often a true class (row) is labelled as a class (column).
    """

    scale: float
    shift: np.ndarray
    confusion: np.ndarray

    def truth(self, log_p: np.ndarray) -> np.ndarray:
        """Log-probabilities of the true class, (n, M), before the given label is looked at."""
        return log_softmax(self.scale * log_p + self.shift, axis=1)

    def given_label(self, log_truth: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Log-probabilities of the true class, (n, M), after it: Bayes' rule with the confusions T."""
        return log_softmax(log_truth + np.log(self.confusion.T[codes]), axis=1)


def fit_noise(log_p: np.ndarray, codes: np.ndarray) -> NoiseModel:
    """Fit q and T to labels `codes` (n,), given held-out log-probabilities (n, M) of the labels.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.labels.noise import fit_noise
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=1000)  # of class 1, as a model has them
    >>> y = (rng.random(1000) < 1 / (1 + np.exp(-6 * log_odds))).astype(int)  # the truth is sharper
    >>> given = np.where(rng.random(1000) < 0.2, 1 - y, y)
    >>> log_p = -np.log1p(np.exp(np.column_stack([log_odds, -log_odds])))
    >>> bool(abs(fit_noise(log_p, given).confusion[0, 1] - 0.2) < 0.05)
    True
    """
    n, m = log_p.shape
    some = _some_rows(n, m)
    # rows of one label lie together, so that they add up fast
    some = some[np.argsort(codes[some], kind="stable")]
    log_p, codes, n = log_p[some], codes[some], len(some)
    first = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    present = codes[first]
    prior = np.full((m, m), 1 / (m - 1))
    np.fill_diagonal(prior, PRIOR_ROWS - 1)

    def parts(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        log_t = log_softmax(t[m + 1 :].reshape(m, m), axis=1)
        q = np.exp(t[0]) * log_p + t[1 : m + 1]
        q -= q.max(axis=1, keepdims=True)
        np.exp(q, out=q)
        q /= q.sum(axis=1, keepdims=True)
        posterior = q * np.exp(log_t).T[codes]
        total = posterior.sum(axis=1, keepdims=True)
        posterior /= total
        return log_t, q, posterior, float(np.log(total).sum())

    def loss(t: np.ndarray) -> tuple[float, np.ndarray]:
        log_t, q, posterior, likelihood = parts(t)
        # Fisher's identity: the gradient of the likelihood is that of the complete data, averaged over the posterior.
        counts = prior.copy()
        counts[:, present] += np.add.reduceat(posterior, first, axis=0).T
        posterior -= q
        shift = t[1 : m + 1]
        value = likelihood + (prior * log_t).sum() - 0.5 * SHIFT_RIDGE * shift @ shift
        slope = np.concatenate(
            [
                [np.vdot(posterior, log_p) * np.exp(t[0])],
                posterior.sum(axis=0) - SHIFT_RIDGE * shift,
                (counts - np.exp(log_t) * counts.sum(axis=1, keepdims=True)).ravel(),
            ]
        )
        return -value / n, -slope / n

    start = np.concatenate([np.zeros(m + 1), np.log(prior / PRIOR_ROWS).ravel()])  # q = p
    # logarithms: of no weight beside data, they keep the sums finite
    bounds = [(-20.0, 20.0)] * len(start)
    t = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60}).x
    return NoiseModel(float(np.exp(t[0])), t[1 : m + 1], np.exp(parts(t)[0]))


def calibrate(scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Turn decision values or log-probabilities (n, M) into probabilities of the labels `codes`, (n, M).

    softmax(a scores + b) with a > 0 and one b per class, by maximum likelihood (temperature scaling; Guo et al.,
    2017): where the scores say nothing about the labels, a falls to zero and the class shares are left.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.labels.noise import calibrate
    >>> codes = np.repeat([0, 1], 50)
    >>> calibrate(np.zeros((100, 2)), codes)[0].round(2).tolist()
    [0.5, 0.5]
    """
    n, m = scores.shape
    some = _some_rows(n, m)
    spread = max(float(scores.std()), 1e-300)
    scaled, labels = scores[some] / spread, codes[some]
    rows = np.arange(len(some))

    def loss(t: np.ndarray) -> tuple[float, np.ndarray]:
        scale = np.exp(t[0])
        logs = scale * scaled + t[1:]
        logs -= logs.max(axis=1, keepdims=True)
        own = logs[rows, labels].sum()
        slope = np.exp(logs, out=logs)
        total = slope.sum(axis=1, keepdims=True)
        slope /= total
        slope[rows, labels] -= 1
        ridge = SHIFT_RIDGE * t[1:]
        value = np.log(total).sum() - own + 0.5 * ridge @ t[1:]
        return value / n, np.append(np.vdot(slope, scaled) * scale, slope.sum(axis=0) + ridge) / n

    bounds = [(-12, 6)] + [(-20, 20)] * m
    t = minimize(loss, np.zeros(m + 1), jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-6}).x
    return softmax(np.exp(t[0]) * (scores / spread) + t[1:], axis=1)


def _some_rows(n: int, n_classes: int) -> np.ndarray:
    """Rows to learn from: with many classes every row has many values."""
    return np.random.default_rng(0).permutation(n)[: max(MANY // 5, 10 * MANY // n_classes)]


def log_or_floor(probability: np.ndarray) -> np.ndarray:
    """Logarithms of probabilities (n, M); zero stands for half of the smallest probability above it.

    That is what zero means for votes of trees or neighbours, and for probabilities in half precision.
    """
    floor = 0.5 * float(np.min(probability, where=probability > 0, initial=1.0))
    return np.log(np.maximum(probability, floor))
