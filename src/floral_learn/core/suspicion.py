"""How suspicious each given label is after a game, from margins, flip rates and duals."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

REASONS = ("model disagrees", "often flipped by the attacker", "dual at its cap")


def margins(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """y f(x) for one column of scores; own score minus the best other one, halved, for several, (n,)."""
    rows = np.arange(len(scores))
    if scores.shape[1] == 1:
        return scores[:, 0] * (2 * labels - 1)
    own = scores[rows, labels]
    others = scores.copy()
    others[rows, labels] = -np.inf
    return (own - others.max(axis=1)) / 2


def suspicion(
    scores: np.ndarray, labels: np.ndarray, flip_rate: np.ndarray, load: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A score in [0, 1] for each label and which of `REASONS` hold, (n,) and bool (n, 3).

    The score is the mean of sigma(-2 y f), the model's disagreement with the label, and the flip rate relative to the
    largest one. It ranks labels; it is not a probability.

    Parameters
    ----------
    scores : ndarray of shape (n, columns)
        Decision values of the averaged model on the training rows.
    labels : int ndarray of shape (n,)
    flip_rate : ndarray of shape (n,)
        Share of the attacked rounds in which the label was flipped.
    load : ndarray of shape (n,)
        The dual relative to its cap or, where no dual reaches its cap, to the largest dual: a reason, not a part of the
        score, since every hard point carries a large dual.
    """
    margin = margins(scores, labels)
    flipped = flip_rate / max(float(flip_rate.max(initial=0.0)), 1e-300)
    score = (expit(-2 * margin) + flipped) / 2
    reasons = np.stack([margin < 0, flipped > 0.5, load > 0.99], axis=1)
    return score, reasons
