"""The operations of a round on a cluster: sums over workers in place of sums over rows.

A round exchanges, for each worker: the candidates (exchange 1), the product F'[v, w] of the size of the rank
(exchange 2), and scalars for the bias and the projection (exchange 3 and one more for each further pass over mu). The
flips are drawn here, from the same stream as on one machine; the round itself is the one of game/game.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from floral_learn.floral.dask_rows import ClusterRows
from floral_learn.game.arrays import NUMPY
from floral_learn.game.attackers import Flips, NoAttack, View
from floral_learn.game.dual import KKTSums
from floral_learn.game.game import Callback, play, play_round
from floral_learn.game.operations import Verdict
from floral_learn.game.problem import Game
from floral_learn.game.projections import Root, find_root
from floral_learn.game.state import GameState, History, Marks

CHECKPOINT_ROUNDS = 25
CHECKPOINT_SECONDS = 30.0


def solve_on_workers(game: Game, rows: ClusterRows, callback: Callback | None = None) -> GameState:
    """Play `game` on the workers that hold `rows`, from the last checkpoint of `rows` to its end."""
    rounds = ClusterRounds(game, rows)
    saved = time.monotonic()

    def after_round(state: GameState) -> bool:
        nonlocal saved
        if state.round % CHECKPOINT_ROUNDS == 0 or time.monotonic() - saved > CHECKPOINT_SECONDS:
            rows.checkpoint, saved = rounds.collect(), time.monotonic()
        return callback is not None and bool(callback(state))

    play(rounds, after_round)
    return rounds.collect()


class ClusterRounds:
    """`game.operations.Rows` whose rows lie on workers; this process holds scalars, and the history."""

    def __init__(self, game: Game, rows: ClusterRows) -> None:
        self.game, self.rows, self.columns = game, rows, game.games * game.width
        self.step: tuple[Root, Flips]
        self.looked = 0
        kept = rows.checkpoint
        if kept is not None:
            self.state = kept.copy(NUMPY)
        else:
            empty, zeros = np.zeros((0, self.columns)), np.zeros(self.columns)
            marks = Marks(Marks.stride_for(game.labels.shape[0] * self.columns, game.rounds))
            self.state = GameState(0, empty, empty, zeros, empty, zeros, empty, History(), True, marks)
        self.view = View(
            np.zeros((0, self.columns)), game.labels, game.n_classes, None, None, game.seeds, NUMPY, None, None
        )

    def round(self, number: int) -> Iterator[Verdict]:
        """Played by these operations."""
        return play_round(self, number)

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

    def multiply(self, number: int) -> None:
        """F' of both sets of weights, summed over the workers, back to each of them."""
        shares = _split(self.flips, self.rows.bounds)
        inner = np.sum(self.rows.each("product", own=shares), axis=0, dtype=np.float64)
        last = number > self.game.rounds
        eta = None if last else self.game.eta[number - 1]
        self.answers = self.rows.each("advance", inner, eta, self.state.mu)

    def judge(self) -> Verdict:
        """From the sums of all workers."""
        return Verdict.of(KKTSums.joined([closing for closing, _ in self.answers]), NUMPY)

    def descend(self, number: int) -> None:
        """Already made, with the products."""

    def project(self) -> Root:
        """The root of the sum over workers of phi."""
        first = [part for _, part in self.answers]
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
        """The workers take the point that they looked at last."""
        self.rows.each("accept")
        self.state.mu, self.step = found.mu, (found, flips)

    def add_up(self, verdict: Verdict) -> None:
        """The sums lie on the workers; the marks of the bias here."""
        state, game = self.state, self.game
        exact = game.average_from if game.average_from is not None else game.rounds // 2
        self.rows.each("add_up", state.round, exact)
        state.bias_sum = state.bias_sum + verdict.bias
        state.marks.note(state.round, None, state.bias_sum, exact)

    def movement(self) -> np.ndarray:
        """Mean squared change per round of the averaged decision values since the last look."""
        state = self.state
        wanted = self.game.average_from
        first, _, bias = state.marks.nearest(state.round // 2 if wanted is None else wanted)
        inner = np.sum(self.rows.each("average", state.round, first), axis=0, dtype=np.float64)
        found = self.rows.each("moved", inner, (state.bias_sum - bias) / max(state.round - first, 1))
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
