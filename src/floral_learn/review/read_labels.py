"""From probabilities of classes to labels and weights that a classifier can be trained on."""

from __future__ import annotations

import numpy as np

_SURE = 1.25  # rows that are read right with 90 % and more count in full
_LEAST = 0.1  # rows in doubt never weigh less, before classes are brought to their weight
_FEW = 10  # answers with which doubt and the expected sizes of classes count half
_MOST_SHIFT = 4.0  # how much more, or less, a class may weigh than the rows that are read as it


def read_classes(belief: np.ndarray, codes: np.ndarray, free: np.ndarray) -> np.ndarray:
    """The class that is more likely than all others, (n,); but no class loses rows beyond its expected number.

    Where most of a class is a little more likely wrong than right, reading row by row would lose all of it. As many of
    its given labels stay as the beliefs add up to, the likeliest first.

    Parameters
    ----------
    belief : ndarray of shape (n, M)
        P(true class).
    codes : int ndarray of shape (n,)
        Given labels as class numbers.
    free : bool ndarray of shape (n,)
        Rows that nobody has answered.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.review.read_labels import read_classes
    >>> belief = np.array([[0.9, 0.1], [0.9, 0.1], [0.55, 0.45], [0.6, 0.4]])
    >>> read_classes(belief, np.array([0, 0, 1, 1]), np.ones(4, dtype=bool))
    array([0, 0, 1, 0])
    """
    best = belief.argmax(axis=1)
    read = np.where(belief[np.arange(len(best)), best] > 0.5, best, codes)
    may_stay = free & (read != codes)
    for c in np.unique(codes[may_stay]):
        short = int(belief[:, c].sum()) - int((read == c).sum())
        rows = np.flatnonzero(may_stay & (codes == c))
        read[rows[np.argsort(-belief[rows, c], kind="stable")[: max(0, short)]]] = c
    return read if len(np.unique(read)) > 1 else codes


def training_weights(
    belief: np.ndarray, read: np.ndarray, codes: np.ndarray, every: np.ndarray, answers: int
) -> np.ndarray:
    """Weights of rows that are read as `read`: less in doubt, and each class as much as it is expected to have rows.

    A class may be expected to be larger or smaller than the rows read as it, by labels that were turned over but cannot
    be told apart. It is given another weight only as far as both beliefs say so. With few answers, most of the doubt
    about labels that stay is what was there before any answer: it counts in part.

    Parameters
    ----------
    belief : ndarray of shape (n, M)
        P(true class) by what the answers bear out.
    read, codes : int ndarrays of shape (n,)
        Class numbers that rows are trained with, and those that were given.
    every : ndarray of shape (n, M)
        P(true class) by everything that is known.
    answers : int
        Number of answers.

    Returns
    -------
    ndarray of shape (n,)
        1 per row on average.
    """
    M, counts = belief.shape[1], answers / (answers + _FEW)
    certainty = np.clip(_SURE * (2 * belief[np.arange(len(belief)), read] - 1), _LEAST, 1.0)
    certainty = np.where(read == codes, 1 - counts * (1 - certainty), certainty)
    total = np.maximum(np.bincount(read, certainty, minlength=M), 1e-9)
    size = np.maximum(np.bincount(read, minlength=M), 1)
    shifts = [np.log(np.clip(b.sum(axis=0) / size, 1 / _MOST_SHIFT, _MOST_SHIFT)) for b in (belief, every)]
    agreed = np.where(shifts[0] * shifts[1] > 0, np.sign(shifts[0]) * np.abs(shifts).min(axis=0), 0.0)
    weights = certainty * (size * np.exp(counts * agreed) / total)[read]
    return weights / weights.mean()
