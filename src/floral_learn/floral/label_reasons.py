"""What a played game says about its own training labels: margins, flip rates and duals, as reasons.

The margin of a label is what the model, *without that label's own pull*, says of it. A kernel model is
f(x) = sum_j w_j k(x, x_j) + b, so leaving out row i's own term, f(x_i) - w_i k(x_i, x_i), costs nothing and is the
value that the leave-one-out bound of Jaakkola and Haussler uses. In-sample margins are flattering instead: an SVM with
a large C bends towards the very labels in question.
"""

from __future__ import annotations

import numpy as np

# The model disagrees; the attacker often flips the label; its dual is at the cap. Short words, so that a printed table
# keeps all its columns.
REASONS = ("model", "attacker", "cap")


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
    >>> from floral_learn.floral.label_reasons import margins
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


def reason_texts(scores: np.ndarray, labels: np.ndarray, flip_rate: np.ndarray, load: np.ndarray) -> list[str]:
    """The reasons that hold for each row, joined by ``", "``.

    Parameters
    ----------
    scores : ndarray of shape (n, columns)
        Decision values on the training rows without their own terms (`without_own`).
    labels : int ndarray of shape (n,)
        Class numbers.
    flip_rate : ndarray of shape (n,)
        Share of the attacked rounds in which the label was flipped; half of the largest one is a reason.
    load : ndarray of shape (n,)
        The dual relative to its cap or, where no dual reaches its cap, to the largest dual.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.floral.label_reasons import reason_texts
    >>> reason_texts(np.array([[2.0], [-2.0]]), np.array([1, 1]), np.array([0.0, 0.5]), np.array([0.0, 1.0]))
    ['', 'model, attacker, cap']
    """
    flipped = flip_rate / max(float(flip_rate.max(initial=0.0)), 1e-300)
    holds = np.stack([margins(scores, labels) < 0, flipped > 0.5, load > 0.99], axis=1)
    return [", ".join(reason for reason, true in zip(REASONS, row) if true) for row in holds]
