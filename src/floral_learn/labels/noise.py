"""How labels went wrong: true classes, as a model sees them, passed through a table of confusions.

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
from scipy.special import log_softmax

# Chosen by benchmarks/label_rules.py on digits, wine, breast cancer, banknote, phoneme, satimage, MNIST, half of trec.
PRIOR_ROWS = 10.0  # a class's row of T starts as if so many of its labels had been seen
STARTS = ((1.0, 0.02), (4.0, 0.2))  # (a, share of wrong labels) from which the fit starts; the likelier end is kept
SHIFT_PENALTY = 0.05  # of b squared, in nats: p is calibrated, so that b is near zero unless one class lost labels
_STEEPEST = 20.0  # most that a may be: beyond, q is 0 or 1 anyway
_MOST_VALUES = 100_000  # probabilities that a fit looks at, and never fewer rows than
_LEAST_ROWS = 2_000


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
    >>> y = rng.integers(0, 2, 600)
    >>> given = np.where(rng.random(600) < 0.2, 1 - y, y)
    >>> p = np.where(y[:, None] == [0, 1], 0.8, 0.2) + rng.normal(0, 0.02, (600, 1)) * [1, -1]
    >>> bool(abs(fit_noise(np.log(p), given).confusion[0, 1] - 0.2) < 0.05)
    True
    """
    n, m = log_p.shape
    most = max(_LEAST_ROWS, _MOST_VALUES // m)
    some = np.arange(n) if n <= most else np.random.default_rng(0).permutation(n)[:most]
    some = some[np.argsort(codes[some], kind="stable")]  # rows of one label lie together, so that they add up fast
    ends = [_climb(log_p[some], codes[some], a, share) for a, share in STARTS]
    return max(ends, key=lambda end: end[0])[1]


def _climb(log_p: np.ndarray, codes: np.ndarray, a: float, wrong: float) -> tuple[float, NoiseModel]:
    """The likelihood and the model at the end of an ascent from scale `a` and a share of wrong labels."""
    n, m = log_p.shape
    first = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    present = codes[first]
    prior = np.full((m, m), wrong / (m - 1))
    np.fill_diagonal(prior, 1 - wrong)

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
        counts = PRIOR_ROWS * prior
        counts[:, present] += np.add.reduceat(posterior, first, axis=0).T
        posterior -= q
        shift = t[1 : m + 1]
        value = likelihood + PRIOR_ROWS * (prior * log_t).sum() - SHIFT_PENALTY * shift @ shift
        slope = np.concatenate(
            [
                [np.vdot(posterior, log_p) * np.exp(t[0])],
                posterior.sum(axis=0) - 2 * SHIFT_PENALTY * shift,
                (counts - np.exp(log_t) * counts.sum(axis=1, keepdims=True)).ravel(),
            ]
        )
        return -value / n, -slope / n

    start = np.concatenate([[np.log(a)], np.zeros(m), np.log(prior).ravel()])
    bounds = [(-3.0, float(np.log(_STEEPEST)))] + [(-20.0, 20.0)] * (m + m * m)
    t = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60}).x
    log_t, _, _, likelihood = parts(t)
    return likelihood, NoiseModel(float(np.exp(t[0])), t[1 : m + 1], np.exp(log_t))
