"""Rows that lie on the workers of a dask cluster: one actor a worker, a lost worker replaced by the others.

`ClusterRows` is to the game what a matrix of rows is on one machine. What the workers hold can be built again from the
dask graph of X and y, from the pivots of the factor and from the last checkpoint; `recovering` does so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from floral_learn.game.arrays import NUMPY, draw
from floral_learn.game.attackers import TIES, Attacker, Flips, NoAttack
from floral_learn.game.dual import KKTSums
from floral_learn.game.factor_part import FactorPart, PivotBlock
from floral_learn.game.game import Game
from floral_learn.game.kernels import Kernel
from floral_learn.game.low_rank import LowRankGram, Parts
from floral_learn.game.operations import LocalRows
from floral_learn.game.projections import box, bracket, phi_sums
from floral_learn.game.row_blocks import ArrayBlocks, Moments, RowBlocks, RowsRefused
from floral_learn.game.state import GameState, Marks

_RANKED_AT_ONCE = 2**20  # rows whose random order is looked up at a time


class GamePart(FactorPart):
    """Rows ``start .. start + n`` of a game, their factor, duals, labels and flips: a dask actor on a worker.

    Its answers have the size of the rank, of a scalar per column, or of the candidates; only `state` (a checkpoint) has
    the size of its rows.
    """

    def __init__(self, rows: Sequence[Any], labels: Sequence[Any]) -> None:
        matrices = [_matrix(chunk) for chunk in rows]
        given = [np.asarray(chunk).reshape(-1) for chunk in labels]
        for matrix, some in zip(matrices, given):
            if matrix.shape[0] != len(some):
                raise RowsRefused(f"a block of X has {matrix.shape[0]} rows and the block of y beside it {len(some)}")
        super().__init__(ArrayBlocks(matrices))
        self.given = np.concatenate(given)

    def overview(self) -> tuple[int, int, Any, bool, np.ndarray]:
        """Rows, columns, type, whether rows are sparse, and the distinct labels."""
        if self.given.dtype.kind == "f" and not np.isfinite(self.given).all():
            raise RowsRefused("Input y contains NaN or infinity")
        return (*self.X.shape, self.X.dtype, self.X.sparse, np.unique(self.given))

    def encode(self, classes: np.ndarray) -> np.ndarray:
        """Class numbers of the labels, which from here on replace them."""
        self.codes = np.searchsorted(classes, self.given)
        return self.codes.astype(np.min_scalar_type(len(classes)))

    def moments(self, weight: np.ndarray) -> Moments:
        """Mean and spread of the features."""
        return self.X.moments(weight)

    def take(self, rows: np.ndarray) -> Any:
        """Features of the given rows of this part."""
        return self.X.take(rows)

    def replay_factor(self, start: int, kernel: Kernel, dtype: str, blocks: Sequence[PivotBlock]) -> None:
        """The rows of F that a lost part had, for the rows that are here now."""
        self.begin_factor(start, kernel, sum(len(block.kept) for block in blocks), dtype)
        self.replay(blocks)

    def begin_game(
        self,
        labels: np.ndarray,
        cap: np.ndarray,
        weight: np.ndarray | None,
        eligible: np.ndarray | None,
        n: int,
        n_classes: int,
        seeds: np.ndarray,
        attacker: Attacker,
        stride: int,
    ) -> None:
        """Round 0 of a game of `n` rows in all."""
        # The rows of this part play as a game of their own, but for sums; the Gram is asked for its backend only.
        game = Game(
            self,  # type: ignore[arg-type]
            labels,
            cap,
            np.zeros(1),
            attacker,
            n_classes=n_classes,
            seeds=seeds,
            eligible=eligible,
            weight=weight,
        )
        state = GameState.start(game.signs(), game.games, NUMPY)
        state.marks = Marks(stride)
        self.local = LocalRows(game, state)
        ties = tie_ranks(seeds, self.start, self.start + self.n, n)
        self.local.view = replace(self.local.view, ties=ties)
        self.clipped: np.ndarray | None = None
        self.before: np.ndarray | None = None

    def load(
        self,
        dual: np.ndarray,
        signs: np.ndarray,
        weight_sum: np.ndarray,
        flip_count: np.ndarray,
        *marked: np.ndarray,
        rounds: Sequence[int] = (),
    ) -> None:
        """Go on from a checkpoint."""
        now = self.local.state
        now.dual, now.weight_sum = np.asfortranarray(dual), np.asfortranarray(weight_sum)
        now.signs, now.flip_count = np.asfortranarray(signs, dtype=np.float64), flip_count.copy()
        now.marks.rounds, now.marks.weights = list(rounds), [np.asfortranarray(m) for m in marked]
        self.local.waiting = []
        self.clipped = None

    def state(self) -> tuple[np.ndarray, ...]:
        """What `load` takes: the round that was closed last."""
        now = self.local.state
        return now.dual, now.signs.astype(np.int8), now.weight_sum, now.flip_count, *now.marks.weights

    def candidates(self, quiet: bool) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """This part's share of each list of candidates: keys, row numbers (-1 in empty places), and how many are
        wanted.
        """
        local = self.local
        attacker = NoAttack() if quiet else local.game.attacker
        found = []
        for keys, counts in attacker.ranked(replace(local.view, dual=local.state.dual)):
            rows = NUMPY.largest(keys, np.minimum(counts, self.n))
            named = np.where(rows >= 0, np.take_along_axis(keys, rows.clip(0), axis=0), -1)
            used = (named >= 0).any(axis=1)
            found.append((named[used], np.where(named >= 0, rows + self.start, -1)[used], np.asarray(counts)))
        return found

    def product(self, points: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Flip `points` of this part, and F' of the weights under those flips."""
        self.flips = Flips(points, labels)
        self.local.relabel(self.flips)
        return self.inner(self.local.weights())

    def advance(self, inner: np.ndarray, eta: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, ...]:
        """The step, then a look at the projection for `mu`: ends of a bracket, phi, slope, sum of |y a|."""
        local = self.local
        local.move(self.outer(inner), eta)
        self.u = local.signs * local.moved
        self.low, self.high = box(local.signs, local.game.cap)
        ends = bracket(self.u, self.low, self.high, local.game.weight, np)
        return *ends, *self.phi(mu)

    def phi(self, mu: np.ndarray) -> tuple[np.ndarray, ...]:
        """phi(mu), its slope and the sum of |y a| on these rows; the point is kept in case it is the projection."""
        self.clipped, *sums = phi_sums(self.u, mu, self.low, self.high, self.local.game.weight, np)
        return tuple(sums)

    def accept(self, number: int, middle: int) -> None:
        """Take the last point that was looked at as the duals of round `number`, and add it to the sums."""
        assert self.clipped is not None
        self.local.take(self.local.signs * self.clipped, self.flips, number, middle)
        self.clipped = None

    def closing_product(self) -> np.ndarray:
        """F' of the weights of all rounds that wait to be closed, (rank, rounds * columns)."""
        return np.concatenate([self.inner(signs * dual) for dual, signs in self.local.waiting], axis=1)

    def closing(self, inner: np.ndarray) -> KKTSums:
        """Sums over these rows that close the waiting rounds."""
        local, columns = self.local, self.local.state.dual.shape[1]
        parts = [self.outer(inner[:, at : at + columns]) for at in range(0, inner.shape[1], columns)]
        duals, signs = (NUMPY.side_by_side(*waiting) for waiting in zip(*local.waiting))
        sums = local.sums(NUMPY.side_by_side(*parts), duals, signs, len(parts))
        local.waiting = []
        return sums

    def average(self, number: int, first: int) -> np.ndarray:
        """F' of the averaged weights over the rounds after `first`."""
        now = self.local.state
        _, weights = now.marks.nearest(first)
        return self.inner((now.weight_sum - weights) / max(number - first, 1))

    def moved(self, inner: np.ndarray, bias: np.ndarray) -> np.ndarray | None:
        """Squared change of the averaged decision values since the last look, summed, and over how many rows."""
        scores = self.outer(inner) + bias
        before, self.before = self.before, scores
        return None if before is None else self.local.squares(scores - before)


