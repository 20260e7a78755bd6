"""The attacker inside the game: which labels to flip in this round, given the duals of the round before.

An attacker is called as ``attacker(view, counter)`` and answers with `Flips`: always flips of the GIVEN labels,
never cumulative. Random choices come from the counter-based stream of game/arrays.py: the draw for a point
depends on the game's seed, the round and the point alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from floral_learn.game.arrays import INT64_MAX, Array, NumpyBackend, draw, drawn, mix, stream

Counts = int | np.ndarray  # one for all games, or one for each
# Streams of one seed: the order among ties (drawn once), which candidates are flipped, and to which class.
TIES, CHOICE, CLASS = -1, 0, 1
AHEAD = 64  # rounds whose streams are made at once: for a single one, calls to numpy cost more than the numbers


@dataclass
class View:
    """What the attacker sees: R games of n points and M columns each."""

    dual: Array  # (n, R * M), the duals of the round before
    labels: Array  # (n, R), the given labels as class numbers
    n_classes: int
    eligible: Array | None  # (n, R) bool, or None: every label may be flipped
    ties: Array  # (n, R), a random order for equal duals
    seeds: Array  # (R,)
    backend: NumpyBackend
    scores: Array | None = None  # (n, R * M), decision values; only for attackers with ``needs_scores``
    row_ids: Array | None = None  # (n, R), what the random streams call each row; its own number by default
    kept: dict[Any, Any] = field(default_factory=dict)  # by `once`; the views of all rounds share it, for one attacker

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` gives and no round changes: made in the first one only, where calls are what takes time."""
        if self.backend.name != "numpy":  # a recorded graph keeps its own
            return make()
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def priority(self, points: Array, counter: int | Array) -> Array:
        """What `draw` gives for the choice of round `counter` at `points` (k, R); anything at negative ones."""
        if self.backend.name != "numpy" or not isinstance(counter, int):
            return draw(self.seeds, 3 * counter + CHOICE, _ids(points, self))
        block, place = divmod(counter, AHEAD)
        if ("streams", block) not in self.kept:
            self.kept.pop(("streams", block - 1), None)
            rounds = range(block * AHEAD, (block + 1) * AHEAD)
            self.kept["streams", block] = [stream(self.seeds, 3 * t + CHOICE) for t in rounds]
        if self.row_ids is None:
            mixed = self.once("mixed", lambda: mix(np.arange(1, len(self.labels) + 1)))[points]
        else:
            ids = self.row_ids
            mixed = _take(self.once("mixed", lambda: mix(ids + 1)), points, self.backend)
        return drawn(self.kept["streams", block][place], mixed)


@dataclass(frozen=True)
class Flips:
    """Points and their new labels, both (k, R); a negative point is an empty place."""

    points: Array
    labels: Array | None


