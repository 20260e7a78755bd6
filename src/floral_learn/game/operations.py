"""What a round asks of the rows: flips, products with K, sums over rows, the root of the projection.

`game/game.py` has the round and the loop around it, once. Where the rows are decides who answers: `LocalRows` for one
process (numpy, or torch on any device), `GraphRows` for rounds recorded as a CUDA graph, `ClusterRounds` for the
workers of a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from floral_learn.game.arrays import NUMBERS, Array, outer
from floral_learn.game.attackers import Flips, View, tie_order
from floral_learn.game.dual import KKTSums, gradient, kkt_sums, optimality_of
from floral_learn.game.projections import PROJECTIONS, Root
from floral_learn.game.state import GameState

if TYPE_CHECKING:
    from floral_learn.game.problem import Game


@dataclass(frozen=True)
class Verdict:
    """Bias, KKT residual and objective of the round just played, (columns,) each."""

    bias: Array
    residual: Array
    objective: Array

    @classmethod
    def of(cls, sums: KKTSums, backend: Any) -> Verdict:
        """From sums over all rows."""
        if backend.name == "numpy" and len(sums.objective) == 1:
            number = optimality_of(sums.numbers(), NUMBERS)
            return cls(np.array([number.bias]), np.array([number.residual]), sums.objective)
        found = optimality_of(sums, backend.xp)
        return cls(found.bias, found.residual, sums.objective)


class Rows(Protocol):
    """Operations that a round is written in."""

    game: Game
    state: GameState  # where the game stands
    step: tuple[Root, Flips]  # of the round just played

    def round(self, number: int) -> Iterator[Verdict]:
        """The round `number`, played by these operations (`game.game.play_round`)."""

    def attack(self, number: Any) -> Flips:
        """The attacker's flips for round `number`, from the duals of the round before."""

    def relabel(self, flips: Flips) -> None:
        """The given labels with `flips` applied become those of the round."""

    def multiply(self, number: Any) -> None:
        """One pass over K: with the weights of the round before, and with these under the new labels."""

    def judge(self) -> Verdict:
        """The round before, from the first of the two products."""

    def descend(self, number: Any) -> None:
        """z = lam - eta_t (y_t * K (y_t * lam) - 1), from the second product."""

    def project(self) -> Root:
        """The root mu of y_t' clip(z - mu y_t, 0, C) = 0."""

    def accept(self, found: Root, flips: Flips) -> None:
        """The projected z becomes the duals of the round; `step` holds both for the history."""

    def add_up(self, verdict: Verdict) -> None:
        """Add the round before to the sums that the averaged model is made of, and mark them if it is time."""

    def movement(self) -> np.ndarray:
        """Mean squared change per round of the averaged decision values since the last call, (columns,).

        Infinite at the first call.
        """


class LocalRows:
    """All rows in this process."""

    def __init__(self, game: Game, state: GameState) -> None:
        self.game, self.state, self.backend = game, state, game.gram.backend
        self.view = view_of(game)
        self.step: tuple[Root, Flips]

    def round(self, number: int) -> Iterator[Verdict]:
        """Play it here."""
        from floral_learn.game.game import play_round

        return play_round(self, number)

    def attack(self, number: Any) -> Flips:
        """The flips for round `number`."""
        attacker, state = self.game.attacker_of(number), self.state
        scores = None
        if attacker.needs_scores:
            now = self.game.gram.matmat(state.signs * state.dual)
            scores = now + Verdict.of(self.sums(now), self.backend).bias
        self.view.dual, self.view.scores = state.dual, scores
        return attacker(self.view, number)

    def relabel(self, flips: Flips) -> None:
        """Labels of the round."""
        self.signs = self.game.signs(flips)

    def multiply(self, number: Any) -> None:
        """Both products; one where the game is over, none where all duals are zero."""
        state, gram = self.state, self.game.gram
        if isinstance(number, int) and number == 1 and not bool((state.dual != 0).any()):
            self.now = self.ahead = state.dual
        elif isinstance(number, int) and number > self.game.rounds:
            self.now = gram.matmat(state.signs * state.dual)
        else:
            both = gram.matmat(self.weights())
            self.now, self.ahead = both[:, : state.dual.shape[1]], both[:, state.dual.shape[1] :]

    def weights(self) -> Array:
        """Signed duals under the labels of the round before and under the new ones, side by side."""
        state = self.state
        return self.backend.side_by_side(state.signs * state.dual, self.signs * state.dual)

    def judge(self) -> Verdict:
        """Bias, residual and objective of the round before."""
        return Verdict.of(self.sums(self.now), self.backend)

    def sums(self, product: Array) -> KKTSums:
        """What closes the round before, from its product with K."""
        game, state = self.game, self.state
        return kkt_sums(product, state.dual, state.signs, game.cap, self.backend, game.weight)

    def descend(self, number: Any) -> None:
        """The gradient step."""
        self.move(self.step_of(number))

    def move(self, eta: Array) -> None:
        """A step of `eta` (columns,) down the gradient; a row of weight w moves w times as far."""
        weight = self.game.weight
        eta = eta if weight is None else outer(weight, eta)
        self.moved = self.state.dual - eta * gradient(self.ahead, self.signs)

    def step_of(self, number: Any) -> Array:
        """eta of round `number`, (columns,)."""
        return self.game.eta[number - 1]

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
        self.step = found, flips

    def add_up(self, verdict: Verdict) -> None:
        """Sums over all rounds, and marks on the way."""
        state = self.state
        state.weight_sum = state.weight_sum + state.signs * state.dual
        state.bias_sum = state.bias_sum + verdict.bias
        self.mark(state.weight_sum, state.bias_sum)

    def mark(self, weights: Array, bias: Array) -> None:
        """Keep the sums of this round, if its turn has come."""
        exact = self.game.average_from if self.game.average_from is not None else self.game.rounds // 2
        self.state.marks.note(self.state.round, weights, bias, exact)

    def movement(self) -> np.ndarray:
        """Mean squared change per round of the averaged decision values since the last look, over the rows that
        play.
        """
        _, weights, bias = self.state.averages(self.game.average_from)
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
