"""The attacker inside the game: which labels to flip in this round, given the duals of the round before.

An attacker is called as ``attacker(view, counter)`` and answers with `Flips`: always flips of the GIVEN labels,
never cumulative. Random choices come from the counter-based stream of game/arrays.py: the draw for a point
depends on the game's seed, the round and the point alone.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_learn.game.arrays import Array, NumpyBackend, drawn, mix, stream

Counts = int | np.ndarray  # one for all games, or one for each
TIES, CHOICE, CLASS = -1, 0, 1  # streams of a seed: order among ties, which candidates are flipped, and to which class


class View:
    """What the attacker sees: R games of n points and M columns each.

    Parameters
    ----------
    labels : array of shape (n, R)
        The given labels as class numbers.
    n_classes : int
    columns : int
        R * M.
    seeds : array of shape (R,)
        One random stream per game.
    rounds : int
        How many rounds there will be.
    eligible : bool array of shape (n, R), optional
        Which labels may be flipped; all by default.
    row_ids : array of shape (n, R), optional
        What the random streams call each row; its own number by default.

    Attributes
    ----------
    dual : array of shape (n, R * M)
        The duals of the round before.
    scores : array of shape (n, R * M)
        Decision values of the round before; only for attackers with ``needs_scores``.
    """

    dual: Array
    scores: Array

    def __init__(
        self,
        labels: Array,
        n_classes: int,
        columns: int,
        seeds: np.ndarray,
        rounds: int,
        backend: NumpyBackend,
        eligible: Array | None = None,
        row_ids: np.ndarray | None = None,
    ) -> None:
        self.labels, self.n_classes, self.columns, self.backend = labels, n_classes, columns, backend
        self.games = len(seeds)
        self.seeds = backend.array(seeds)
        self.eligible = eligible
        ids = np.arange(len(labels))[:, None] if row_ids is None else row_ids
        self.mixed = backend.columns(mix(ids + 1), backend.int64)
        order = backend.argsort(drawn(stream(self.seeds, 3 * TIES), self.mixed))
        self.ties = backend.columns(backend.argsort(order))  # a random order for equal duals
        # Rows that are never named have keys below zero, each its own: a partition among equal keys is slow.
        self.closed = -1 - backend.arange(len(labels))[:, None]
        self.ties_of_columns = self.of_columns(self.ties)
        self.eligible_columns = None if eligible is None else self.of_columns(eligible)
        self.streams = stream(self.seeds, 3 * backend.arange(rounds + 1)[:, None] + CHOICE)

    def of_columns(self, x: Array) -> Array:
        """What holds for each game (n, R), for each of its columns, (n, R * M)."""
        times = self.columns // self.games
        if times == 1:
            return x
        repeat = np.repeat if self.backend.name == "numpy" else self.backend.xp.repeat_interleave
        return repeat(x.T, times, 0).T

    def keys(self, values: Array) -> Array:
        """Distinct int64 keys that order non-negative `values` (n, c), equal ones at random; negative where not
        eligible.

        Values are compared with 16 bits: the last digits of a sum depend on the type and on the order in which threads
        and devices add, and what is equal in exact arithmetic must be a tie everywhere. One differing choice is enough
        to send two games apart, so that float32 follows float64 only because both look at the same digits.
        """
        backend, all_columns = self.backend, values.shape[1] == self.columns
        bits = backend.cast(backend.cast(values, backend.dtype("float32")).view(backend.dtype("int32")), backend.int64)
        keys = (((bits + 128) & ~255) << 31) | (self.ties_of_columns if all_columns else self.ties)
        allowed = values > 0
        if self.eligible is not None:
            allowed = allowed & (self.eligible_columns if all_columns else self.eligible)
        return backend.xp.where(allowed, keys, self.closed)

    def priority(self, points: Array, number: int) -> Array:
        """Random numbers for the choice among `points` (k, R) in a round; anything at negative ones."""
        return drawn(self.streams[number], _take(self.mixed, points, self.backend))


@dataclass(frozen=True)
class Flips:
    """Points and their new labels, both (k, R); a negative point is an empty place."""

    points: Array
    labels: Array | None


class Attacker:
    """Base: names candidates and flips some of them at random; this one never names any."""

    needs_scores = False
    flips: Counts = 0
    flip_distribution: np.ndarray | None = None

    def prepare(self, view: View) -> Any:
        """What no round changes, made once per game: `candidates` gets it."""
        return None

    def candidates(self, view: View, prepared: Any) -> Array:
        """Row numbers of all candidates, (places, c), -1 in empty places."""
        return view.backend.zeros((0, view.columns), view.backend.int64)

    def __call__(self, view: View, number: int, prepared: Any) -> Flips:
        """The flips of a round: `flips` of each game's candidates at random, with their new classes."""
        candidates, most = self.candidates(view, prepared), int(np.max(self.flips, initial=0))
        if not len(candidates) or most == 0:
            empty = view.backend.zeros((0, view.games), view.backend.int64)
            return Flips(empty, empty)
        points = _some(candidates, np.broadcast_to(self.flips, (view.games,)), most, view, number)
        return Flips(points, _relabel(points, view, number, self.flip_distribution))


