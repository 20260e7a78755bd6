"""Rounds of a game as CUDA graphs: recorded once, then replayed with two launches instead of 150.

A round of a small game takes the device a fraction of a millisecond and the host three, for handing over its many small
operations. What changes from round to round (duals, labels, the number of the round) lies in buffers at fixed places;
the round's number is on the device too, so that steps, draws and places in the history follow it by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from floral_learn.game.arrays import Array
from floral_learn.game.attackers import Flips, LargestLoss
from floral_learn.game.operations import LocalRows, Verdict
from floral_learn.game.projections import Root
from floral_learn.game.state import GameState

OPENING = 3  # rounds played one by one first: they compile the kernels and fill the backend's constants
LEAST = 20  # recording takes as long as some twenty rounds
MOST_BYTES = 4_000_000_000  # of the buffer for all flips
_BUFFERS = ("dual", "signs", "mu")


def recordable(game: Any) -> bool:
    """Whether every operation of a round stays on the device, and recording pays."""
    backend = game.gram.backend
    flips = int(np.max(game.attacker.flips, initial=0)) * game.keep_flips
    return (
        backend.kernels is not None
        and game.weight is None
        and game.projection == "exact"
        and not isinstance(game.attacker, LargestLoss)
        and game.gram.recordable
        and game.rounds >= OPENING + LEAST
        and game.rounds * 4 * flips * game.games <= MOST_BYTES
    )


class GraphRows(LocalRows):
    """The operations of `LocalRows`, recorded: `play_round` runs once under the recorder, each half a graph.

    The arrays of the state that a callback sees are written over by the next round.
    """

    def __init__(self, game: Any, state: GameState) -> None:
        super().__init__(game, state)
        self.record_at = max(state.round, game.warm_up) + OPENING
        self.graphs: tuple[Any, Any] | None = None

    def round(self, number: int) -> Iterator[Verdict]:
        """One by one at first, at the end, and where too few rounds are left; else from the graphs."""
        last = number > self.game.rounds
        if self.graphs is None and number > self.record_at and self.game.rounds - number >= LEAST:
            self._record(number)
        if self.graphs is None or last:
            yield from super().round(number)
            return
        place = number - self.first
        self.graphs[0].replay()
        yield Verdict(*(self.log[name][place] for name in ("bias", "residual", "objective")))
        self.graphs[1].replay()
        root = Root(self.log["mu"][place], self.log["passes"][place], None, self.log["converged"][place])
        self.step = root, Flips(self.log["flips"][place], None)

    def _record(self, number: int) -> None:
        from floral_learn.game.game import play_round

        torch, backend, state = self.backend.xp, self.backend, self.state
        for name in _BUFFERS:
            setattr(state, name, backend.copy(getattr(state, name)))
        self.first = number
        self.number = torch.full((1,), number, dtype=backend.int64, device=backend.device)
        flips = len(super().attack(number).points) if self.game.keep_flips else 0
        self.log = self._buffers(self.game.rounds - number + 1, flips)
        recorded = play_round(self, self.number)
        looking, moving = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(looking):
            next(recorded)
        with torch.cuda.graph(moving, pool=looking.pool()):
            for _ in recorded:
                pass
        self.graphs = looking, moving

    def _buffers(self, rounds: int, flips: int) -> dict[str, Array]:
        """Room for the history, one row per round."""
        torch, device = self.backend.xp, self.backend.device
        numbers = {"dtype": torch.float64, "device": device}
        columns = self.state.dual.shape[1]
        names = ("bias", "residual", "objective", "mu")
        return {name: torch.zeros((rounds, columns), **numbers) for name in names} | {
            "passes": torch.zeros(rounds, dtype=torch.int32, device=device),
            "converged": torch.zeros(rounds, dtype=torch.bool, device=device),
            "flips": torch.zeros((rounds, flips, self.game.games), dtype=torch.int32, device=device),
        }

    def _write(self, **values: Array) -> None:
        place = self.number - self.first
        for name, value in values.items():
            if self.log[name].numel():
                self.log[name].index_copy_(0, place, value.to(self.log[name].dtype)[None])

    def step_of(self, number: Any) -> Array:
        """eta of round `number`, which may lie on the device."""
        if isinstance(number, int):
            return super().step_of(number)
        return self.game.eta.index_select(0, number - 1)

    def judge(self) -> Verdict:
        """As ever, and into the log while recording."""
        verdict = super().judge()
        if self.backend.recording():
            self._write(bias=verdict.bias, residual=verdict.residual, objective=verdict.objective)
        return verdict

    def accept(self, found: Root, flips: Flips) -> None:
        """Move on; in place while recording."""
        if not self.backend.recording():
            super().accept(found, flips)
            return
        state = self.state
        if len(flips.points):
            self.backend.count(state.flip_count, flips.points)
        self._write(mu=found.mu, passes=found.iterations, converged=found.converged.all(), flips=flips.points)
        state.dual.copy_(self.projected)
        state.signs.copy_(self.signs)
        state.mu.copy_(found.mu)
        self.number.add_(1)
