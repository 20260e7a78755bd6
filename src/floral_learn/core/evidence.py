"""What untrusted labels say about each other: judgements of a row's label that the label itself had no part in.

Two judges, each from products with K alone, so that any Gram operator will do:

- out of fold: an SVM trained on four fifths of the rows, for the other fifth. The folds are columns of one game whose
  caps are zero on the held-out rows;
- neighbours: the labels of the rows nearest in feature space.

An attacker who plans against one of them (labels far from the boundary, tight groups of labels) is often seen by the
other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from floral_learn.core.attackers import Flips, NoAttack, RandomizedTopK, View
from floral_learn.core.game import Game, solve, step_schedule
from floral_learn.core.gram import DenseGram, Gram

_TILE = 256  # reference rows compared at a time, at most
_NUMBERS = 1_000_000  # distances held at a time


def deal_folds(labels: np.ndarray, folds: int, rng: np.random.Generator) -> np.ndarray:
    """A fold number for each row, (n,): every class is shuffled and dealt out in turn."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    numbers = np.empty(len(labels), dtype=np.intp)
    numbers[order] = np.arange(len(labels)) % folds
    return numbers


def out_of_fold(
    gram: Gram,
    labels: np.ndarray,
    cap: np.ndarray,
    eta: float,
    fold: np.ndarray,
    *,
    n_classes: int = 2,
    rounds: int = 300,
    weight: np.ndarray | None = None,
) -> np.ndarray:
    """Decision values of SVMs that did not see the row, (n, 1) or (n, n_classes).

    Parameters
    ----------
    gram : Gram
        K for the n rows.
    labels : int ndarray of shape (n,)
    cap : ndarray of shape (n,)
        Upper bounds of the duals.
    eta : float
        Step size.
    fold : int ndarray of shape (n,)
        From `deal_folds`; as many games as it has numbers are played at once, without an attacker.
    n_classes, rounds, weight
        As in `Game`.
    """
    games = int(fold.max()) + 1
    width = 1 if n_classes == 2 else n_classes
    out = fold[:, None] == np.arange(games)[None, :]
    caps = np.where(out, 0.0, cap[:, None])
    game = Game(
        gram,
        labels,
        np.repeat(caps, width, axis=1),
        step_schedule(eta, rounds),
        NoAttack(),
        n_classes=n_classes,
        seeds=np.arange(games),
        weight=weight,
    )
    result = solve(game)
    backend = gram.backend
    scores = backend.numpy(gram.matmat(backend.columns(result.weights))) + result.bias
    return scores.reshape(len(labels), games, width)[np.arange(len(labels)), fold]


def neighbour_votes(
    gram: Gram, labels: np.ndarray, n_classes: int, neighbours: int, references: np.ndarray
) -> np.ndarray:
    """Shares of the classes among each row's nearest reference rows, itself left out, (n, n_classes).

    Nearest in the kernel's feature space: |phi(x) - phi(z)|^2 = k(x, x) + k(z, z) - 2 k(x, z). Columns of K are asked
    for a few at a time, and only the nearest so far are kept.
    """
    n = len(labels)
    tile = max(8, min(_TILE, _NUMBERS // n))
    nearest = np.full((n, neighbours), np.inf)
    who = np.zeros((n, neighbours), dtype=np.int32)
    for start in range(0, len(references), tile):
        rows = references[start : start + tile]
        values = _columns(gram, rows)
        distance = values[rows, np.arange(len(rows))][None, :] - 2 * values
        distance[rows, np.arange(len(rows))] = np.inf
        both = np.concatenate([nearest, distance], axis=1)
        known = np.concatenate([who, np.broadcast_to(rows.astype(np.int32), distance.shape)], axis=1)
        kept = np.argpartition(both, neighbours - 1, axis=1)[:, :neighbours]
        nearest, who = np.take_along_axis(both, kept, 1), np.take_along_axis(known, kept, 1)
    votes = np.stack([((labels[who] == c) & np.isfinite(nearest)).sum(1) for c in range(n_classes)], axis=1)
    return votes / np.maximum(votes.sum(1, keepdims=True), 1)


def _columns(gram: Gram, rows: np.ndarray) -> np.ndarray:
    """K[:, rows], looked up where K is there, else as a product with unit columns."""
    backend = gram.backend
    if isinstance(gram, DenseGram):
        return backend.numpy(backend.cast(gram.matrix[:, backend.array(rows)], backend.float64))
    unit = np.zeros((gram.n, len(rows)))
    unit[rows, np.arange(len(rows))] = 1.0
    return backend.numpy(gram.matmat(backend.columns(unit)))


def class_shares(scores: np.ndarray, votes: np.ndarray) -> np.ndarray:
    """What both judges together give each class, (n, n_classes), rows summing to 1: mean of votes and softmax(scores).

    For one column of scores that is sigma(2 f) and sigma(-2 f).
    """
    both = np.concatenate([-scores, scores], axis=1) if scores.shape[1] == 1 else scores
    return (votes + softmax(both, axis=1)) / 2


def support_of_labels(
    shares: np.ndarray, labels: np.ndarray, own_average: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """How well each given label stands against the best rival, (n,), below 0 if badly; and that rival, (n,).

    Let t_c be what class c gets, on average, from the rows that carry its label: the less, the more of these labels
    are wrong. A rival c speaks against a label y where it gets more than t_c, and exceeds t_c by more than y exceeds
    t_y; the support is min over c of max(t_c - s_c, (s_y - t_y) - (s_c - t_c)). The thresholds of one's own class are
    the idea of confident learning (Northcutt, Jiang and Chuang, 2021): flips that all go one way move the boundary,
    and a plain "other class is likelier" no longer sees them. `own_average` below 1 draws the thresholds towards the
    average over all labels, by as much as is missing.
    """
    rows = np.arange(len(labels))
    counts = np.bincount(labels, minlength=shares.shape[1])
    own = shares[rows, labels]
    means = np.bincount(labels, weights=own, minlength=shares.shape[1]) / np.maximum(counts, 1)
    means = own.mean() + own_average * (means - own.mean())
    excess = shares - np.where(counts > 0, means, 2.0)  # nobody can be of an absent class
    support = np.maximum(-excess, excess[rows, labels][:, None] - excess)
    support[rows, labels] = np.inf
    rival = support.argmin(axis=1)
    return support[rows, rival], rival


@dataclass(frozen=True)
class SuggestedFlips(RandomizedTopK):
    """`RandomizedTopK` whose flipped labels become ``targets``, a class for each row, (n,)."""

    targets: Any = None

    def __call__(self, view: View, counter: int) -> Flips:
        """The flips of round `counter`."""
        flips = super().__call__(view, counter)
        return Flips(flips.points, view.backend.constant(self.targets)[flips.points.clip(0, None)])
