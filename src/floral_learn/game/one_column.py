"""One game of two classes in numpy: the operations of `LocalRows`, the same bits, with a third of the calls.

Below a few thousand rows a round is a hundred calls to numpy that take longer than the numbers in them. Here columns
are plain vectors, what no round changes is made once, and the projection is computed in Python's own numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from floral_learn.game.arrays import NUMPY, drawn, mix, stream
from floral_learn.game.attackers import CHOICE, Flips, RandomizedTopK
from floral_learn.game.gram import DenseGram
from floral_learn.game.operations import LocalRows
from floral_learn.game.projections import Root, root_of_one
from floral_learn.game.state import GameState

if TYPE_CHECKING:
    from floral_learn.game.problem import Game

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
    """The rows of a single game of two classes, up to `MOST_ROWS` of them."""

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
