"""The operations of a round on a cluster: sums over workers in place of sums over rows.

A round exchanges, for each worker: the candidates (exchange 1), the product F'v of the size of the rank (exchange 2),
and scalars for the projection (exchange 3 and one more for each further pass over mu). Closing some rounds takes two
more, however many they are. The flips are drawn here, from the same stream as on one machine; the round itself is the
one of game/game.py.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from floral_learn.floral.dask_rows import ClusterRows
from floral_learn.game.arrays import NUMPY
from floral_learn.game.attackers import Flips, NoAttack, View
from floral_learn.game.dual import KKTSums, optimality_of
from floral_learn.game.game import Callback, play
from floral_learn.game.problem import Game
from floral_learn.game.projections import Root, find_root
from floral_learn.game.state import GameState, History, Marks

CHECKPOINT_ROUNDS = 25
CHECKPOINT_SECONDS = 30.0


def solve_on_workers(game: Game, rows: ClusterRows, callback: Callback | None = None) -> GameState:
    """Play `game` on the workers that hold `rows`, from the last checkpoint of `rows` to its end."""
    rounds = ClusterRounds(game, rows)
    play(rounds, callback)
    return rounds.collect()


class ClusterRounds:
    """`game.operations.Rows` whose rows lie on workers; this process holds scalars, and the history."""

    def __init__(self, game: Game, rows: ClusterRows) -> None:
        self.game, self.rows, self.columns = game, rows, game.games * game.width
        self.looked = 0
        self.saved = time.monotonic()
        kept = rows.checkpoint
        if kept is not None:
            self.state = kept.copy(NUMPY)
        else:
            empty = np.zeros((0, self.columns))
            marks = Marks(Marks.stride_for(game.labels.shape[0] * self.columns, game.rounds))
            self.state = GameState(0, empty, empty, np.zeros(self.columns), empty, empty, History(), marks)
        self.closed = self.state.round
        self.view = View(
            np.zeros((0, self.columns)), game.labels, game.n_classes, None, None, game.seeds, NUMPY, None, None
        )

    def attack(self, number: int) -> Flips:
        """k of the candidates of all workers."""
        attacker = self.game.attacker_of(number)
        lists = self.rows.each("candidates", isinstance(attacker, NoAttack))
        merged = [_largest([part[i] for part in lists]) for i in range(len(lists[0]))]
        candidates = np.concatenate(merged) if merged else np.zeros((0, self.columns), dtype=np.int64)
        return attacker.choose(candidates, self.view, number)

    def relabel(self, flips: Flips) -> None:
        """Each worker flips its own rows."""
        self.flips = flips

    def descend(self, number: int) -> None:
        """F' of the weights, summed over the workers, back to each of them for its step and a first look at phi."""
        shares = _split(self.flips, self.rows.bounds)
        inner = np.sum(self.rows.each("product", own=shares), axis=0, dtype=np.float64)
        self.answers = self.rows.each("advance", inner, self.game.eta[number - 1], self.state.mu)

    def project(self) -> Root:
        """The root of the sum over workers of phi."""
        first = self.answers
        left, right = np.min([part[0] for part in first], axis=0), np.max([part[1] for part in first], axis=0)
        known = np.array(self.state.mu)

        def sums(mu: np.ndarray) -> tuple[np.ndarray, ...]:
            # The workers have looked at the former mu on their way.
            at_hand = [part[2:] for part in first] if np.array_equal(mu, known) else None
            known[:] = np.nan
            parts = self.rows.each("phi", mu) if at_hand is None else at_hand
            return tuple(np.sum(values, axis=0) for values in zip(*parts))

        return find_root(sums, left, right, self.state.mu, np)

    def accept(self, found: Root, flips: Flips) -> None:
        """The workers take the point that they looked at last; the marks of their sums are counted here, too."""
        state, number = self.state, self.state.round + 1
        self.rows.each("accept", number, self.game.rounds // 2)
        state.mu = found.mu
        state.marks.note(number, None, self.game.rounds // 2)

    def full(self) -> bool:
        """Whether it is time for a checkpoint, which wants every round closed."""
        late = time.monotonic() - self.saved > CHECKPOINT_SECONDS
        return self.state.round - self.closed >= CHECKPOINT_ROUNDS or late

    def close(self) -> None:
        """From the sums of all workers; then a checkpoint, if it is time."""
        waiting = self.state.round - self.closed
        inner = np.sum(self.rows.each("closing_product"), axis=0, dtype=np.float64)
        sums = KKTSums.joined(self.rows.each("closing", inner))
        parts = *optimality_of(sums), sums.objective
        self.state.history.close_rounds(*(part.reshape(waiting, -1) for part in parts))
        self.closed = self.state.round
        late = time.monotonic() - self.saved > CHECKPOINT_SECONDS
        if self.state.round % CHECKPOINT_ROUNDS == 0 or late:
            self.rows.checkpoint, self.saved = self.collect(), time.monotonic()

    def movement(self) -> np.ndarray:
        """Mean squared change per round of the averaged decision values since the last look."""
        state = self.state
        first, _ = state.marks.nearest(state.round // 2)
        inner = np.sum(self.rows.each("average", state.round, first), axis=0, dtype=np.float64)
        found = self.rows.each("moved", inner, state.history.mean_bias(first, NUMPY))
        rounds, self.looked = state.round - self.looked, state.round
        if found[0] is None:
            return np.full(self.columns, np.inf)
        total, count = np.sum(found, axis=0)
        return total / np.maximum(count, 1) / rounds

    def collect(self) -> GameState:
        """The state with what the workers hold."""
        dual, signs, weight_sum, flip_count, *marked = self.rows.collect()
        marks = replace(self.state.marks, weights=marked)
        whole = replace(
            self.state, dual=dual, signs=signs.astype(float), weight_sum=weight_sum, flip_count=flip_count, marks=marks
        )
        return whole.copy(NUMPY)


def _largest(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> np.ndarray:
    """Row numbers of the largest keys of each column among those that the workers named, (places, c), -1 where
    empty.
    """
    keys, rows = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    counts = parts[0][2]
    best = np.full((int(counts.max()), keys.shape[1]), -1, dtype=np.int64)
    for column, count in enumerate(counts):
        order = np.argsort(-keys[:, column], kind="stable")[:count]
        best[: len(order), column] = rows[order, column]
    return best


def _split(flips: Flips, bounds: np.ndarray) -> list[tuple[Any, ...]]:
    """The flips of each part: rows as numbers of the part, -1 for those of others."""
    parts = []
    for start, stop in pairwise(bounds):
        here = (flips.points >= start) & (flips.points < stop)
        parts.append((np.where(here, flips.points - start, -1), flips.labels))
    return parts
