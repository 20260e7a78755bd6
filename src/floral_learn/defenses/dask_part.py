"""The share of a game that one worker holds: its rows, their factor, duals, labels and flips.

A `GamePart` lives on a worker as a dask actor and answers the coordinator in dask_game.py. Its answers have the size of
the rank, of a scalar a column, or of the candidates; only `state` (a checkpoint) has the size of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from floral_learn.core.arrays import NUMPY, draw
from floral_learn.core.attackers import TIES, Flips, View, _ranking_keys
from floral_learn.core.dual import gradient, objective
from floral_learn.core.factor_part import FactorPart, PivotBlock
from floral_learn.core.game import Game
from floral_learn.core.kernels import Kernel
from floral_learn.core.projections import _box, _evaluate
from floral_learn.core.row_blocks import ArrayBlocks, Moments
from floral_learn.core.state import GameState

_RANKED_AT_ONCE = 2**20  # rows whose random order is looked up at a time


@dataclass(frozen=True)
class Closing:
    """A part's contribution to bias, residual and objective of a round (see core/dual.py)."""

    free: np.ndarray  # (c,), weight of the free points
    total: np.ndarray  # (c,), their gaps y - f, summed
    most: np.ndarray  # (c,), largest gap among points that could move up
    least: np.ndarray  # (c,), smallest gap among points that could move down
    objective: np.ndarray  # (c,)