class Attacker:
    """Base: never flips anything.

    An attacker has two halves, so that rows may lie in many places: `ranked` gives keys, of which the largest are the
    candidates (`candidates` finds them where all rows are here), and `choose` draws the flips from these.
    """

    needs_scores = False
    flips: Counts = 0
    flip_distribution: np.ndarray | None = None

    def ranked(self, view: View) -> list[tuple[Array, np.ndarray]]:
        """Lists of candidates: keys (n, c) and how many of the largest of each column are candidates, (c,)."""
        return []

    def candidates(self, view: View) -> Array:
        """Row numbers of all candidates, (places, c), -1 in empty places."""
        backend = view.backend
        lists = [backend.largest(keys, counts) for keys, counts in self.ranked(view)]
        if not lists:
            return backend.zeros((0, view.dual.shape[1]), backend.int64)
        return lists[0] if len(lists) == 1 else backend.xp.concatenate(lists)

    def choose(self, candidates: Array, view: View, counter: int | Array) -> Flips:
        """`flips` of each game's candidates (places, c) at random, with their new classes."""
        if len(candidates):  # not for an attacker of the first rounds, who never has any
            most, counts = view.once("flips", lambda: _most(self.flips, len(view.seeds)))
            if most > 0:
                return _drawn(candidates, counts, most, view, counter, self.flip_distribution)
        empty = view.backend.zeros((0, len(view.seeds)), view.backend.int64)
        return Flips(empty, empty)

    def __call__(self, view: View, counter: int | Array) -> Flips:
        """The flips of round `counter`."""
        return self.choose(self.candidates(view), view, counter)


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

    def ranked(self, view: View) -> list[tuple[Array, np.ndarray]]:
        """The duals: one list, or one per class."""
        lists = view.once("lists", lambda: self.row_lists(view, view.dual.shape[1]))
        if not lists:
            return []
        keys, where = ranking_keys(view.dual, view), view.backend.xp.where
        return [(keys if rows is None else where(rows, keys, -1), counts) for rows, counts in lists]

    def row_lists(self, view: View, columns: int) -> list[tuple[Array | None, np.ndarray]]:
        """Which rows each list of candidates is taken from (None: all), and how many of each of the `columns`."""
        games = len(view.seeds)
        if int(np.max(self.flips, initial=0)) == 0:
            return []
        if self.class_budget is None:
            budget = np.broadcast_to(np.asarray(self.budget), (games, columns // games)).reshape(-1)
            return [(None, budget)] if budget.any() else []
        caps = np.broadcast_to(np.asarray(self.class_budget), (games, view.n_classes))
        labels = _repeated(view.labels, columns // games, view.backend)
        return [
            (labels == c, np.repeat(caps[:, c], columns // games)) for c in range(view.n_classes) if caps[:, c].any()
        ]


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

    def ranked(self, view: View) -> list[tuple[Array, np.ndarray]]:
        """The duals; as many candidates as flips."""
        budget = np.broadcast_to(self.flips, (len(view.seeds),))[:, None]
        return RandomizedTopK(budget, self.flips).ranked(view)


@dataclass(frozen=True)
class Recorded(Attacker):
    """The flips of a game that was played before, round by round: what `history["flips"]` holds.

    Parameters
    ----------
    points : int ndarray of shape (rounds, k) or (rounds, k, R)
        Row numbers, -1 in empty places; two classes.
    """

    points: np.ndarray

    def __call__(self, view: View, counter: int | Array) -> Flips:
        """The flips of round `counter`."""
        backend = view.backend
        points = self.points[int(counter) - 1]
        chosen = backend.array(np.asarray(points, dtype=np.int64).reshape(len(points), len(view.seeds)))
        return Flips(chosen, _relabel(chosen, view, counter, None))


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

    def ranked(self, view: View) -> list[tuple[Array, np.ndarray]]:
        """The losses under the flipped label; as many candidates as flips."""
        backend, games = view.backend, len(view.seeds)
        if int(np.max(self.flips, initial=0)) == 0 or view.scores is None:
            return []
        if view.dual.shape[1] == games:
            own = view.scores * (2 * view.labels - 1)
        else:  # the score of the point's own class, against all others
            columns = view.labels + backend.arange(games) * view.n_classes
            own = view.scores[backend.arange(len(view.labels))[:, None], columns]
        loss = (1 + own).clip(0, None)
        return [(ranking_keys(loss, view), np.broadcast_to(self.flips, (games,)))]


def ranking_keys(values: Array, view: View) -> Array:
    """Distinct int64 keys that order non-negative `values` (n, c), equal ones by ``view.ties``; -1 where not eligible.

    Values are compared with 16 bits: the last digits of a sum depend on the type and on the order in which threads and
    devices add, and what is equal in exact arithmetic must be a tie everywhere. One differing choice is enough to send
    two games apart, so that float32 follows float64 only because both look at the same digits.
    """
    backend, xp = view.backend, view.backend.xp
    bits = backend.cast(backend.cast(values, backend.dtype("float32")).view(backend.dtype("int32")), backend.int64)
    bits = (bits + 128) & ~255
    repeat = values.shape[1] // view.ties.shape[1]
    keys = (bits << 31) | view.once(("ties", repeat), lambda: _repeated(view.ties, repeat, backend))
    allowed = values > 0
    if view.eligible is not None:
        allowed = allowed & view.once(("eligible", repeat), lambda: _repeated(view.eligible, repeat, backend))
    return xp.where(allowed, keys, -1)


def tie_order(seeds: Array, row_ids: Array, backend: NumpyBackend) -> Array:
    """The place of each row in its game's random order, (n, R)."""
    return backend.columns(backend.argsort(backend.argsort(draw(seeds, 3 * TIES, row_ids))))


def _repeated(x: Array, times: int, backend: NumpyBackend) -> Array:
    if times == 1:
        return x
    repeat = backend.xp.repeat_interleave if backend.name == "torch" else np.repeat
    return repeat(x.T, times, 0).T


def _drawn(
    candidates: Array,
    flips: np.ndarray,
    most: int,
    view: View,
    counter: int | Array,
    distribution: np.ndarray | None,
) -> Flips:
    """`flips[r]` of game r's candidates at random, (most, R), with their new classes."""
    backend, xp = view.backend, view.backend.xp
    games = len(view.seeds)
    several = candidates.shape[1] > games
    if several:  # the union over the game's columns
        candidates = candidates.T.reshape(games, -1).T
    order = backend.argsort(xp.where(candidates >= 0, view.priority(candidates, counter), INT64_MAX))
    points = _take(candidates, order, backend)
    if several:  # a point named by two columns has the same priority twice: keep the first
        again = backend.zeros(tuple(points.shape), xp.bool if backend.name == "torch" else bool)
        again[1:] = points[1:] == points[:-1]
        points = xp.where(again, -1, points)
        order = backend.argsort(backend.cast(points < 0, backend.int64))
        points = _take(points, order, backend)
    points = points[:most]
    if games > 1:
        rank = backend.arange(len(points))[:, None]
        points = xp.where(rank < backend.constant(flips), points, -1)
    return Flips(points, _relabel(points, view, counter, distribution))


def _most(flips: Counts, games: int) -> tuple[int, np.ndarray]:
    """The most flips of any game, and those of each."""
    return int(np.max(flips, initial=0)), np.broadcast_to(np.asarray(flips), (games,))


def _ids(points: Array, view: View) -> Array:
    if view.row_ids is None:
        return points
    return _take(view.row_ids, points.clip(0, None), view.backend)


def _relabel(points: Array, view: View, counter: int | Array, distribution: np.ndarray | None) -> Array:
    """New classes of `points`: the other one of two, else a draw from the row of the old class."""
    backend = view.backend
    old = _take(view.labels, points.clip(0, None), backend)
    if distribution is None and view.n_classes == 2:
        return 1 - old
    if distribution is None:
        distribution = (1 - np.eye(view.n_classes)) / (view.n_classes - 1)
    edges = backend.constant(np.cumsum(distribution, axis=1)[:, :-1])
    uniform = draw(view.seeds, 3 * counter + CLASS, _ids(points, view)) / 2.0**63
    return backend.cast((edges[old] <= uniform[..., None]).sum(-1), backend.int64)


def _take(x: Array, order: Array, backend: NumpyBackend) -> Array:
    if x.shape[1] == 1:
        return x[order[:, 0]]
    return x[order, backend.arange(x.shape[1])[None, :]]
