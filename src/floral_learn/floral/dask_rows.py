"""Rows that lie on the workers of a dask cluster: one actor a worker, a lost worker replaced by the others.

`ClusterRows` is to the game what a matrix of rows is on one machine. What the workers hold can be built again from the
dask graph of X and y, from the pivots of the factor and from the last checkpoint; `recovering` does so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from floral_learn.floral.dask_part import GamePart
from floral_learn.game.low_rank import LowRankGram, Parts
from floral_learn.game.problem import Game
from floral_learn.game.row_blocks import Moments, RowBlocks, RowsRefused
from floral_learn.game.state import GameState, Marks

_PATIENCE = 1.0  # seconds after which a silent worker is looked for
_GONE_WITHIN = 5.0  # seconds in which the scheduler notices that a worker is gone
_MOST_LOSSES = 20
T = TypeVar("T")


class WorkerLost(Exception):
    """A worker is gone, and with it what it held."""


class ClusterRows(RowBlocks, Parts):
    """Rows and labels on workers.

    Parameters
    ----------
    client : distributed.Client
    chunks : sequence of (delayed, delayed)
        Blocks of X and of y, in order.
    names : list of str, optional
        Of the columns.
    """

    def __init__(self, client: Any, chunks: Sequence[tuple[Any, Any]], names: list[str] | None = None) -> None:
        self.client, self.chunks, self.names = client, list(chunks), names
        self.classes: np.ndarray | None = None
        self.gram: LowRankGram | None = None
        self.game: Game | None = None
        self.checkpoint: GameState | None = None
        self.losses = 0
        self.recovering(self._read)

    def recovering(self, work: Callable[[], T]) -> T:
        """``work()``; when a worker is lost on the way, once more with what the others rebuilt."""
        lost = False
        while True:
            try:
                if lost:
                    self._read()
                    self._rebuild()
                return work()
            except WorkerLost:
                lost = True
                self.losses += 1
                if self.losses > _MOST_LOSSES:
                    raise RuntimeError(f"workers were lost {self.losses} times during this fit: giving up") from None

    def each(self, method: str, *shared: Any, own: Sequence[tuple[Any, ...]] | None = None, **named: Any) -> list[Any]:
        """Answers of ``part.method(*own[p], *shared, **named)``, one per part, in order."""
        calls = [getattr(part, method)(*(own[p] if own else ()), *shared, **named) for p, part in enumerate(self.parts)]
        return [self._answer(call, worker) for call, worker in zip(calls, self.workers)]

    def shares(self, *arrays: Any) -> list[tuple[Any, ...]]:
        """Arguments for `each`: of each array the rows of the part; None stays None."""
        return [
            tuple(None if array is None else array[start:stop] for array in arrays)
            for start, stop in zip(self.bounds[:-1], self.bounds[1:])
        ]

    def moments(self, weight: np.ndarray | None = None) -> Moments:
        """Mean and variance of the features."""
        found = self.each("moments", own=self.shares(weight))
        total = found[0]
        for part in found[1:]:
            total = total + part
        return total

    def blocks(self) -> Iterator[tuple[int, Any]]:
        """Not here: the rows do not leave the workers."""
        raise TypeError("the rows lie on the workers")

    def take(self, rows: np.ndarray) -> Any:
        """The given rows, in the given order."""
        part = np.searchsorted(self.bounds, rows, side="right") - 1
        own = [(rows[part == p] - self.bounds[p],) for p in range(len(self.parts))]
        found = self.each("take", own=own)
        back = np.argsort(np.argsort(part, kind="stable"), kind="stable")
        return (sparse.vstack(found).tocsr() if self.sparse else np.concatenate(found))[back]

    def encode(self, classes: np.ndarray) -> np.ndarray:
        """Class numbers of all labels."""
        self.classes = classes
        return np.concatenate(self.each("encode", classes)).astype(np.int64)

    def begin(self, game: Game, gram: Any) -> None:
        """Start `game` on every part; `gram` is the operator of all rows."""
        self.gram, self.game = gram, game
        stride = Marks.stride_for(self.shape[0] * game.games * game.width, game.rounds)
        own = self.shares(
            game.labels, np.broadcast_to(game.cap, (self.shape[0], game.cap.shape[1])), game.weight, game.eligible
        )
        shared = (self.shape[0], game.n_classes, game.seeds, game.attacker, stride)
        self.each("begin_game", *shared, own=own)
        kept = self.checkpoint
        if kept is not None:
            arrays = (kept.dual, kept.signs, kept.weight_sum, kept.flip_count, *kept.marks.weights)
            self.each("load", own=self.shares(*arrays), rounds=kept.marks.rounds)

    def collect(self) -> tuple[np.ndarray, ...]:
        """dual, signs, weight_sum, flip_count and marked sums of all rows."""
        return tuple(np.concatenate(arrays) for arrays in zip(*self.each("state")))

    def _read(self) -> None:
        """Put a part on every worker that is there, with its share of the chunks."""
        workers = sorted(self._alive())
        if not workers:
            raise RuntimeError("the dask cluster has no workers" + (" left" if self.losses else ""))
        groups = np.array_split(np.arange(len(self.chunks)), min(len(workers), len(self.chunks)))
        self.workers = workers[: len(groups)]
        self.parts: list[Any] = []  # what is left of parts that were here before is let go first
        # Chunks are bound to no worker: a chunk that is lost with its worker is computed again elsewhere.
        count = len(self.chunks)
        futures = self.client.compute([chunk[side] for side in (0, 1) for chunk in self.chunks])
        rows, labels = futures[:count], futures[count:]
        made = [
            self.client.submit(
                GamePart,
                [rows[i] for i in group],
                [labels[i] for i in group],
                actor=True,
                pure=False,
                workers=[worker],
                allow_other_workers=False,
            )
            for worker, group in zip(self.workers, groups)
        ]
        self.parts = [self._answer(future, worker) for future, worker in zip(made, self.workers)]
        counts, widths, types, sparse_parts, labels_found = zip(*self.each("overview"))
        if len(set(widths)) > 1:
            raise ValueError(f"the blocks of X have different numbers of columns: {sorted(set(widths))}")
        self.bounds = np.cumsum([0, *counts])
        self.shape, self.dtype = (int(self.bounds[-1]), widths[0]), np.result_type(*types)
        self.sparse = bool(sparse_parts[0])
        self.labels_found = np.unique(np.concatenate(labels_found))

    def _rebuild(self) -> None:
        """Bring fresh parts to where the lost ones were at the last checkpoint."""
        if self.classes is not None:
            self.each("encode", self.classes)
        if self.gram is not None and self.game is not None:
            starts = [(int(start),) for start in self.bounds[:-1]]
            self.each("replay_factor", self.gram.kernel, self.gram.dtype, self.gram.blocks, own=starts)
            self.begin(self.game, self.gram)

    def _alive(self) -> set[str]:
        return set(self.client.scheduler_info(n_workers=-1)["workers"])

    def _answer(self, call: Any, worker: str) -> Any:
        while True:
            try:
                return call.result(timeout=_PATIENCE)
            except TimeoutError:
                if worker not in self._alive():
                    raise WorkerLost(worker) from None
            except Exception as error:
                if self._is_gone(worker, error):
                    raise WorkerLost(worker) from error
                raise

    def _is_gone(self, worker: str, error: Exception) -> bool:
        """Whether `error` is that of a lost worker rather than one of ours."""
        if isinstance(error, MemoryError | TypeError | RowsRefused):
            return False
        until = time.monotonic() + _GONE_WITHIN
        while time.monotonic() < until:
            if worker not in self._alive():
                return True
            time.sleep(0.1)
        return False
