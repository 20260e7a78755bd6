"""How suspicious each given label is after a game, from margins, flip rates, duals and neighbours.

The evidence of one label is how strongly the model, *without that label's own pull*, argues against it. A kernel model
is f(x) = sum_j w_j k(x, x_j) + b, so leaving out row i's own term, f(x_i) - w_i k(x_i, x_i), costs nothing and is the
value that the leave-one-out bound of Jaakkola and Haussler uses. In-sample margins are flattering instead: an SVM with
a large C bends towards the very labels in question.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

# The model disagrees; the attacker often flips the label; its dual is at the cap; the neighbours disagree. Short words,
# so that a printed table keeps all its columns.
REASONS = ("model", "attacker", "cap", "neighbours")


def margins(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """y f(x) for one column of scores; own score minus the best other one, halved, for several, (n,).

    Parameters
    ----------
    scores : ndarray of shape (n, columns)
        Decision values.
    labels : int ndarray of shape (n,)
        Class numbers.

    Returns
    -------
    ndarray of shape (n,)
        Negative where the model prefers another label.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.labels.suspicion import margins
    >>> margins(np.array([[2.0], [-1.0]]), np.array([1, 1])).tolist()
    [2.0, -1.0]
    """
    rows = np.arange(len(scores))
    if scores.shape[1] == 1:
        return scores[:, 0] * (2 * labels - 1)
    own = scores[rows, labels]
    others = scores.copy()
    others[rows, labels] = -np.inf
    return (own - others.max(axis=1)) / 2


def without_own(scores: np.ndarray, weights: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """f(x_i) - w_i k(x_i, x_i), the decision values without each row's own term, (n, columns).

    Parameters
    ----------
    scores, weights : ndarray of shape (n, columns)
        Decision values on the training rows, and the signed duals behind them.
    diagonal : ndarray of shape (n,)
        k(x_i, x_i).
    """
    return scores - weights * diagonal[:, None]


def predicted(scores: np.ndarray) -> np.ndarray:
    """The class that each row of `scores` (n, columns) names, (n,)."""
    return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)


def best_other(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The most likely class other than the given one, (n,)."""
    if scores.shape[1] == 1:
        return 1 - labels
    others = scores.copy()
    others[np.arange(len(labels)), labels] = -np.inf
    return others.argmax(axis=1)


def disagreement(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """sigma(-2 margin): 0 where the model is sure of the label, 1 where it is sure of another one, (n,).

    Parameters
    ----------
    scores : ndarray of shape (n, columns)
        Decision values.
    labels : int ndarray of shape (n,)
        Class numbers.

    Returns
    -------
    ndarray of shape (n,)
        In [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.labels.suspicion import disagreement
    >>> disagreement(np.array([[0.0]]), np.array([1])).tolist()
    [0.5]
    """
    return expit(-2 * margins(scores, labels))


def relative(flip_rate: np.ndarray) -> np.ndarray:
    """Flip rates as a share of the largest one; all zero where nothing was ever flipped."""
    return flip_rate / max(float(flip_rate.max(initial=0.0)), 1e-300)


def suspicion(
    scores: np.ndarray, labels: np.ndarray, flip_rate: np.ndarray, load: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A score in [0, 1] for each label, larger where it is more suspect, and which of `REASONS` hold: (n,), bool (n,
    4).

    The score is sigma(-2 margin) of the decision values without the row's own term. It ranks labels; it is no
    probability, since margins say nothing about how many labels are wrong. ``floral_learn.audit.audit`` looks at
    held-out models and neighbours too, and says how many labels it would flag.

    Parameters
    ----------
    scores : ndarray of shape (n, columns)
        Decision values on the training rows, best without their own terms (`without_own`).
    labels : int ndarray of shape (n,)
        Class numbers.
    flip_rate : ndarray of shape (n,)
        Share of the attacked rounds in which the label was flipped.
    load : ndarray of shape (n,)
        The dual relative to its cap or, where no dual reaches its cap, to the largest dual: a reason, not a part of the
        score, since every hard point carries a large dual.

    Returns
    -------
    suspicion : ndarray of shape (n,)
        In [0, 1].
    holds : bool ndarray of shape (n, 4)
        Which reasons hold.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.labels.suspicion import suspicion
    >>> scores, labels = np.array([[2.0], [-2.0]]), np.array([1, 1])
    >>> found, holds = suspicion(scores, labels, flip_rate=np.array([0.0, 0.5]), load=np.array([0.0, 1.0]))
    >>> bool(found[0] < 0.1), bool(found[1] > 0.9), holds[1].tolist()
    (True, True, [True, True, True, False])
    """
    margin = margins(scores, labels)
    flipped = relative(flip_rate)
    nothing = np.zeros(len(labels), dtype=bool)
    return expit(-2 * margin), np.stack([margin < 0, flipped > 0.5, load > 0.99, nothing], axis=1)


def reason_texts(holds: np.ndarray) -> list[str]:
    """The reasons of each row, joined by ``", "``, from bool (n, len(REASONS))."""
    return [", ".join(reason for reason, true in zip(REASONS, row) if true) for row in holds]
