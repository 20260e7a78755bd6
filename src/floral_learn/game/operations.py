"""What a round asks of the rows: flips, products with K, sums over rows, the root of the projection.

`game/game.py` has the loop, once. Where the rows are decides who answers: `LocalRows` for one process (numpy, or torch
on any device), `ClusterRounds` for the workers of a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from floral_learn.game.arrays import NUMPY, Array, drawn, mix, outer, stream
from floral_learn.game.attackers import CHOICE, Flips, RandomizedTopK, View, tie_order
from floral_learn.game.dual import KKTSums, gradient, kkt_sums, optimality_of
from floral_learn.game.gram import DenseGram
from floral_learn.game.projections import PROJECTIONS, Root, root_of_one
from floral_learn.game.state import GameState

if TYPE_CHECKING:
    from floral_learn.game.game import Game


WAITING = 64  # rounds closed at once at most ...
WAITING_NUMBERS = 2**14  # ... and fewer where their duals would be more numbers than a cache holds ...
WAITING_TOGETHER = {"numpy": 2**20, "torch": 2**24}  # ... or, where one pass over K serves all, than memory can spare


class Rows(Protocol):
    """Operations that a round is written in."""

    game: Game
    state: GameState  # where the game stands

    def attack(self, number: int) -> Flips:
        """The attacker's flips for round `number`, from the duals of the round before."""

    def relabel(self, flips: Flips) -> None:
        """The given labels with `flips` applied become those of the round."""

    def descend(self, number: int) -> None:
        """z = lam - eta_t (y_t * K (y_t * lam) - 1), with one pass over K."""

    def project(self) -> Root:
        """The root mu of y_t' clip(z - mu y_t, 0, C) = 0."""

    def accept(self, found: Root, flips: Flips) -> None:
        """The projected z becomes the duals of the round, and is added to the sums of the averaged model."""

    def full(self) -> bool:
        """Whether as many rounds wait to be closed as there is room for."""

    def close(self) -> None:
        """Bias, KKT residual and objective of all rounds that wait for them, into the history."""

    def movement(self) -> float:
        """Mean squared change per round of the averaged decision values since the last call; infinite at the first."""


