"""Which labels to flag, given held-out probabilities: arrays in, mask out.

A label is *contradicted* where held-out probabilities prefer another class. Flagged are labels that the noise model
(`labels/noise.py`) finds wrong with a probability above one third, and contradicted ones whose log-odds exceed a bar.
It rises with two things: where classes *overlap*, most contradictions are no errors; and where the noise model
*explains* the strong contradictions as errors, the weak ones are no sign of further errors.

Where the noise model explains most of the contradictions, its posterior ranks the labels; otherwise contradictions
come from classes that overlap or from errors that somebody chose, and labels are ranked by their held-out probability.
Where it still explains most of them if one more a class had been left unexplained, errors are *scattered*: labels went
wrong at random, in one class or in all, and the posterior is a real estimate of the probability that a label is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from floral_learn.labels.noise import PRIOR_ROWS, PRIOR_WRONG, NoiseModel, fit_noise, log_or_floor

# Chosen on digits, wine, breast cancer, banknote, phoneme, satimage, MNIST and half of trec, where
# `benchmarks/audit.py rules` shows what other values bring.
WRONG = 1 / 3  # probability of being wrong from which a label is flagged: near where F1 is largest
BAR = 2.0  # log-odds that a contradiction must exceed, per unit of overlap and of the share explained
EXPLAINED = 0.55  # share of the contradictions that the noise model must explain for errors to count as scattered
MOST_OVERLAP = 0.1  # overlap above which nothing is replaced or left out unseen
LEAST_GAIN = 0.02  # share of the class shares' log loss that held-out predictions must save
LEAST_NATS = float(np.log(1000))  # and the same in all: guesses exceed it once in a thousand times
_ROWS_AT_ONCE = 4_000_000  # probabilities worked on at a time


@dataclass(frozen=True)
class Flags:
    """What held-out probabilities say about given labels.

    Attributes
    ----------
    flagged : bool ndarray of shape (n,)
        Labels to look at.
    score : ndarray of shape (n,)
        Ranks the labels, in [0, 1), not a probability; flagged are those of at least 0.5.
    wrong_probability : ndarray of shape (n,)
        Of each label, by the noise model: an estimate where `scattered`, too low where errors were chosen.
    suggested : int ndarray of shape (n,)
        The most probable other class.
    scattered : bool
        Whether errors lie at random, so that `wrong_probability` is an estimate.
    replaceable : bool
        Whether the classes are also so separate that labels which are more probably wrong than right may be replaced
        or left out unseen.
    explained : float
        Share of the contradicted labels that the noise model explains as errors.
    overlap : float
        How far the classes overlap: the mean of 1 - max q, where q is the noise model's probability of the true class.
    wrong_share : float
        Mean of `wrong_probability`.
    gain : float
        Share of the class shares' log loss that the held-out predictions save.
    informative : bool
        Whether the predictions are better than the class shares; if not, nothing is flagged.
    """

    flagged: np.ndarray
    score: np.ndarray
    wrong_probability: np.ndarray
    suggested: np.ndarray
    scattered: bool
    replaceable: bool
    explained: float
    overlap: float
    wrong_share: float
    gain: float
    informative: bool


def flag_labels(
    probability: np.ndarray,
    codes: np.ndarray,
    *,
    noise: NoiseModel | None = None,
    trusted: np.ndarray | None = None,
    shift: np.ndarray | None = None,
) -> Flags:
    """Find labels that held-out probabilities contradict.

    Parameters
    ----------
    probability : ndarray of shape (n, M)
        Of each class, from a model that did not see the row's own label, on the labels' own scale (`calibrate`).
    codes : int ndarray of shape (n,)
        Given class numbers.
    noise : NoiseModel, optional
        As `fit_noise` fits it to the same probabilities; fitted here by default.
    trusted : bool ndarray of shape (n,), optional
        Labels known to be right: never flagged.
    shift : ndarray of shape (n,), optional
        Log-odds against each label from elsewhere, such as its author's other labels.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.labels.flagging import flag_labels
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> p = np.clip(np.where(y == 1, 0.9, 0.1) + rng.normal(0, 0.03, 500), 0.01, 0.99)
    >>> given = np.where(np.arange(500) < 40, 1 - y, y)
    >>> found = flag_labels(np.column_stack([1 - p, p]), given)
    >>> found.scattered, int(found.flagged.sum())
    (True, 40)
    """
    n, m = probability.shape
    gain, nats = gain_over_shares(probability, codes)
    informative = is_informative(gain, nats)
    noise = fit_noise(log_or_floor(probability), codes) if noise is None else noise
    against, wrong = np.empty(n), np.empty(n)  # log-odds of the best other class; log-odds of being wrong
    suggested, truth, unsure = np.empty(n, dtype=np.intp), np.empty(n, dtype=np.intp), np.empty(n)
    named = np.zeros(m, dtype=bool)
    step = max(1, _ROWS_AT_ONCE // m)
    for start in range(0, n, step):
        block = slice(start, min(start + step, n))
        labels, rows = codes[block], np.arange(block.stop - start)
        log_p = log_or_floor(probability[block])
        log_q = noise.truth(log_p)
        log_r = noise.given_label(log_q, labels)
        named[log_p.argmax(axis=1)] = True
        own_p, own_r = log_p[rows, labels], log_r[rows, labels]
        log_p[rows, labels] = log_r[rows, labels] = -np.inf
        against[block] = log_p.max(axis=1) - own_p
        wrong[block] = np.logaddexp.reduce(log_r, axis=1) - own_r
        suggested[block] = log_r.argmax(axis=1)
        truth[block], unsure[block] = log_q.argmax(axis=1), -np.expm1(log_q.max(axis=1))
    # A class that the judges never name cannot be judged by them: contradicting all its labels says nothing.
    free = named[codes] if trusted is None else named[codes] & ~trusted
    # By q and not by p: where a class lost half of its labels, p contradicts the other half.
    mistaken = (truth != codes) & free
    errors, contradicted = float(expit(wrong[mistaken]).sum()), int(mistaken.sum())
    explained = errors / max(1, contradicted)
    held_out = np.clip(1.0 - probability[np.arange(n), codes], 1e-9, 1 - 1e-9)
    if shift is not None:
        against, wrong, held_out = against + shift, wrong + shift, expit(logit(held_out) + shift)
    wrong_probability, overlap = np.where(free, expit(wrong), 0.0), float(unsure.mean())
    # The noise model starts from a wrong label of every class: that it explains as many says nothing yet.
    scattered = informative and errors >= EXPLAINED * (contradicted + PRIOR_ROWS * PRIOR_WRONG * m)
    rank = wrong_probability if explained >= EXPLAINED else held_out
    flagged = (wrong_probability > WRONG) | (against > BAR * (overlap + explained))
    flagged &= free & informative
    return Flags(
        flagged=flagged,
        score=np.where(free & informative, 0.5 * (flagged + np.minimum(rank, 1.0 - 1e-9)), 0.0),
        wrong_probability=wrong_probability,
        suggested=suggested,
        scattered=scattered,
        replaceable=scattered and overlap <= MOST_OVERLAP,
        explained=explained,
        overlap=overlap,
        wrong_share=float(wrong_probability.mean()),
        gain=gain,
        informative=informative,
    )


def gain_over_shares(probability: np.ndarray, codes: np.ndarray) -> tuple[float, float]:
    """How much log loss held-out probabilities save over the class shares: as a share of it, and in nats over all rows.

    The nats are the logarithm of a likelihood ratio, less one for each number that `calibrate` fits: guesses exceed
    log(1000) once in a thousand times, whatever the class shares.
    """
    n, m = probability.shape
    shares = np.bincount(codes, minlength=m) / n
    own = np.log(np.maximum(probability[np.arange(n), codes], 1e-12))
    base = np.log(shares[codes])
    saved = float((own - base).sum())
    return saved / -float(base.sum()), saved - (m + 1)


def is_informative(gain: float, nats: float) -> bool:
    """Whether predictions with this gain (`gain_over_shares`) know anything about the labels."""
    return gain >= LEAST_GAIN and nats >= LEAST_NATS
