"""Doubtful people who make the same mistakes on similar items, though they never met on one.

Pairs of people often share no item. Then a common plan shows in the features: the same wrong class for the same class
in the same region. People who answer at random err in all directions and are not linked; with two classes there is only
one direction, and nobody is.
"""

from __future__ import annotations

import numpy as np

from floral_learn.labels.votes import Votes

from .em import State

REGIONS = 8
MOST_PEOPLE = 2000
LEAST_WRONG = 5.0  # expected wrong votes that a person must have
DEVIATIONS = 5.0


def regions_of(Z: np.ndarray, seed: int) -> np.ndarray:
    """(n,) which of a few regions each item lies in."""
    from sklearn.cluster import MiniBatchKMeans

    k = min(REGIONS, max(len(Z) // 50, 1))
    return MiniBatchKMeans(k, n_init=1, random_state=seed).fit_predict(Z)


def find_alike(votes: Votes, state: State, doubtful: np.ndarray, region: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (p, 2) of `doubtful` people (numbers) with the same mistakes in the same regions, and how alike, in (0, 1].

    Compares, per region and true class, how a person's wrong votes deviate from an even spread over the wrong classes,
    by posteriors that leave the person's own vote out. Linked are pairs whose deviations agree by more than five
    standard deviations of two people who err independently.
    """
    k, n_regions = len(votes.classes), int(region.max()) + 1
    none = np.zeros((0, 2), dtype=int), np.zeros(0)
    if k < 3 or len(doubtful) < 2:
        return none
    doubtful = doubtful[np.argsort(-votes.per_annotator[doubtful], kind="stable")[:MOST_PEOPLE]]
    place = np.full(len(votes.annotators), -1)
    place[doubtful] = np.arange(len(doubtful))
    mine = np.flatnonzero(place[votes.annotator] >= 0)
    truth = state.leave_one_out[mine].copy()
    truth[np.arange(len(mine)), votes.label[mine]] = 0.0
    cell = (place[votes.annotator[mine]] * n_regions + region[votes.item[mine]]) * k + votes.label[mine]
    summed = np.zeros((len(doubtful) * n_regions * k, k))
    np.add.at(summed, cell, truth)
    wrong = summed.reshape(len(doubtful), n_regions, k, k).transpose(0, 1, 3, 2)  # person, region, truth, vote
    even = wrong.sum(axis=3, keepdims=True) / (k - 1) * ~np.eye(k, dtype=bool)
    deviation = (wrong - even).reshape(len(doubtful), -1)
    # Var of <D_a, D_b> for independent even spreads: sum over cells of the product of the variances.
    variance = (even * (1 - 1 / (k - 1))).reshape(len(doubtful), -1)
    agreement = deviation @ deviation.T
    spread = np.sqrt(variance @ variance.T) + 1e-9
    length = np.sqrt(np.maximum(np.diag(agreement), 1e-9))
    enough = wrong.sum(axis=(1, 2, 3)) >= LEAST_WRONG
    a, b = np.nonzero(np.triu((agreement / spread > DEVIATIONS) & enough[:, None] & enough[None, :], 1))
    return np.column_stack([doubtful[a], doubtful[b]]), agreement[a, b] / (length[a] * length[b])
