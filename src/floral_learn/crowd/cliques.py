"""People who agree more than the truth explains: their votes are not independent evidence and count once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.special import softmax

from floral_learn.labels.votes import Votes

from .em import State

MOST_PAIRS = 1_000_000
_CHUNK = 50_000  # pairs whose confusion matrices are held at once
LEAST_SHARED = 4  # items that a pair must share
EXCESS = 0.25  # agreement above what the truth explains
DEVIATIONS = 4.0


@dataclass(frozen=True)
class Cliques:
    """Groups of annotators, and for each linked pair its agreement beyond what the truth explains."""

    groups: list[np.ndarray] = field(default_factory=list)
    pairs: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), dtype=int))
    excess: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def among(self, other: Cliques, n_annotators: int) -> Cliques:
        """The links that `other` has, too, with its numbers."""
        mine = {tuple(pair) for pair in self.pairs.tolist()}
        keep = np.array([tuple(pair) in mine for pair in other.pairs.tolist()], dtype=bool)
        pairs = other.pairs[keep]
        return Cliques(_components(pairs, n_annotators), pairs, other.excess[keep])

    def number(self, n_annotators: int) -> np.ndarray:
        """The clique of each annotator, -1 for none."""
        found = np.full(n_annotators, -1)
        for number, members in enumerate(self.groups):
            found[members] = number
        return found


def find_cliques(votes: Votes, state: State, rng: np.random.Generator) -> Cliques:
    """Link pairs of people whose answers to shared items agree in what the posterior holds to be wrong."""
    first, second = shared_pairs(votes, rng)
    if not len(first):
        return Cliques()
    parts = [
        wrong_agreement(votes, state, first[at : at + _CHUNK], second[at : at + _CHUNK])
        for at in range(0, len(first), _CHUNK)
    ]
    agree, expected = (np.concatenate(part) for part in zip(*parts, strict=True))
    n = len(votes.annotators)
    key = votes.annotator[first].astype(np.int64) * n + votes.annotator[second]
    keys, place, shared = np.unique(key, return_inverse=True, return_counts=True)
    excess = np.bincount(place, agree - expected)
    spread = np.sqrt(np.bincount(place, expected * (1 - expected)) + 1e-9)
    mean = excess / shared
    usual = max(float(np.average(mean, weights=shared)), 0.0)  # hard items make honest people err alike
    strong = (shared >= LEAST_SHARED) & (mean - usual > EXCESS)
    strong &= (excess - usual * shared) / np.maximum(spread, 0.5) > DEVIATIONS
    pairs = np.column_stack([keys[strong] // n, keys[strong] % n])
    return Cliques(_components(pairs, n), pairs, mean[strong])


def shared_pairs(votes: Votes, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of votes (p, q), of two people on one item; a sample of the items where there are too many."""
    order = np.lexsort((votes.annotator, votes.item))
    item = votes.item[order]
    starts = np.flatnonzero(np.r_[True, item[1:] != item[:-1]])
    sizes = np.diff(np.r_[starts, len(item)])
    sizes_capped = np.minimum(sizes, 60)
    total = float((sizes_capped * (sizes_capped - 1) / 2).sum())
    keep = np.ones(len(starts), dtype=bool) if total <= MOST_PAIRS else rng.random(len(starts)) < MOST_PAIRS / total
    first, second = [], []
    for size in np.unique(sizes_capped[keep]):
        if size < 2:
            continue
        rows = starts[keep & (sizes_capped == size)]
        i, j = np.triu_indices(size, 1)
        first.append(order[(rows[:, None] + i).ravel()])
        second.append(order[(rows[:, None] + j).ravel()])
    if not first:
        return np.zeros(0, dtype=int), np.zeros(0, dtype=int)
    return np.concatenate(first), np.concatenate(second)


def wrong_agreement(votes: Votes, state: State, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each pair of votes: the probability that both say the same wrong thing, and what independence expects.

    Both use the posterior of the item without the two votes.
    """
    item = votes.item[first]
    total = np.log(np.maximum(state.posterior[item], 1e-12)) - state.evidence[first] - state.evidence[second]
    truth = softmax(total, axis=1)
    said_a, said_b = votes.label[first], votes.label[second]
    rows = np.arange(len(item))
    same = said_a == said_b
    agree = np.where(same, 1.0 - truth[rows, said_a], 0.0)
    matrix = state.confusions.matrix
    conf_a, conf_b = matrix[votes.annotator[first]], matrix[votes.annotator[second]]
    both = np.einsum("pcl,pcl->pc", conf_a, conf_b)
    right = np.einsum("pcc->pc", conf_a) * np.einsum("pcc->pc", conf_b)
    return agree, np.clip((truth * (both - right)).sum(axis=1), 0.0, 1.0)


def once_per_clique(votes: Votes, cliques: Cliques) -> Votes:
    """Votes of one clique on one item share the weight of one vote."""
    number = cliques.number(len(votes.annotators))[votes.annotator]
    inside = number >= 0
    key = votes.item[inside].astype(np.int64) * (len(cliques.groups) + 1) + number[inside]
    _, place, size = np.unique(key, return_inverse=True, return_counts=True)
    weight = votes.weight.copy()
    weight[inside] /= size[place]
    return votes.reweighted(weight)


def _components(pairs: np.ndarray, n: int) -> list[np.ndarray]:
    if not len(pairs):
        return []
    graph = sp.coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    number, label = connected_components(graph, directed=False)
    sizes = np.bincount(label, minlength=number)
    return [np.flatnonzero(label == which) for which in np.flatnonzero(sizes > 1)]
