"""Algorithm 1 on a cluster: the coordinator's side of the game in core/game.py, step by step the same.

A round exchanges, for each worker: the candidates (exchange 1), the product F'[v, w] of the size of the rank
(exchange 2), and scalars for the bias and the projection (exchange 3 and one more for each further pass over mu). Sums
over workers replace sums over rows; the flips are drawn here, from the same stream as on one machine.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from floral_learn.core.arrays import NUMPY
from floral_learn.core.attackers import Flips, NoAttack, RandomizedTopK, View, _choose
from floral_learn.core.game import Callback, Game
from floral_learn.core.history import History
from floral_learn.core.projections import Projection
from floral_learn.core.state import GameState
from floral_learn.core.turn import averages
from floral_learn.defenses.dask_part import Closing
from floral_learn.defenses.dask_rows import ClusterRows

CHECKPOINT_ROUNDS = 25
CHECKPOINT_SECONDS = 30.0
_EPS = 2.0**-52


def solve_on_workers(game: Game, rows: ClusterRows, callback: Callback | None = None) -> GameState:
    """Play `game` on the workers that hold `rows`, from the last checkpoint of `rows` to the last round."""
    state = _restore(game, rows)
    saved = time.monotonic()
    while True:
        flips = _candidates(game, rows, state)
        inner = np.sum(rows.each("product", own=_split(flips, rows)), axis=0, dtype=np.float64)
        last = state.round >= game.rounds
        average = not state.closed and averages(game, state.round)
        eta = None if last else np.repeat(game.steps[state.round], game.width)
        answers = rows.each("step", inner, average, eta, state.mu)
        if not state.closed:
            _close(state, [closing for closing, _ in answers], average)
            if callback is not None and callback(state):
                break
            if state.round % CHECKPOINT_ROUNDS == 0 or time.monotonic() - saved > CHECKPOINT_SECONDS:
                rows.checkpoint, saved = _collect(rows, state), time.monotonic()
        if last:
            break
        projected = _project(rows, state.mu, [first for _, first in answers])
        state.round, state.mu, state.closed = state.round + 1, projected.mu, False
        state.history.open_round(game.steps[state.round - 1], projected.mu, projected.iterations, flips.points)
    return _collect(rows, state)


def _restore(game: Game, rows: ClusterRows) -> GameState:
    if rows.checkpoint is not None:
        return rows.checkpoint.copy(NUMPY)
    empty = np.zeros((0, game.width))
    return GameState(0, empty, empty, np.zeros(game.width), empty, np.zeros(game.width), 0, empty, History(), True)


def _collect(rows: ClusterRows, state: GameState) -> GameState:
    dual, signs, weight_sum, flip_count = rows.collect()
    whole = replace(state, dual=dual, signs=signs.astype(float), weight_sum=weight_sum, flip_count=flip_count)
    return whole.copy(NUMPY)


def _candidates(game: Game, rows: ClusterRows, state: GameState) -> Flips:
    """The flips of the next round: k of the B largest duals of all workers."""
    attacker: Any = NoAttack() if state.round < game.warm_up else game.attacker
    view = View(np.zeros((0, game.width)), game.labels, game.n_classes, None, None, game.seeds, NUMPY)
    if not isinstance(attacker, RandomizedTopK):
        return attacker(view, state.round + 1)
    found = rows.each("candidates")
    keys, named = (np.concatenate(arrays) for arrays in zip(*found))
    budget = np.broadcast_to(np.asarray(attacker.budget).reshape(-1), (game.width,))
    best = np.full((int(budget.max()), game.width), -1, dtype=np.int64)
    for column, count in enumerate(budget):
        order = np.argsort(-keys[:, column], kind="stable")[:count]
        best[: len(order), column] = named[order, column]
    flips = np.broadcast_to(attacker.flips, (1,))
    return _choose(best, flips, int(flips.max()), view, state.round + 1, attacker.flip_distribution)


def _split(flips: Flips, rows: ClusterRows) -> list[tuple[np.ndarray, np.ndarray]]:
    points, labels = flips.points.reshape(-1), flips.labels.reshape(-1)
    used = points >= 0
    points, labels = points[used], labels[used]
    part = np.searchsorted(rows.bounds, points, side="right") - 1
    return [(points[part == p] - rows.bounds[p], labels[part == p]) for p in range(len(rows.bounds) - 1)]


def _close(state: GameState, parts: list[Closing], average: bool) -> None:
    """Bias, objective and residual from the workers' sums, as core/dual.py has them from all rows."""
    free = np.sum([part.free for part in parts], axis=0)
    mean = np.sum([part.total for part in parts], axis=0) / np.where(free > 0, free, 1)
    most, least = np.max([part.most for part in parts], axis=0), np.min([part.least for part in parts], axis=0)
    lower = np.where(most > -np.inf, most, np.where(least < np.inf, least, 0.0))
    upper = np.where(least < np.inf, least, lower)
    bias = np.where(free > 0, mean, (lower + upper) / 2)
    both = (most > -np.inf) & (least < np.inf)
    residual = np.where(both, lower - upper, 0.0).clip(0, None)
    state.history.close_round(bias, residual, np.sum([part.objective for part in parts], axis=0))
    if average:
        state.bias_sum = state.bias_sum + bias
        state.averaged += 1
    state.closed = True


def _project(rows: ClusterRows, mu: np.ndarray, first: list[Any], max_iter: int = 200) -> Projection:
    """The root mu of sum over workers of phi(mu): `project_exact`, with the workers' sums for its passes."""
    left, right = np.min([part[0] for part in first], axis=0), np.max([part[1] for part in first], axis=0)
    inside = np.minimum(np.maximum(mu, left), right)
    sums = [part[2:] for part in first] if np.array_equal(inside, mu) else rows.each("evaluate", inside)
    mu = inside
    for iterations in range(1, max_iter + 1):
        phi, slope, scale = (np.sum(values, axis=0) for values in zip(*sums))
        width = right - left
        done = (np.abs(phi) <= 32 * _EPS * scale) | (width <= 2 * _EPS * (np.abs(left) + np.abs(right)))
        if done.all():
            break
        left, right = np.where(phi > 0, mu, left), np.where(phi < 0, mu, right)
        newton = mu + phi / np.where(slope > 0, slope, 1)
        trusted = (slope > 0) & (newton >= left) & (newton <= right) & (iterations <= 20 or iterations % 2 == 0)
        mu = np.where(done, mu, np.where(trusted, newton, (left + right) / 2))
        sums = rows.each("evaluate", mu)
    return Projection(np.zeros((0, len(mu))), mu, iterations, np.abs(phi), done)
