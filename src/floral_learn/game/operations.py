"""What a round asks of the rows: flips, products with K, sums over rows, the root of the projection.

`game/game.py` has the loop, once. Where the rows are decides who answers: `LocalRows` for one process (numpy, or torch
on any device), `ClusterRounds` for the workers of a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from floral_learn.game.arrays import Array, outer
from floral_learn.game.attackers import Flips, View, tie_order
from floral_learn.game.dual import KKTSums, gradient, kkt_sums, optimality_of
from floral_learn.game.projections import PROJECTIONS, Root
from floral_learn.game.state import GameState

if TYPE_CHECKING:
    from floral_learn.game.problem import Game

WAITING = 64  # rounds closed at once at most ...
WAITING_NUMBERS = 2**14  # ... and fewer where their duals would be more numbers than a cache holds ...
WAITING_TOGETHER = {"numpy": 2**18, "torch": 2**24}  # ... or, where one pass over K serves all, than memory can spare


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

    def movement(self) -> np.ndarray:
        """Mean squared change per round of the averaged decision values since the last call, (columns,).

        Infinite at the first call.
        """


class LocalRows:
    """All rows in this process."""

    def __init__(self, game: Game, state: GameState) -> None:
        self.game, self.state, self.backend = game, state, game.gram.backend
        self.view = view_of(game)
        self.waiting: list[tuple[Array, Array]] = []  # duals and labels of rounds that are not closed
        n, columns = state.dual.shape
        # A product of several columns, or one on a GPU, spends its time on reading K; it may as well serve many rounds.
        self.together = columns > 1 or self.backend.kernels is not None
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
        state = self.state
        if len(flips.points):
            self.backend.count(state.flip_count, flips.points)
        state.dual, state.signs, state.mu = self.projected, self.signs, found.mu
        self.add_up(state.round + 1)

    def add_up(self, number: int) -> None:
        """Add round `number` to the sums that the averaged model is made of, and mark them if it is time."""
        state = self.state
        state.weight_sum = state.weight_sum + state.signs * state.dual
        state.marks.note(number, state.weight_sum, self.game.rounds // 2)
        self.waiting.append((state.dual, state.signs))

    def full(self) -> bool:
        """Whether it is time to close."""
        return len(self.waiting) >= self.room

    def close(self) -> None:
        """All rounds that wait, at once; a game of one column has the same bits in any company."""
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

    def movement(self) -> np.ndarray:
        """Mean squared change per round of the averaged decision values since the last look, over the rows that
        play.
        """
        _, weights, bias = self.state.averages(self.backend)
        kept = self.state.extra  # there, so that a game that is continued ends where it would have ended
        before, at = kept.get("seen"), kept.get("seen_at")
        scores = self.game.gram.matmat(weights) + bias
        kept["seen"], kept["seen_at"] = scores, self.backend.array(np.array([self.state.round]))
        if before is None or at is None:
            return np.full(scores.shape[1], np.inf)
        total, count = self.backend.numpy(self.squares(scores - before))
        return total / np.maximum(count, 1) / (self.state.round - int(at[0]))

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
