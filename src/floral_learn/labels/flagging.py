"""Which labels to flag, given held-out probabilities p (n, M) of the given labels z: arrays in, flags out.

noise     w = the noise model's posterior (`labels/noise.py`) that the label is wrong: labels go wrong in the way that
              T says, and the rest is overlap
held out  o = 1 - p_z: if no classes overlap, what contradicts p is wrong
score     s = (1 - h) w + h o, how probable it is that the label is wrong. h = g^2 / 2, where g is the share of the
              log loss that p saves: either view may be right, but the less p knows, the more is overlap
flagged     = the k first by s with the largest expected F1, 2 sum_{i <= k} s_i / (k + sum_i s_i)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit
from scipy.stats import chi2

from floral_learn.labels.noise import NoiseModel, fit_noise, log_or_floor


@dataclass(frozen=True)
class Flags:
    """What held-out probabilities say about given labels.

    Attributes
    ----------
    score : ndarray of shape (n,)
        How probable it is that the label is wrong, estimated; ranks the labels.
    flagged : bool ndarray of shape (n,)
        Labels to look at: the set with the largest expected F1. None where the predictions are not `informative`.
    contradicted : bool ndarray of shape (n,)
        Labels than which held-out probabilities find another class more probable: a wider set, of which more are right.
    suggested : int ndarray of shape (n,)
        The most probable other class.
    wrong_share : float
        Estimated share of wrong labels: those expected among the contradicted ones.
    gain : float
        Share of the class shares' log loss that the held-out predictions save.
    informative : bool
        Whether the predictions are better than the class shares.
    """

    score: np.ndarray
    flagged: np.ndarray
    contradicted: np.ndarray
    suggested: np.ndarray
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
    >>> int(flag_labels(np.column_stack([1 - p, p]), given).flagged.sum())
    40
    """
    rows = np.arange(len(codes))
    logs = log_or_floor(probability)
    noise = fit_noise(logs, codes) if noise is None else noise
    posterior = noise.given_label(noise.truth(logs), codes)
    by_noise, held_out = 1 - np.exp(posterior[rows, codes]), 1 - probability[rows, codes]
    posterior[rows, codes] = -np.inf
    if shift is not None:
        by_noise, held_out = (expit(logit(np.clip(p, 1e-9, 1 - 1e-9)) + shift) for p in (by_noise, held_out))
    gain, informative = gain_over_shares(probability, codes)
    no_overlap = max(0.0, gain) ** 2 / 2
    score = (1 - no_overlap) * by_noise + no_overlap * held_out
    contradicted = probability.argmax(axis=1) != codes
    # Summed over many rows, small doubts add up to errors that are not there: the share leans less on the second view.
    careful = by_noise + 0.3 * max(0.0, gain) ** 2 * (held_out - by_noise)
    if trusted is not None:
        contradicted &= ~trusted
        score = np.where(trusted, 0.0, score)
    return Flags(
        score=score,
        flagged=largest_expected_f1(score) & informative,
        contradicted=contradicted,
        suggested=posterior.argmax(axis=1),
        wrong_share=float(np.mean(careful * contradicted)),
        gain=gain,
        informative=informative,
    )


def largest_expected_f1(chance: np.ndarray) -> np.ndarray:
    """The set of rows (n,) that expectedly has the largest F1, where each is a hit with its `chance`.

    None where it is likelier that there is nothing to hit, when to say nothing has the F1 of 1.
    """
    order = np.argsort(-chance, kind="stable")
    ranked = chance[order]
    hits = np.cumsum(ranked)
    f1 = 2 * hits / (np.arange(1, len(order) + 1) + hits[-1])
    # rows of one chance are flagged together
    f1[:-1][ranked[1:] == ranked[:-1]] = -1
    chosen = np.zeros(len(order), dtype=bool)
    chosen[order[: f1.argmax() + 1]] = f1.max() > np.prod(1 - chance)
    return chosen


def gain_over_shares(probability: np.ndarray, codes: np.ndarray, level: float = 0.001) -> tuple[float, bool]:
    """The share of the class shares' log loss that held-out probabilities save, and whether that is more than chance.

    `calibrate` fits one scale more than the class shares: where labels are shuffled, twice the saved nats are at most
    chi-squared with one degree of freedom (Wilks' theorem).
    """
    shares = np.bincount(codes, minlength=probability.shape[1]) / len(codes)
    own = np.log(np.maximum(probability[np.arange(len(codes)), codes], 1e-12))
    base = np.log(shares[codes])
    saved = float((own - base).sum())
    return saved / -float(base.sum()), bool(2 * saved > chi2.isf(level, 1))
