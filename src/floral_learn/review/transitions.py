"""Which class a wrong label should have been: held-out predictions, and what answers nearby with that label said."""

from __future__ import annotations

import numpy as np

from floral_learn.review.posterior import Problem

_PRIOR = 1.0  # answers that the held-out prediction counts as
_WIDTH = 0.3


def class_beliefs(
    problem: Problem, odds: np.ndarray, wrong: np.ndarray, rows: np.ndarray, asked: np.ndarray, table: np.ndarray
) -> np.ndarray:
    """P(true class) of `rows`, (len(rows), M), from P(wrong) and, for several classes, local transition rows.

    Parameters
    ----------
    odds : ndarray of shape (n, M)
        Held-out class probabilities of all rows.
    wrong : ndarray of shape (len(rows),)
        P(the given label is wrong).
    asked, table : ndarrays of shape (m,) and (m, M)
        Answered rows, and how likely their votes are under each class.
    """
    M, codes = problem.n_classes, problem.codes[rows]
    out = np.arange(len(rows))
    if M == 2:
        belief = np.empty((len(rows), 2))
        belief[out, codes], belief[out, 1 - codes] = 1 - wrong, wrong
        return belief
    share = _PRIOR * odds[rows]
    share[out, codes] = 0.0
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-12)
    said = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-12)
    step = max(1, problem.rows.at_a_time // (len(asked) + 1))
    for start in range(0, len(rows) if len(asked) else 0, step):
        part = slice(start, start + step)
        near = np.exp(-_WIDTH * problem.rows.distances(rows[part], asked))
        near *= problem.codes[rows[part]][:, None] == problem.codes[asked][None, :]
        share[part] += near @ said
    share[out, codes] = 0.0
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-12)
    belief = share * wrong[:, None]
    belief[out, codes] = 1 - wrong
    return belief
