"""How much more often a group's labels are wrong than their rows explain: random effects, shrunk to none."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

_GROUP = 1.5  # standard deviation of a group's effect on the log-odds
_LABEL = 1.0  # and of its effect on one given label
_STEPS = 30


def group_shifts(
    groups: np.ndarray, codes: np.ndarray, at: np.ndarray, chance: np.ndarray, right: np.ndarray, wrong: np.ndarray
) -> np.ndarray:
    """What each row's group adds to the log-odds that its label is wrong, (n,): the mode given the answers.

    Parameters
    ----------
    groups, codes : int ndarrays of shape (n,)
        Group and given label of every row.
    at : int ndarray of shape (m,)
        Answered rows.
    chance : ndarray of shape (m,)
        P(wrong) of these without the groups.
    right, wrong : ndarrays of shape (m,)
        P(answers) if the label is right, and if it is wrong.
    """
    shift = np.zeros(len(groups))
    if not len(at):
        return shift
    pairs, where = np.unique(np.column_stack([groups, codes]), axis=0, return_inverse=True)
    asked = pairs[where[at]]
    K = _covariance(asked, asked)
    logit = np.log(chance) - np.log1p(-chance)
    weights = np.zeros(len(at))
    for _ in range(_STEPS):
        p = expit(logit + K @ weights)
        # answers as the shares of "wrong" that they make likely: an EM step inside each Newton step
        share = wrong * p / (wrong * p + right * (1 - p))
        curvature = np.maximum(p * (1 - p), 1e-6)
        side = curvature * (K @ weights) + share - p
        moved = np.linalg.solve(np.eye(len(at)) + curvature[:, None] * K, side)
        done = np.abs(moved - weights).max() < 1e-6
        weights = moved
        if done:
            break
    return (_covariance(pairs, asked) @ weights)[where]


def _covariance(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    group = left[:, 0][:, None] == right[:, 0][None, :]
    label = left[:, 1][:, None] == right[:, 1][None, :]
    return group * (_GROUP**2 + _LABEL**2 * label)
