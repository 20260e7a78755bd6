"""Rounds of a game as a CUDA graph: recorded once, then replayed with two launches instead of 150.

A round of a small game takes the device a fraction of a millisecond and the host three, for handing over its many small
operations. What changes from round to round (duals, labels, the number of the round) lies in buffers at fixed places;
the round's number is on the device too, so that steps, draws and places in the history follow it by themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_learn.core.arrays import Array
from floral_learn.core.attackers import NoAttack, RandomizedTopK, TopK, View
from floral_learn.core.state import GameState
from floral_learn.core.turn import answer, averages, judge, look_ahead

OPENING = 3  # rounds played one by one first: they compile the kernels and fill the backend's constants
LEAST = 20  # recording takes as long as some twenty rounds
MOST_BYTES = 4_000_000_000  # of the buffer for all flips
_NUMBERS = ("bias", "residual", "objective", "mu")


@dataclass
class _Log:
    """Buffers for the history, one row a round."""

    bias: Array
    residual: Array
    objective: Array
    mu: Array
    passes: Array
    flips: Array

    def write(self, row: Array, **values: Array) -> None:
        for name, value in values.items():
            place = getattr(self, name)
            if not place.numel():
                continue
            place.index_copy_(0, row, value.to(place.dtype)[None])


def recordable(game: Any) -> bool:
    """Whether every operation of a round stays on the device."""
    backend = game.gram.backend
    return (
        getattr(backend, "kernels", None) is not None
        and game.weight is None
        and game.projection == "exact"
        and isinstance(game.attacker, (NoAttack, RandomizedTopK, TopK))
        and game.gram.recordable
        and game.rounds * 4 * _most_flips(game) * game.games <= MOST_BYTES
    )


def _most_flips(game: Any) -> int:
    return int(np.max(getattr(game.attacker, "flips", 0), initial=0))


def play_recorded(
    game: Any, view: dict[str, Any], state: GameState, callback: Callable[[GameState], Any] | None
) -> bool:
    """Play from `state` (attacked, its round not closed) up to the last round, not closed; true if `callback` ended it.

    The arrays of the state that `callback` sees are written over by the next round.
    """
    backend, torch = game.gram.backend, game.gram.backend.xp
    first, left = state.round, game.rounds - state.round
    for name in ("dual", "signs", "mu", "weight_sum", "bias_sum"):
        setattr(state, name, backend.copy(getattr(state, name)))
    number = torch.full((1,), first, dtype=backend.int64, device=backend.device)
    shares = [float(averages(game, first + i)) for i in range(left)]
    share_of = backend.array(shares, backend.float64)
    flips = len(game.attacker(View(dual=state.dual, **view), first + 1).points)
    log = _buffers(game, left, state.dual.shape[1], flips)
    kept: dict[str, Any] = {}

    def look() -> None:
        row = number - first
        seen = View(dual=state.dual, **view)
        flips, ahead, now, product = look_ahead(game, game.attacker, seen, state.signs, number + 1)
        found, value = judge(game, now, state.dual, state.signs)
        share = share_of.index_select(0, row)
        state.weight_sum.add_(share * (state.signs * state.dual))
        state.bias_sum.add_(share * found.bias)
        log.write(row, bias=found.bias, residual=found.residual, objective=value)
        kept.update(points=flips.points, signs=ahead, product=product)

    def move() -> None:
        eta = game.eta.index_select(0, number)
        projected = answer(game, state.dual, kept["signs"], kept["product"], eta, state.mu)
        if len(kept["points"]):
            backend.count(state.flip_count, kept["points"])
        log.write(number - first, mu=projected.mu, passes=projected.iterations, flips=kept["points"])
        state.dual.copy_(projected.dual)
        state.signs.copy_(kept["signs"])
        state.mu.copy_(projected.mu)
        number.add_(1)

    looking, moving = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(looking):
        look()
    with torch.cuda.graph(moving, pool=looking.pool()):
        move()
    for i in range(left):
        looking.replay()
        state.averaged += int(shares[i])
        state.closed = True
        state.history.close_round(log.bias[i], log.residual[i], log.objective[i])
        if callback is not None and callback(state):
            return True
        moving.replay()
        state.round += 1
        state.closed = False
        state.history.open_round(game.steps[state.round - 1], log.mu[i], log.passes[i], log.flips[i])
    return False


def _buffers(game: Any, rounds: int, columns: int, flips: int) -> _Log:
    torch, device = game.gram.backend.xp, game.gram.backend.device
    return _Log(
        **{name: torch.zeros((rounds, columns), dtype=torch.float64, device=device) for name in _NUMBERS},
        passes=torch.zeros(rounds, dtype=torch.int32, device=device),
        flips=torch.zeros((rounds, flips, game.games), dtype=torch.int32, device=device),
    )