def tie_ranks(seeds: np.ndarray, start: int, stop: int, n: int) -> np.ndarray:
    """Places of rows ``start .. stop`` in each game's random order of all n rows, (stop - start, R), without holding n
    rows.

    The draws of other parts are made again here, a million at a time: they depend on the seed and the row alone.
    """
    seeds = np.atleast_1d(seeds)
    return np.asfortranarray(np.stack([_ranks(seeds[i : i + 1], start, stop, n) for i in range(len(seeds))], axis=1))


def _ranks(seed: np.ndarray, start: int, stop: int, n: int) -> np.ndarray:
    own = draw(seed, 3 * TIES, np.arange(start, stop))
    order = np.argsort(own, kind="stable")
    ordered = own[order]
    smaller = np.zeros(stop - start + 1, dtype=np.int64)  # entry i: draws that have exactly i of our own below them
    for first in range(0, n, _RANKED_AT_ONCE):
        some = np.sort(draw(seed, 3 * TIES, np.arange(first, min(first + _RANKED_AT_ONCE, n))))
        smaller += np.bincount(np.searchsorted(ordered, some, side="right"), minlength=len(smaller))
    ranks = np.empty(stop - start, dtype=np.int64)
    ranks[order] = np.cumsum(smaller)[:-1]
    return ranks


def _matrix(chunk: Any) -> Any:
    if sparse.issparse(chunk):
        return chunk.tocsr()
    matrix = np.asarray(chunk)
    if matrix.dtype == object or not np.issubdtype(matrix.dtype, np.number):
        raise RowsRefused(f"X has a block of type {matrix.dtype}; features must be numbers")
    return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)


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
