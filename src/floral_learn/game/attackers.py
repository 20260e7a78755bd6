"""The attacker inside the game: which labels to flip in this round, given the duals of the round before.

An attacker is called as ``attacker(view, counter)`` and answers with `Flips`: always flips of the GIVEN labels,
never cumulative. Random choices come from the counter-based stream of game/arrays.py: the draw for a point
depends on the game's seed, the round and the point alone.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from floral_learn.game.arrays import Array, NumpyBackend, mix, stream

Counts = int | np.ndarray  # one for all games, or one for each


class Flips(NamedTuple):
    """Points and their new labels, both (k, R); a negative point is an empty place."""

    points: Array
    labels: Array


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
        self.games, self.times, xp = len(seeds), columns // len(seeds), backend.xp
        self.seeds, rows = backend.array(seeds), backend.array(np.arange(len(labels)))[:, None]
        ids = rows if row_ids is None else backend.array(row_ids)
        self.mixed = backend.columns(mix(ids + 1))
        # Streams of a seed: 3 t for what round t flips, 3 t + 1 for the new classes, -3 for the order of ties.
        draws = mix(stream(self.seeds, -3) ^ self.mixed) & sys.maxsize
        ranks = xp.argsort(xp.argsort(draws, 0), 0)
        self.ties = self.wide_ties = backend.columns(ranks)  # of equal duals, at random
        self.eligible = self.wide_eligible = eligible
        if self.times > 1:
            self.wide_ties = self.of_columns(self.ties)
            self.wide_eligible = None if eligible is None else self.of_columns(eligible)
        self.streams = stream(self.seeds, backend.array(3 * np.arange(rounds + 1)[:, None]))
        self.single, self.half = xp.float32, xp.int32
        empty = backend.zeros((0, self.games), backend.int64)
        self.nobody = Flips(empty, empty)
        self.draws, self.drawn_from = self.streams[:0], 0

    def of_columns(self, x: Array) -> Array:
        """What holds for each game (n, R), for each of its columns, (n, R * M)."""
        repeat = np.repeat if self.backend.name == "numpy" else self.backend.xp.repeat_interleave
        return repeat(x.T, self.times, 0).T

    def keys(self, values: Array) -> Array:
        """Distinct int64 keys that order non-negative `values` (n, c), equal ones at random; negative where not
        eligible.

        Values are compared with 16 bits: the last digits of a sum depend on the type and on the order in which threads
        and devices add, and what is equal in exact arithmetic must be a tie everywhere. One differing choice is enough
        to send two games apart, so that float32 follows float64 only because both look at the same digits.
        """
        backend, wide = self.backend, values.shape[1] == self.columns
        bits = backend.cast(values, self.single).view(self.half)
        bits = (bits + 128) & ~255
        keys = (backend.cast(bits, backend.int64) << 31) | (self.wide_ties if wide else self.ties)
        # a positive value of 16 bits is 2^39 or more by now, a zero below 2^31: no candidate
        keys = keys - (1 << 38)
        eligible = self.wide_eligible if wide else self.eligible
        return keys if eligible is None else never(keys, ~eligible)

    def largest(self, values: Array, counts: np.ndarray, rows: Any = None) -> Array:
        """Rows with the largest values of each column, `counts` of each, (places, c); of several lists per column,
        each taken from its own rows, if there are: row numbers for one column, (lists, c, n) for more.
        """
        keys, backend, width = self.keys(values), self.backend, values.shape[1]
        if width > 1:
            if rows is not None:
                keys = never(keys.T, ~rows).reshape(-1, len(keys)).T
            return backend.largest(keys, counts, width)
        keys = keys[:, 0]
        if rows is None:
            return backend.top(keys, int(counts[0]))[:, None]
        named = []
        for own, count in zip(rows, counts):
            found = backend.top(keys[own], count)
            rows_found = own[found]
            named.append(rows_found if backend.name == "numpy" else backend.xp.where(found < 0, found, rows_found))
        return backend.xp.concatenate(named)[:, None]

    def draw(self, number: int, candidates: Array) -> Array:
        """Random numbers of `candidates` for the choice of a round: those of `draw` (game/arrays.py), whoever asks."""
        if self.games > 1 or self.backend.name != "numpy" or len(self.mixed) > 4096:
            return mix(self.streams[number] ^ _take(self.mixed, candidates, self.backend)) & sys.maxsize
        # For few rows calls take longer than numbers: those of all rows are made, for many rounds at once.
        place = number - self.drawn_from
        if not 0 <= place < len(self.draws):
            ahead = self.streams[number : number + max(1, 2**15 // len(self.mixed))]
            self.draws, self.drawn_from, place = mix(ahead ^ self.mixed.T) & sys.maxsize, number, 0
        return self.draws[place][candidates]


def never(keys: Array, rows: Array) -> Array:
    """`keys` with the sign of those of `rows` set: they are never named, and stay each its own.

    A partition among equal keys is slow.
    """
    return keys | rows * -(1 << 63)


class Attacker:
    """Base: names candidates and flips some of them at random; this one never names any."""

    needs_scores = False
    flips: Counts = 0
    flip_distribution: np.ndarray | None = None

    def prepare(self, view: View) -> Any:
        """How many candidates each list has, and of which rows (see `View.largest`); None: nobody is ever flipped."""
        return None

    def losses(self, view: View) -> Array:
        """Of which the largest are the candidates, (n, c): the duals, but for attackers with ``needs_scores``."""
        raise NotImplementedError

    def __call__(self, view: View, number: int, prepared: Any) -> Flips:
        """The flips of a round: `flips` of each game's candidates at random, with their new classes."""
        if prepared is None:
            return view.nobody
        candidates = view.largest(self.losses(view) if self.needs_scores else view.dual, *prepared)
        points = _some(candidates, self.flips, view, number)
        return Flips(points, _relabelled(points, view, number, self.flip_distribution))


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

    With k = B it is the deterministic attacker of the paper's inner problem (eq. 5-7).

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

    def prepare(self, view: View) -> tuple[np.ndarray, Array | None] | None:
        """How many rows each list of candidates has, and of which rows it is taken: (lists, c, n), None for all."""
        if not np.any(self.flips):
            return None
        if self.class_budget is None:
            counts = np.broadcast_to(np.asarray(self.budget), (view.games, view.times)).reshape(-1)
            return (counts, None) if counts.any() else None
        caps = np.broadcast_to(np.asarray(self.class_budget), (view.games, view.n_classes))
        if view.columns == 1:
            labels = view.backend.numpy(view.labels)[:, 0]
            rows = map(np.flatnonzero, (labels == 0, labels == 1))
            return caps[0].tolist(), list(map(view.backend.array, rows))
        classes = view.backend.array(np.arange(view.n_classes))[:, None, None]
        labels = view.labels if view.times == 1 else view.of_columns(view.labels)
        if not caps.any():
            return None
        return np.repeat(caps, view.times, axis=0).T.reshape(-1), classes == labels.T


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
        return Flips(chosen, _relabelled(chosen, view, number, None))


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

    def prepare(self, view: View) -> tuple[np.ndarray] | None:
        """How many rows of each game are candidates: as many as flips."""
        return (np.broadcast_to(self.flips, (view.games,)),) if np.any(self.flips) else None

    def losses(self, view: View) -> Array:
        """The losses under the flipped label."""
        if view.times == 1:
            own = view.scores * (2 * view.labels - 1)
        else:  # the score of the point's own class, against all others
            columns = view.labels + view.backend.arange(view.games) * view.n_classes
            own = view.scores[view.backend.arange(len(view.labels))[:, None], columns]
        return (1 + own).clip(0, None)