class GamePart(FactorPart):
    """Rows ``start .. start + n`` of a game, on a worker."""

    def __init__(self, rows: Sequence[Any], labels: Sequence[Any]) -> None:
        matrices = [_matrix(chunk) for chunk in rows]
        given = [np.asarray(chunk).reshape(-1) for chunk in labels]
        for matrix, some in zip(matrices, given):
            if matrix.shape[0] != len(some):
                raise ValueError(f"a block of X has {matrix.shape[0]} rows and the block of y beside it {len(some)}")
        super().__init__(ArrayBlocks(matrices))
        self.given = np.concatenate(given)

    def overview(self) -> tuple[int, int, Any, bool, np.ndarray]:
        """Rows, columns, type, whether rows are sparse, and the distinct labels."""
        if self.given.dtype.kind == "f" and not np.isfinite(self.given).all():
            raise ValueError("Input y contains NaN or infinity")
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
        cap: np.ndarray,
        weight: np.ndarray | None,
        eligible: np.ndarray | None,
        n: int,
        n_classes: int,
        seeds: np.ndarray,
        budget: np.ndarray,
    ) -> None:
        """Round 0 of a game of `n` rows in all."""
        # The labels of this part play the role of a game of their own; the Gram operator is asked for its backend only.
        self.game = Game(self, self.codes, cap, np.zeros(1), n_classes=n_classes, eligible=eligible, weight=weight)  # type: ignore[arg-type]
        self.seeds, self.budget = seeds, budget
        self.ties = tie_ranks(seeds, self.start, self.start + self.n, n)
        self.now = GameState.start(self.game.signs(), 1, NUMPY)
        self.clipped: np.ndarray | None = None

    def load(self, dual: np.ndarray, signs: np.ndarray, weight_sum: np.ndarray, flip_count: np.ndarray) -> None:
        """Go on from a checkpoint."""
        self.now.dual, self.now.weight_sum = np.asfortranarray(dual), np.asfortranarray(weight_sum)
        self.now.signs, self.now.flip_count = np.asfortranarray(signs, dtype=np.float64), flip_count.copy()
        self.clipped = None

    def state(self) -> tuple[np.ndarray, ...]:
        """What `load` takes: the round that was closed last."""
        return self.now.dual, self.now.signs.astype(np.int8), self.now.weight_sum, self.now.flip_count

    def candidates(self) -> tuple[np.ndarray, np.ndarray]:
        """Ranking keys and row numbers of this part's largest duals, B of each column; -1 in empty places."""
        self._accept()
        labels = self.game.labels
        view = View(self.now.dual, labels, self.game.n_classes, self.game.eligible, self.ties, self.seeds, NUMPY)
        keys = _ranking_keys(self.now.dual, view)
        rows = NUMPY.largest(keys, np.minimum(self.budget, self.n))
        named = np.where(rows >= 0, np.take_along_axis(keys, rows.clip(0), axis=0), -1)
        used = (named >= 0).any(axis=1)
        return named[used], np.where(named >= 0, rows + self.start, -1)[used]

    def product(self, points: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Flip `points` of this part, and F' [weights of this round, weights under those flips]."""
        self._accept()
        self.points = points
        self.signs = self.game.signs(Flips(points[:, None], labels[:, None]))
        dual = self.now.dual
        return self.inner(NUMPY.side_by_side(self.now.signs * dual, self.signs * dual))

    def step(
        self, inner: np.ndarray, average: bool, eta: np.ndarray | None, mu: np.ndarray
    ) -> tuple[Closing, tuple[np.ndarray, ...] | None]:
        """Close the round; then, unless it is the last, make the step and look at the projection for `mu`."""
        both = self.outer(inner)
        columns = self.now.dual.shape[1]
        closing = self._close(both[:, :columns])
        if average:
            self.now.weight_sum += self.now.signs * self.now.dual
        if eta is None:
            return closing, None
        weight = self.game.weight
        moved = self.now.dual - (eta if weight is None else weight * eta) * gradient(both[:, columns:], self.signs)
        self.u = self.signs * moved
        self.low, self.high = _box(self.signs, self.game.cap)
        per = 1.0 if weight is None else weight
        bracket = ((self.u - self.high) / per).min(axis=0), ((self.u - self.low) / per).max(axis=0)
        return closing, (*bracket, *self.evaluate(mu))

    def evaluate(self, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """phi(mu), its slope and its scale on these rows; the point is kept in case it is the projection."""
        self.clipped, *sums = _evaluate(self.u, mu, self.low, self.high, self.game.weight, np)
        return sums[0], sums[1], sums[2]

    def _accept(self) -> None:
        """Take the last point that was looked at as the duals of the round."""
        if self.clipped is None:
            return
        self.now.dual, self.now.signs = self.signs * self.clipped, self.signs
        self.now.flip_count[self.points] += 1
        self.clipped = None

    def _close(self, product: np.ndarray) -> Closing:
        dual, signs, weight = self.now.dual, self.now.signs, self.game.weight
        gap, positive = signs - product, signs > 0
        interior, below = dual > 0, dual < self.game.cap
        up, down = np.where(positive, below, interior), np.where(positive, interior, below)
        free = (up & down) * (1.0 if weight is None else weight)
        return Closing(
            free.sum(axis=0),
            (free * gap).sum(axis=0),
            np.where(up, gap, -np.inf).max(axis=0),
            np.where(down, gap, np.inf).min(axis=0),
            objective(product, dual, signs),
        )


def tie_ranks(seeds: np.ndarray, start: int, stop: int, n: int) -> np.ndarray:
    """Places of rows ``start .. stop`` in the random order of all n rows, (stop - start, 1), without holding n rows.

    The draws of other parts are made again here, a million at a time: they depend on the seed and the row alone.
    """
    own = draw(seeds, 3 * TIES, np.arange(start, stop)[:, None])[:, 0]
    order = np.argsort(own, kind="stable")
    ordered = own[order]
    smaller = np.zeros(stop - start + 1, dtype=np.int64)  # entry i: draws that have exactly i of our own below them
    for first in range(0, n, _RANKED_AT_ONCE):
        some = np.sort(draw(seeds, 3 * TIES, np.arange(first, min(first + _RANKED_AT_ONCE, n))[:, None])[:, 0])
        smaller += np.bincount(np.searchsorted(ordered, some, side="right"), minlength=len(smaller))
    ranks = np.empty(stop - start, dtype=np.int64)
    ranks[order] = np.cumsum(smaller)[:-1]
    return ranks[:, None]


def _matrix(chunk: Any) -> Any:
    if sparse.issparse(chunk):
        return chunk.tocsr()
    matrix = np.asarray(chunk)
    if matrix.dtype == object or not np.issubdtype(matrix.dtype, np.number):
        raise ValueError(f"X has a block of type {matrix.dtype}; features must be numbers")
    return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
