"""When is the rank enough? When more of it no longer changes how rows are told apart on a probe set.

A small classifier (ridge regression on the rows of F) learns, at every rank that is reached, which of a few random rows
is nearest, from a sample of rows, and says so for another sample. The share of its answers that a block of columns
changed is what more rank would still buy. The task is made from the features alone: the labels of the game have no say
in K.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from sklearn.metrics import pairwise_distances_argmin

SAMPLE = 4000  # rows of the sample: half trains, half is predicted
# Ridge, relative to the largest eigenvalue of the centred sample Gram: a game of T rounds with the automatic step
# cannot follow directions much below 1 / T of that eigenvalue.
RIDGE = 1e-3
CENTRES = 16
LEAST_GAIN = 0.05  # over always answering with the most frequent class
TOL = 2e-3  # share of the predictions that a block may change once the rank is enough


class Probe:
    """Changes of the predictions on a sample while the factor grows.

    Parameters
    ----------
    rows : int ndarray of shape (m,)
        The sample, numbers among all rows.
    labels : int ndarray of shape (m,)
        Which class of the task each belongs to.
    n_classes : int
    """

    def __init__(self, rows: np.ndarray, labels: np.ndarray, n_classes: int) -> None:
        self.rows = rows
        self.factor = np.zeros((len(rows), 64), order="F")  # F at the sample, with room for more columns
        self.square = np.zeros((64, 64))  # F'F over the rows that train
        self.rank = 0
        self.train = len(rows) // 2
        classes = np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)
        self.targets = 2.0 * (labels[: self.train, None] == classes) - 1
        # A kernel that is nearly the identity says nothing about unseen rows: answers that never change are no answers.
        self.truth = labels[self.train :]
        self.guess = float(np.bincount(self.truth, minlength=n_classes).max() / max(len(self.truth), 1))
        self.right = 0.0
        self.answers: np.ndarray | None = None
        self.changed: list[float] = []  # share of the predictions that each block of columns changed

    @property
    def size(self) -> int:
        """Rows whose predictions are compared."""
        return len(self.rows) - self.train

    @property
    def settled(self) -> bool:
        """Whether the last two blocks changed next to nothing, and the answers are more than a guess."""
        return len(self.changed) > 1 and max(self.changed[-2:]) <= TOL and self.right > self.guess + LEAST_GAIN

    def extend(self, columns: np.ndarray) -> None:
        """Append columns of F at the sample and predict again."""
        done, self.rank = self.rank, self.rank + columns.shape[1]
        if self.rank > self.factor.shape[1]:
            size = max(self.rank, 2 * self.factor.shape[1])
            former, square = self.factor, self.square
            self.factor, self.square = np.zeros((len(former), size), order="F"), np.zeros((size, size))
            self.factor[:, :done], self.square[:done, :done] = former[:, :done], square[:done, :done]
        self.factor[:, done : self.rank] = columns
        seen = self.factor[: self.train, : self.rank]
        self.square[: self.rank, done : self.rank] = seen.T @ seen[:, done:]
        self.square[done : self.rank, : self.rank] = self.square[: self.rank, done : self.rank].T
        answers = self._predict()
        self.changed.append(1.0 if self.answers is None else float(np.mean(answers != self.answers)))
        self.answers = answers
        self.right = float(np.mean(answers == self.truth))

    def describe(self, rank: int) -> str:
        """What the last columns changed, and whether the search for a rank ended because of it."""
        if len(self.changed) < 2:
            return f"rank {rank} was reached in one step"
        share = f"{100 * self.changed[-1]:.2g} % of {self.size:,} probe predictions"
        if self.settled:
            return f"rank {rank} is enough: the last columns changed {share}"
        return f"the last columns changed {share}"

    def _predict(self) -> np.ndarray:
        seen, unseen = self.factor[: self.train, : self.rank], self.factor[self.train :, : self.rank]
        mean, middle = seen.mean(axis=0), self.targets.mean(axis=0)
        square = self.square[: self.rank, : self.rank] - self.train * np.outer(mean, mean)
        last = len(square) - 1
        top = float(eigh(square, eigvals_only=True, subset_by_index=(last, last))[0])
        square[np.diag_indices_from(square)] += max(RIDGE * top, 1e-12)
        coef = cho_solve(cho_factor(square), seen.T @ (self.targets - middle))
        scores = (unseen - mean) @ coef + middle
        return scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1)


def nearest_centres(X: Any, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """For each row of the sample, which of `CENTRES` random ones of them is nearest; and how many there are."""
    count = min(CENTRES, max(2, X.shape[0] // 4))
    centres = X[rng.choice(X.shape[0], count, replace=False)]
    return pairwise_distances_argmin(X, centres), count


def sample_rows(n: int, rng: np.random.Generator) -> np.ndarray:
    """The rows of a probe, at random: all where there are few."""
    return rng.permutation(n) if n <= SAMPLE else rng.choice(n, SAMPLE, replace=False, shuffle=True)