def _some(candidates: Array, flips: Counts, view: View, number: int) -> Array:
    """``flips[r]`` of game r's candidates at random, (most, R), -1 in empty places."""
    backend, xp = view.backend, view.backend.xp
    several = candidates.shape[1] > view.games
    if several:  # the union over the game's columns
        candidates = candidates.T.reshape(view.games, -1).T
    draws = view.draw(number, candidates)
    if several or view.games > 1 or backend.name != "numpy":  # otherwise there are no empty places
        draws = xp.where(candidates >= 0, draws, sys.maxsize)
    points = _take(candidates, draws.argsort(0), backend)
    if several:  # a point named by two columns has the same priority twice: keep the first
        again = points < -1  # False everywhere: numpy 1.26 has no `xp.bool`
        again[1:] = points[1:] == points[:-1]
        place = backend.arange(len(points))[:, None] + len(points) * (again | (points < 0))
        points = _take(xp.where(again, -1, points), xp.argsort(place, 0), backend)
    if view.games == 1:
        return points[: int(flips) if isinstance(flips, int) else int(np.max(flips))]
    counts = np.broadcast_to(flips, (view.games,)).copy()
    rank = backend.arange(min(len(points), int(counts.max())))[:, None]
    return xp.where(rank < backend.array(counts), points[: len(rank)], -1)


def _relabelled(points: Array, view: View, number: int, distribution: np.ndarray | None) -> Array:
    """New classes of `points`: the other one of two, else a draw from the row of the old class."""
    backend = view.backend
    # in empty places that of the last row, which nobody reads
    old = _take(view.labels, points, backend)
    if distribution is None and view.n_classes == 2:
        return 1 - old
    if distribution is None:
        distribution = (1 - np.eye(view.n_classes)) / (view.n_classes - 1)
    edges = backend.array(np.cumsum(distribution, axis=1)[:, :-1])
    mixed = _take(view.mixed, points, backend)
    draws = mix(stream(view.seeds, 3 * number + 1) ^ mixed) & sys.maxsize
    return backend.cast((edges[old] <= (draws / 2.0**63)[..., None]).sum(-1), backend.int64)


def _take(x: Array, order: Array, backend: NumpyBackend) -> Array:
    if x.shape[1] == 1:
        return x[order[:, 0]] if order.shape[1] == 1 else x[order, 0]
    return x[order, backend.arange(x.shape[1])[None, :]]