class NoAttack(Attacker):
    """Plain projected gradient training.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.attackers import NoAttack
    >>> from floral_learn.game.game import Game, solve
    >>> from floral_learn.game.gram import DenseGram
    >>> game = Game(DenseGram(np.eye(4)), np.array([0, 0, 1, 1]), np.ones(4), np.full(9, 0.1), NoAttack())
    >>> solve(game).flip_rate.sum()
    np.float64(0.0)
    """


@dataclass(frozen=True)
class RandomizedTopK(Attacker):
    """k points at random among the B largest duals (the paper's Algorithm 1, line 3; Algorithm 3 for M > 1).

    With several classes each class names its own top B_m, k points are drawn from the union, and their classes are
    redrawn from ``flip_distribution[old]``.

    Duals are compared with 16 bits, and equal ones are ordered by a permutation drawn once per game: see
    `ranking_keys`.

    Parameters
    ----------
    budget : array of shape (R, M) or int
        B, for each game and column.
    flips : array of shape (R,) or int
        k, for each game.
    flip_distribution : ndarray of shape (n_classes, n_classes), optional
        Row-stochastic; by default uniform over the other classes.
    class_budget : array of shape (R, n_classes) or (n_classes,), optional
        In place of `budget`: the candidates are the largest duals of each class's own rows, so many of each.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.attackers import RandomizedTopK
    >>> from floral_learn.game.game import Game, solve
    >>> from floral_learn.game.gram import DenseGram
    >>> game = Game(DenseGram(np.eye(4)), np.array([0, 0, 1, 1]), np.ones(4), np.full(9, 0.1), RandomizedTopK(2, 1))
    >>> solve(game).history["flips"].shape  # one flip per round, one game
    (9, 1, 1)
    """

    budget: Counts
    flips: Counts
    flip_distribution: np.ndarray | None = None
    class_budget: Counts | None = None

    def prepare(self, view: View) -> tuple[Array | None, np.ndarray] | None:
        """Which rows each list of candidates is taken from, (lists, c, n), and how many; None: one list of all rows."""
        times = view.columns // view.games
        if int(np.max(self.flips, initial=0)) == 0:
            return None
        if self.class_budget is None:
            counts = np.broadcast_to(np.asarray(self.budget), (view.games, times)).reshape(-1)
            return (None, counts) if counts.any() else None
        caps = np.repeat(np.broadcast_to(np.asarray(self.class_budget), (view.games, view.n_classes)), times, axis=0)
        classes = np.flatnonzero(caps.any(axis=0)).tolist()
        labels = view.of_columns(view.labels)
        if not classes:
            return None
        return view.backend.xp.stack([(labels == c).T for c in classes]), caps[:, classes].T.reshape(-1)

    def candidates(self, view: View, prepared: Any) -> Array:
        """The largest duals of each list: one of all rows, or one per class."""
        if prepared is None:
            return super().candidates(view, prepared)
        rows, counts = prepared
        return _largest(view.keys(view.dual), rows, counts, view)


