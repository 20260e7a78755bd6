"""Rows that are nearly the same and carry different labels: one of the two is wrong, whatever a model thinks."""

from __future__ import annotations

import numpy as np

CLOSE = 0.02  # of the typical distance between two rows picked at random
NEARER = 0.1  # of the typical distance to the nearest row: where rows lie densely, near is not equal


def find_near_duplicates(
    X: np.ndarray, labels: np.ndarray, neighbours: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Pairs of near-duplicate rows with different labels, nearest first, (pairs, 2).

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    labels : int ndarray of shape (n,)
        Class numbers.
    neighbours : int ndarray of shape (n, k)
        Row numbers of the nearest rows.
    rng : Generator
        Draws the pairs that say what a typical distance is.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.audit.near_duplicates import find_near_duplicates
    >>> X = np.array([[0.0], [0.001], [5.0], [9.0], [14.0]])
    >>> near = np.array([[1], [0], [3], [2], [3]])
    >>> find_near_duplicates(X, np.array([0, 1, 0, 1, 1]), near, np.random.default_rng(0)).tolist()
    [[0, 1]]
    """
    n, k = neighbours.shape
    one = np.repeat(np.arange(n), k)
    other = neighbours.ravel()
    differ = labels[one] != labels[other]
    pairs = np.unique(np.sort(np.column_stack([one, other])[differ], axis=1), axis=0)
    if not len(pairs):
        return pairs.reshape(0, 2)
    X = np.nan_to_num(X)
    distance = np.linalg.norm(X[pairs[:, 0]] - X[pairs[:, 1]], axis=1)
    a, b = rng.integers(0, n, (2, 1000))
    typical = float(np.median(np.linalg.norm(X[a] - X[b], axis=1)))
    nearest = float(np.median(np.linalg.norm(X - X[neighbours[:, 0]], axis=1)))
    close = np.flatnonzero(distance <= min(CLOSE * typical, NEARER * nearest))
    return pairs[close[np.argsort(distance[close], kind="stable")]]