class LocalRows:
    """All rows in this process."""

    def __init__(self, game: Game, state: GameState) -> None:
        self.game, self.state, self.backend = game, state, game.gram.backend
        self.view = view_of(game)
        self.waiting: list[tuple[Array, Array]] = []  # duals and labels of rounds that are not closed
        n, columns = state.dual.shape
        # A product of several columns, of many rows or on a GPU spends its time on reading K: it serves many rounds.
        self.together = columns > 1 or n > MOST_ROWS or self.backend.kernels is not None
        room = WAITING_TOGETHER[self.backend.name] if self.together else WAITING_NUMBERS
        self.room = max(1, min(WAITING, room // max(1, n * columns)))

    def attack(self, number: int) -> Flips:
        """The flips for round `number`."""
        attacker, state = self.game.attacker_of(number), self.state
        self.view.dual, self.view.scores = state.dual, None
        if attacker.needs_scores:
            now = self.game.gram.matmat(state.signs * state.dual)
            sums = self.sums(now, state.dual, state.signs)
            self.view.scores = now + optimality_of(sums, self.backend.xp)[0]
        return attacker(self.view, number)

    def relabel(self, flips: Flips) -> None:
        """Labels of the round."""
        self.signs = self.game.signs(flips)

    def descend(self, number: int) -> None:
        """The gradient step; where all duals are zero, as in the first round, so is the product."""
        dual = self.state.dual
        still = number == 1 and not bool((dual != 0).any())
        self.move(dual if still else self.product(self.weights()), self.game.eta[number - 1])

    def product(self, weights: Array) -> Array:
        """K times columns."""
        return self.game.gram.matmat(weights)

    def weights(self) -> Array:
        """The duals of the round before under the labels of this one, signed."""
        return self.signs * self.state.dual

    def move(self, product: Array, eta: Array) -> None:
        """A step of `eta` (columns,) down the gradient; a row of weight w moves w times as far."""
        weight = self.game.weight
        eta = eta if weight is None else outer(weight, eta)
        self.moved = self.state.dual - eta * gradient(product, self.signs)

    def project(self) -> Root:
        """The projection, as the game asks for it; `accept` takes its point."""
        game = self.game
        how = PROJECTIONS[game.projection]
        found = how(self.moved, self.signs, game.cap, self.state.mu, self.backend, game.weight)
        self.projected = found.dual
        return Root(found.mu, found.iterations, found.residual, found.converged)

    def accept(self, found: Root, flips: Flips) -> None:
        """Move on."""
        self.state.mu = found.mu
        self.take(self.projected, flips, self.state.round + 1, self.game.rounds // 2)

    def take(self, dual: Array, flips: Flips, number: int, middle: int) -> None:
        """The duals of round `number`, into the sums of the averaged model, which are marked if it is time."""
        state = self.state
        if len(flips.points):
            self.backend.count(state.flip_count, flips.points)
        state.dual, state.signs = dual, self.signs
        state.weight_sum = state.weight_sum + state.signs * state.dual
        state.marks.note(number, state.weight_sum, middle)
        self.waiting.append((state.dual, state.signs))

    def full(self) -> bool:
        """Whether it is time to close."""
        return len(self.waiting) >= self.room

    def close(self) -> None:
        """All rounds that wait, at once; a small game of one column has the same bits in any company."""
        rounds, stack = len(self.waiting), self.backend.side_by_side
        duals, signs = (parts[0] if rounds == 1 else stack(*parts) for parts in zip(*self.waiting))
        weights = signs * duals
        if self.together or rounds == 1:
            product = self.product(weights)
        else:
            product = stack(*[self.product(weights[:, at : at + 1]) for at in range(rounds)])
        sums = self.sums(product, duals, signs, rounds)
        bias, residual = optimality_of(sums, self.backend.xp)
        self.state.history.close_rounds(*(part.reshape(rounds, -1) for part in (bias, residual, sums.objective)))
        self.waiting = []

    def sums(self, product: Array, dual: Array, signs: Array, rounds: int = 1) -> KKTSums:
        """What bias, residual and objective are read from, for one or several rounds side by side."""
        cap, weight = self.game.cap, self.game.weight
        if rounds > 1 and cap.shape[1] > 1:
            cap = self.view.once(("cap", rounds), lambda: self.backend.side_by_side(*[self.game.cap] * rounds))
        if rounds > 1 and weight is not None and weight.shape[1] > 1:
            weight = self.backend.side_by_side(*[weight] * rounds)
        return kkt_sums(product, dual, signs, cap, self.backend, weight)

    def movement(self) -> float:
        """Mean squared change per round of the averaged decision values since the last look."""
        weights, bias = self.state.averages(self.backend)
        kept = self.state.extra  # there, so that a game that is continued ends where it would have ended
        before, at = kept.get("seen"), kept.get("seen_at")
        scores = self.game.gram.matmat(weights) + bias
        kept["seen"], kept["seen_at"] = scores, self.backend.array(np.array([self.state.round]))
        if before is None or at is None:
            return float("inf")
        total, count = self.backend.numpy(self.squares(scores - before))
        return float(np.mean(total / np.maximum(count, 1))) / (self.state.round - int(at[0]))

    def squares(self, change: Array) -> Array:
        """Sum of squares of `change` over the rows that play, and how many these are, (2, columns)."""
        plays = self.backend.cast(self.game.cap > 0, self.backend.float64) + change * 0
        return self.backend.xp.stack([(change * change * plays).sum(0), plays.sum(0)])


def view_of(game: Game) -> View:
    """What stays the same of what the attacker sees."""
    backend = game.gram.backend
    ids = np.arange(game.gram.n)[:, None] if game.row_ids is None else game.row_ids
    ids = backend.columns(ids, backend.int64)
    return View(
        dual=None,
        labels=game.labels,
        n_classes=game.n_classes,
        eligible=game.eligible,
        ties=tie_order(game.seeds, ids, backend),
        seeds=game.seeds,
        backend=backend,
        row_ids=None if game.row_ids is None else ids,
    )


DRAWN_NUMBERS = 2**15  # random numbers made at a time: those of some rounds, for every row
MOST_ROWS = 4096  # beyond, drawing a number for every row costs more than the calls it saves


def is_one_column(game: Game) -> bool:
    """Whether `game` is one that these operations play."""
    return (
        game.gram.backend is NUMPY
        and game.games * game.width == 1
        and game.gram.n <= MOST_ROWS
        and game.weight is None
        and game.row_ids is None
        and game.projection == "exact"
        and type(game.attacker) is RandomizedTopK
        and game.attacker.flip_distribution is None
    )


class OneColumn(LocalRows):
    """The rows of a single game of two classes in numpy, up to `MOST_ROWS` of them: same bits, a third of the calls.

    Below a few thousand rows a round is a hundred calls to numpy that take longer than the numbers in them. Here
    columns are plain vectors, what no round changes is made once, and the projection is computed in Python's numbers.
    """

    def __init__(self, game: Game, state: GameState) -> None:
        super().__init__(game, state)
        n, attacker = game.gram.n, game.attacker
        assert isinstance(attacker, RandomizedTopK)
        self.given = game.given[:, 0]
        cap = np.broadcast_to(game.cap[:, 0], n)
        reach = self.given * cap
        self.low, self.high = np.minimum(reach, 0), np.maximum(reach, 0)  # the box of y * a, for the given labels
        self.most, self.steps = float(cap.sum()), game.eta[:, 0].tolist()
        self.ties = self.view.ties[:, 0]
        self.flipped = int(np.max(attacker.flips, initial=0))
        allowed = np.ones(n, bool) if game.eligible is None else game.eligible[:, 0]
        self.lists = [  # rows that a list of candidates is taken from, and how many of them
            (np.flatnonzero(allowed if rows is None else allowed & rows[:, 0]), int(counts[0]))
            for rows, counts in attacker.row_lists(self.view, 1)
        ]
        self.ahead, self.drawn = max(1, DRAWN_NUMBERS // n), np.zeros((0, n), np.int64)
        self.drawn_from, self.mixed = 0, mix(np.arange(1, n + 1))
        self.symv = NUMPY.symmetric_routine(game.gram.matrix) if isinstance(game.gram, DenseGram) else None

    def attack(self, number: int) -> Flips:
        """k of the candidates at random: those with the smallest numbers of this round."""
        if number <= self.game.warm_up or not self.lists:
            empty = np.zeros((0, 1), np.int64)
            return Flips(empty, empty)
        dual = self.state.dual[:, 0]
        # The keys of `ranking_keys`: 16 bits of the dual, equal ones by the order among ties.
        bits = dual.astype(np.float32).view(np.int32)
        bits += 128
        bits &= ~255
        keys = bits.astype(np.int64)
        keys <<= 31
        keys |= self.ties
        named = []
        for rows, count in self.lists:
            if len(rows) > count:
                own = keys[rows]
                rows = rows[own >= np.partition(own, len(rows) - count)[len(rows) - count]]
            named.append(rows)
        candidates = named[0] if len(named) == 1 else np.concatenate(named)
        candidates = candidates[dual[candidates] > 0]
        chosen = candidates[self._draws(number)[candidates].argsort(kind="stable")[: self.flipped]]
        return Flips(chosen[:, None], None)  # of two classes there is one other

    def _draws(self, number: int) -> np.ndarray:
        """The random numbers of all rows for round `number`, (n,)."""
        place = number - self.drawn_from
        if not 0 <= place < len(self.drawn):
            streams = stream(self.game.seeds, 3 * np.arange(number, number + self.ahead) + CHOICE)
            self.drawn = drawn(streams[:, None], self.mixed)
            self.drawn_from, place = number, 0
        return self.drawn[place]

    def relabel(self, flips: Flips) -> None:
        """Labels of the round, and the box that goes with them."""
        points = flips.points[:, 0]
        signs, low, high = self.given, self.low, self.high
        if len(points):
            signs, low, high = signs.copy(), low.copy(), high.copy()
            signs[points] = -self.given[points]
            low[points], high[points] = -self.high[points], -self.low[points]
        self.signs, self.box = signs[:, None], (low, high)

    def descend(self, number: int) -> None:
        """The gradient step, in signed variables: y_t * z."""
        dual, signs = self.state.dual[:, 0], self.signs[:, 0]
        weights = signs * dual
        product = dual if number == 1 and not dual.any() else self.product(weights[:, None])[:, 0]
        self.moved = dual - self.steps[number - 1] * (signs * product - 1)

    def project(self) -> Root:
        """The exact projection; `accept` takes its point, which times y is that of the averaged model."""
        signs = self.signs[:, 0]
        point, found = root_of_one(signs * self.moved, *self.box, float(self.state.mu[0]), self.most)
        self.signed, self.projected = point[:, None], (signs * point)[:, None]
        return Root(np.array([found.mu]), found.iterations, found.residual, np.bool_(found.converged))

    def product(self, weights: np.ndarray) -> np.ndarray:
        """K times one column, (n, 1)."""
        return self.game.gram.matmat(weights) if self.symv is None else self.symv(weights[:, 0])[:, None]

    def accept(self, found: Root, flips: Flips) -> None:
        """As ever; the signed duals are at hand."""
        state, number = self.state, self.state.round + 1
        state.flip_count[flips.points[:, 0], 0] += 1
        state.dual, state.signs, state.mu = self.projected, self.signs, found.mu
        state.weight_sum = state.weight_sum + self.signed
        state.marks.note(number, state.weight_sum, self.game.rounds // 2)
        self.waiting.append((state.dual, state.signs))
