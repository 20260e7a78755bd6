"""What a fit leaves behind: the decision function, and what the game found out about each training label.

The margin of a label is what the model, *without that label's own pull*, says of it. A kernel model is
f(x) = sum_j w_j k(x, x_j) + b, so leaving out row i's own term, f(x_i) - w_i k(x_i, x_i), costs nothing and is the
value that the leave-one-out bound of Jaakkola and Haussler uses. In-sample margins are flattering instead: an SVM with
a large C bends towards the very labels in question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import get_config

from floral_learn.base.validation import LARGEST, LARGEST_SINGLE
from floral_learn.game.arrays import NumpyBackend
from floral_learn.game.kernels import Kernel
from floral_learn.game.pairs import vote

# The model disagrees; the attacker often flips the label; its dual is at the cap. Short words, so that a printed table
# keeps all its columns.
REASONS = ("model", "attacker", "cap")


@dataclass(frozen=True)
class FittedModel:
    """f(x) = k(x, basis) @ coef + intercept, and how classes are read from it: all that prediction needs.

    Attributes
    ----------
    kernel : Kernel
        With its numbers and the shift of the rows.
    basis : array or CSR matrix of shape (b, d), or int ndarray of shape (b,)
        Support vectors or landmarks; columns of a precomputed kernel.
    coef : ndarray of shape (b, columns)
        Coefficients of each column.
    intercept : ndarray of shape (columns,)
    dtype : str
        In which kernel values are computed, as in the fit.
    n_classes : int
    pairs : int ndarray of shape (P, 2) or None
        The classes of each column, where these are pairs.
    """

    kernel: Kernel
    basis: Any
    coef: np.ndarray
    intercept: np.ndarray
    dtype: str
    n_classes: int
    pairs: np.ndarray | None = None

    def columns(self, X: Any, backend: NumpyBackend) -> np.ndarray:
        """Scores of every column of the game, (m, columns); X a matrix of rows (of kernel values, if precomputed)."""
        if self.kernel.name == "precomputed":
            return X[:, self.basis] @ self.coef + self.intercept
        largest = LARGEST if self.dtype == "float64" else LARGEST_SINGLE
        if not callable(self.kernel.name) and (peak := float(abs(X).max())) > largest:
            raise ValueError(f"X has values up to {peak:.1e}, whose squares overflow: standardise its columns first.")
        rows = self.kernel.prepare(X, backend, self.dtype)
        basis = self.kernel.prepare(self.basis, backend, self.dtype)
        coef = backend.array(self.coef)
        tile = max(1, int(get_config()["working_memory"] * 2**20) // max(1, 64 * basis.shape[0]))
        out = np.empty((X.shape[0], self.coef.shape[1]))
        for start in range(0, X.shape[0], tile):
            values = self.kernel(rows[start : start + tile], basis, backend)
            # The coefficients stay float64: landmarks can have large ones of both signs.
            out[start : start + tile] = backend.numpy(backend.cast(values, backend.float64) @ coef)
        return out + self.intercept

    def scores(self, X: Any, backend: NumpyBackend) -> np.ndarray:
        """(m, 1) for two classes, positive for the second one; (m, n_classes) for more, the largest wins."""
        return class_scores(self.columns(X, backend), self.pairs, self.n_classes)


def class_scores(columns: np.ndarray, pairs: np.ndarray | None, n_classes: int) -> np.ndarray:
    """Scores of the classes from those of the game's columns."""
    return columns if pairs is None else vote(columns, pairs, n_classes)


@dataclass(frozen=True)
class TrainingRecord:
    """What the game found out about each of the n training labels: all that `label_issues` needs.

    Attributes
    ----------
    labels : int ndarray of shape (n,)
        The given labels, as class numbers.
    scores : ndarray of shape (n, 1) or (n, n_classes)
        Decision values without each row's own term.
    flip_rate : ndarray of shape (n,)
        Share of the attacked rounds in which the label was flipped.
    load : ndarray of shape (n,)
        The dual relative to its cap or, where no dual reaches its cap, to the largest dual.
    may_flip : bool ndarray of shape (n,)
        Whether the attacker was allowed to flip the label.
    """

    labels: np.ndarray
    scores: np.ndarray
    flip_rate: np.ndarray
    load: np.ndarray
    may_flip: np.ndarray


def margins(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """y f(x) for one column of scores; own score minus the best other one, halved, for several, (n,).

    Negative where the model prefers another label.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.model import margins
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


def predicted(scores: np.ndarray) -> np.ndarray:
    """The class that each row of `scores` (n, columns) names, (n,)."""
    return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)


def reason_texts(scores: np.ndarray, labels: np.ndarray, flip_rate: np.ndarray, load: np.ndarray) -> list[str]:
    """The reasons that hold for each row, joined by ``", "``.

    `scores`, `flip_rate` and `load` are those of a `TrainingRecord`; half of the largest flip rate is a reason.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.model import reason_texts
    >>> reason_texts(np.array([[2.0], [-2.0]]), np.array([1, 1]), np.array([0.0, 0.5]), np.array([0.0, 1.0]))
    ['', 'model, attacker, cap']
    """
    flipped = flip_rate / max(float(flip_rate.max(initial=0.0)), 1e-300)
    holds = np.stack([margins(scores, labels) < 0, flipped > 0.5, load > 0.99], axis=1)
    return [", ".join(reason for reason, true in zip(REASONS, row) if true) for row in holds]
