"""Which rows lie near each other, and how many of a row's neighbours carry another label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import PCA

from floral_learn.labels.neighbours import label_votes, nearest_rows

VOTERS = 50  # neighbours that vote on a label (fewer on small data)
SHOWN = 6  # neighbours that a page shows
_WIDE = 64  # above this many features distances are taken between principal components


@dataclass(frozen=True)
class Neighbours:
    """The k nearest other rows of each row, nearest first."""

    rows: np.ndarray  # (n, k)

    def disagreement(self, labels: np.ndarray) -> np.ndarray:
        """Share of the neighbours with another label than the row's own, (n,)."""
        return (labels[self.rows] != labels[:, None]).mean(axis=1)

    def votes(self, labels: np.ndarray, n_classes: int) -> np.ndarray:
        """Share of the neighbours in each class, (n, n_classes)."""
        return label_votes(self.rows, labels, n_classes) / self.rows.shape[1]

    def favourite(self, labels: np.ndarray, n_classes: int) -> np.ndarray:
        """The class that most neighbours carry, the row's own left out, (n,)."""
        votes = self.votes(labels, n_classes)
        votes[np.arange(len(labels)), labels] = -1
        return votes.argmax(axis=1)


def find_neighbours(X: np.ndarray, rng: np.random.Generator) -> Neighbours:
    """The nearest rows in Euclidean distance; of many features only the leading components count."""
    n = len(X)
    k = max(1, min(VOTERS, n // 10, n - 1))
    if X.shape[1] > _WIDE:
        seed = int(rng.integers(2**31))
        X = PCA(min(_WIDE, n), svd_solver="randomized", random_state=seed).fit_transform(X)
    X = np.ascontiguousarray(X, dtype=np.float32 if n > 3000 else np.float64)
    return Neighbours(nearest_rows(X, k))