@dataclass(frozen=True)
class TopK(Attacker):
    """The k largest duals, deterministic: the paper's inner problem (eq. 5-7) solved exactly.

    Parameters
    ----------
    flips : array of shape (R,) or int
        k, for each game.
    flip_distribution : ndarray of shape (n_classes, n_classes), optional
        As in :class:`RandomizedTopK`.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.attackers import TopK
    >>> from floral_learn.game.game import Game, solve
    >>> from floral_learn.game.gram import DenseGram
    >>> game = Game(DenseGram(np.eye(4)), np.array([0, 0, 1, 1]), np.ones(4), np.full(9, 0.1), TopK(1))
    >>> solve(game).history["flips"].shape
    (9, 1, 1)
    """

    flips: Counts
    flip_distribution: np.ndarray | None = None

    def candidates(self, view: View, prepared: Any) -> Array:
        """The duals; as many candidates as flips."""
        counts = np.broadcast_to(self.flips, (view.games,)).repeat(view.columns // view.games)
        return _largest(view.keys(view.dual), None, counts, view) if counts.any() else super().candidates(view, None)


@dataclass(frozen=True)
class Recorded(Attacker):
    """The flips of a game that was played before, round by round: what `history["flips"]` holds.

    Parameters
    ----------
    points : int ndarray of shape (rounds, k) or (rounds, k, R)
        Row numbers, -1 in empty places; two classes.
    """

    points: np.ndarray

    def __call__(self, view: View, number: int, prepared: Any) -> Flips:
        """The flips of a round."""
        points = np.asarray(self.points[number - 1], dtype=np.int64)
        chosen = view.backend.array(points[points >= 0][:, None] if view.games == 1 else points)
        return Flips(chosen, _relabel(chosen, view, number, None))


@dataclass(frozen=True)
class LargestLoss(Attacker):
    """The k points whose flipped label has the largest hinge loss: the zero-sum game of the paper's eq. 3.

    These lie farthest on their own side of the boundary. The paper argues that this attacker is too weak to train
    against; it is here as the foil.

    Parameters
    ----------
    flips : array of shape (R,) or int
        k, for each game.
    flip_distribution : ndarray of shape (n_classes, n_classes), optional
        As in :class:`RandomizedTopK`.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.attackers import LargestLoss
    >>> from floral_learn.game.game import Game, solve
    >>> from floral_learn.game.gram import DenseGram
    >>> game = Game(DenseGram(np.eye(4)), np.array([0, 0, 1, 1]), np.ones(4), np.full(9, 0.1), LargestLoss(1))
    >>> float(solve(game).flip_rate.sum())  # one flip in each round after the warm-up
    1.0
    """

    flips: Counts
    flip_distribution: np.ndarray | None = None
    needs_scores = True

    def candidates(self, view: View, prepared: Any) -> Array:
        """The losses under the flipped label; as many candidates as flips."""
        backend, counts = view.backend, np.broadcast_to(self.flips, (view.games,))
        if not counts.any():
            return super().candidates(view, None)
        if view.columns == view.games:
            own = view.scores * (2 * view.labels - 1)
        else:  # the score of the point's own class, against all others
            columns = view.labels + backend.arange(view.games) * view.n_classes
            own = view.scores[backend.arange(len(view.labels))[:, None], columns]
        return _largest(view.keys((1 + own).clip(0, None)), None, counts, view)


def _largest(keys: Array, rows: Array | None, counts: np.ndarray, view: View) -> Array:
    """Rows with the largest keys of each list, `counts` of each; the lists of a column stand below one another."""
    backend, xp, (n, width) = view.backend, view.backend.xp, keys.shape
    if rows is not None:
        keys = xp.where(rows, keys.T, view.closed.T).reshape(-1, n).T
    named = backend.largest(keys, counts)
    if width == 1 and backend.name == "numpy":
        return named[named >= 0][:, None]
    return xp.concatenate([named[:, at : at + width] for at in range(0, len(counts), width)])


def _some(candidates: Array, flips: np.ndarray, most: int, view: View, number: int) -> Array:
    """``flips[r]`` of game r's candidates at random, (most, R), -1 in empty places."""
    backend, xp = view.backend, view.backend.xp
    several = candidates.shape[1] > view.games
    if several:  # the union over the game's columns
        candidates = candidates.T.reshape(view.games, -1).T
    draws = view.priority(candidates, number)
    if candidates.shape[1] > 1 or several or backend.name != "numpy":
        draws = xp.where(candidates >= 0, draws, sys.maxsize)
    points = _take(candidates, backend.argsort(draws), backend)
    if several:  # a point named by two columns has the same priority twice: keep the first
        again = backend.zeros(tuple(points.shape), xp.bool)
        again[1:] = points[1:] == points[:-1]
        points = xp.where(again, -1, points)
        points = _take(points, backend.argsort(backend.cast(points < 0, backend.int64)), backend)
    points = points[:most]
    if view.games > 1:
        rank = backend.arange(len(points))[:, None]
        points = xp.where(rank < backend.array(flips), points, -1)
    return points


def _relabel(points: Array, view: View, number: int, distribution: np.ndarray | None) -> Array:
    """New classes of `points`: the other one of two, else a draw from the row of the old class."""
    backend = view.backend
    old = _take(view.labels, points.clip(0, None), backend)
    if distribution is None and view.n_classes == 2:
        return 1 - old
    if distribution is None:
        distribution = (1 - np.eye(view.n_classes)) / (view.n_classes - 1)
    edges = backend.array(np.cumsum(distribution, axis=1)[:, :-1])
    draws = drawn(stream(view.seeds, 3 * number + CLASS), _take(view.mixed, points.clip(0, None), backend))
    return backend.cast((edges[old] <= (draws / 2.0**63)[..., None]).sum(-1), backend.int64)


def _take(x: Array, order: Array, backend: NumpyBackend) -> Array:
    if x.shape[1] == 1:
        return x[order[:, 0]] if order.shape[1] == 1 else x[order, 0]
    return x[order, backend.arange(x.shape[1])[None, :]]
