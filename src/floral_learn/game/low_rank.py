"""K ~ F F' by randomly pivoted Cholesky (Epperly, Tropp and Webber), in blocks with rejection.

Pivots are drawn with probability proportional to the diagonal of what is still missing; a drawn point is kept
with the share of it that the points drawn before it in the same block have left over. Memory is n * rank, a product
costs 2 n * rank a column, and prediction goes through the landmarks: k(x, landmarks) @ coef.

The rows may lie in one process or in many (`Parts`): a block of pivots exchanges their features, their rows of F
and sums, never a column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigvalsh, solve_triangular

from floral_learn.game.arrays import NUMPY, Array, NumpyBackend
from floral_learn.game.factor_part import FactorPart, Picked, PivotBlock
from floral_learn.game.gram import Gram, format_bytes
from floral_learn.game.kernels import Kernel

if TYPE_CHECKING:
    from floral_learn.game.choose_gram import Probe

_MOST_EMPTY_DRAWS = 20


class Parts(ABC):
    """Where the `FactorPart` objects are: here, or on workers."""

    bounds: np.ndarray  # part p holds rows bounds[p] .. bounds[p + 1]

    @abstractmethod
    def each(self, method: str, *shared: Any, own: Sequence[tuple[Any, ...]] | None = None) -> list[Any]:
        """Answers of ``part.method(*own[p], *shared)``, one per part."""


class OnePart(Parts):
    """All rows in this process."""

    def __init__(self, part: FactorPart) -> None:
        self.part = part
        self.bounds = np.array([0, part.n])

    def each(self, method: str, *shared: Any, own: Sequence[tuple[Any, ...]] | None = None) -> list[Any]:
        """The one answer."""
        return [getattr(self.part, method)(*(own[0] if own else ()), *shared)]


class LowRankGram(Gram):
    """The product F (F' v) in place of K v.

    Parameters
    ----------
    X : array, CSR matrix or RowBlocks of shape (n, d), or Parts
        Parts are rows that lie in other processes.
    kernel : Kernel
        Positive semi-definite.
    rank : int
        Columns of F at most.
    tol : float
        Stop when ||K - F F'|| is at most this share of ||F F'|| (Frobenius norms, the first one estimated from the
        columns that are drawn anyway): about the relative error of a product.
    rng : numpy.random.Generator
        Draws the pivots.
    dtype, backend
        Type and place of F.
    block : int
        Pivots drawn at a time.
    probe : Probe, optional
        Stop also when it is settled: when more columns no longer change its predictions.
    progress : callable, optional
        Called with the columns made so far and `rank`, after each block.

    Attributes
    ----------
    landmarks : ndarray of shape (rank,)
        Row numbers of the pivots.
    error : float
        Estimate of ||K - F F'|| / ||F F'|| in the Frobenius norm, before the last block was added.
    missing : float
        Share of the trace of K that F F' does not have.
    blocks : list of PivotBlock
        What a part needs to grow its rows of F again.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.kernels import Kernel
    >>> from floral_learn.game.low_rank import LowRankGram
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> gram = LowRankGram(X, Kernel("rbf", gamma=0.5), rank=64, tol=1e-3, rng=np.random.default_rng(0))
    >>> gram.matmat(np.ones((500, 1))).shape, bool(gram.error < 0.1)
    ((500, 1), True)
    """

    kind = "low rank"

    def __init__(
        self,
        X: Any,
        kernel: Kernel,
        rank: int,
        tol: float,
        rng: np.random.Generator,
        dtype: str = "float32",
        backend: NumpyBackend = NUMPY,
        block: int = 64,
        probe: Probe | None = None,
        progress: Callable[[int, int], Any] | None = None,
    ) -> None:
        self.backend, self.dtype, self.kernel, self.probe = backend, dtype, kernel, probe
        self.parts: Parts = X if isinstance(X, Parts) else OnePart(FactorPart(X, backend))
        self.n = int(self.parts.bounds[-1])
        self.rank, self.error = 0, float("inf")
        self.blocks: list[PivotBlock] = []
        rank = min(rank, self.n)
        starts = [(int(start),) for start in self.parts.bounds[:-1]]
        sample = None if probe is None else probe.rows
        begun = self.parts.each("begin_factor", kernel, rank, dtype, sample, own=starts)
        left = np.array([total for total, _ in begun])
        largest = max(most for _, most in begun)
        trace, floor = float(left.sum()), largest * (1e-5 if dtype == "float32" else 1e-12)
        self.corner = np.zeros((rank, rank))  # F at the landmarks: lower triangular, in float64
        self.square = np.zeros((rank, rank))  # F'F
        landmarks: list[int] = []
        empty_draws = 0
        while self.rank < rank and empty_draws < _MOST_EMPTY_DRAWS:
            if largest <= floor:
                self.error = 0.0
                break
            drawn = self._draw(left, min(block, rank - self.rank), floor, rng)
            if not len(drawn.rows):  # all that were drawn lie below the floor: what is left is next to nothing
                empty_draws += 1
                continue
            found = self.parts.each("columns", drawn.features, drawn.factor, drawn.rows)
            squares = np.sum([part for part, _ in found], axis=0)
            self.error = self._error(squares * left.sum() / drawn.left)
            if self.error <= tol:
                break
            core = self._in_order([entries for _, entries in found], drawn.rows)
            kept, triangle = _accept(core.astype(np.float64), drawn.left, floor, rng)
            inverse = solve_triangular(triangle, np.eye(len(kept)), lower=True)
            self.blocks.append(PivotBlock(drawn.features, drawn.factor, drawn.rows, kept, inverse))
            grown = self.parts.each("extend", self.blocks[-1])
            self._append(drawn.factor[kept], triangle, np.sum([product for product, *_ in grown], axis=0))
            landmarks += drawn.rows[kept].tolist()
            left, largest = np.array([total for _, total, *_ in grown]), max(most for _, _, most, _ in grown)
            if progress is not None:
                progress(self.rank, rank)
            if probe is not None:
                probe.extend(self._in_order([entries for *_, entries in grown], probe.rows))
                if probe.settled:
                    break
        self.landmarks = np.array(landmarks, dtype=np.int64)
        self.corner, self.square = self.corner[: self.rank, : self.rank], self.square[: self.rank, : self.rank]
        self.missing = float(left.sum()) / trace if trace > 0 else 0.0
        self.nbytes = self.n * self.rank * np.dtype(dtype).itemsize

    @property
    def one_process(self) -> bool:
        """Whether all rows are in this process."""
        return isinstance(self.parts, OnePart)

    @property
    def factor(self) -> Array:
        """F, where all rows are in this process."""
        if not isinstance(self.parts, OnePart):
            raise AttributeError("the factor lies on the workers")
        return self.parts.part.factor[:, : self.rank]

    def _draw(self, left: np.ndarray, count: int, floor: float, rng: np.random.Generator) -> Picked:
        """Up to `count` distinct pivots, in the order in which they were drawn."""
        ends = np.cumsum(left)
        positions = rng.random(count) * ends[-1]
        part = np.minimum(np.searchsorted(ends, positions, side="right"), len(left) - 1)
        own = [(positions[part == p] - (ends[p] - left[p]),) for p in range(len(left))]
        picked: list[Picked] = self.parts.each("pick", own=own)
        order = np.argsort(np.argsort(part, kind="stable"), kind="stable")
        rows, amount = (np.concatenate([getattr(p, name) for p in picked])[order] for name in ("rows", "left"))
        features = [p.features for p in picked]
        stacked = sparse.vstack(features).tocsr() if sparse.issparse(features[0]) else np.concatenate(features)
        factor = np.concatenate([p.factor for p in picked])[order]
        first = np.sort(np.unique(rows, return_index=True)[1])
        first = first[amount[first] > floor]
        return Picked(rows[first], amount[first], stacked[order][first], factor[first])

    def _in_order(self, entries: list[np.ndarray], rows: np.ndarray) -> np.ndarray:
        """What the parts said about their own of `rows`, in the order of `rows`."""
        part = np.searchsorted(self.parts.bounds, rows, side="right") - 1
        order = np.argsort(part, kind="stable")
        out = np.concatenate(entries)
        out[order] = out.copy()
        return out

    def _error(self, squares: np.ndarray) -> float:
        # E |R e_s|^2 / p_s = |R|_F^2 when s is drawn with probability p_s, the share of row s in the diagonal left.
        return float(np.mean(squares)) ** 0.5 / max(float(np.linalg.norm(self.square)), 1e-300)

    def _append(self, factor: np.ndarray, triangle: np.ndarray, product: np.ndarray) -> None:
        done, new = self.rank, self.rank + len(triangle)
        self.corner[done:new, :done], self.corner[done:new, done:new] = factor, triangle
        self.square[:new, done:new], self.square[done:new, :new] = product, product.T
        self.rank = new

    def _shares(self, columns: Array) -> list[tuple[Array, ...]]:
        return [(columns[start:stop],) for start, stop in pairwise(self.parts.bounds)]

    def _inner(self, columns: Array) -> Array:
        found = self.parts.each("inner", own=self._shares(columns))
        return found[0] if len(found) == 1 else np.sum(found, axis=0, dtype=np.float64)

    def matmat(self, columns: Array) -> Array:
        """``F (F' columns)``."""
        found = self.parts.each("outer", self._inner(columns))
        return found[0] if len(found) == 1 else np.concatenate(found)

    def lambda_max(
        self, steps: int = 30, tol: float = 1e-3, centred: bool = False, weight: Array | None = None
    ) -> float:
        """The largest eigenvalue of F F' or, centred, of H F F' H: that of a matrix of the size of the rank."""
        if not self.rank:
            return 0.0
        square = self.square
        if centred or weight is not None:
            rows = None if weight is None else self.backend.numpy(weight)[:, 0]
            shares = self._shares(rows) if rows is not None else [(None,)] * (len(self.parts.bounds) - 1)
            found = self.parts.each("weighted_square", own=shares)
            square = square if rows is None else np.sum([part for part, _ in found], axis=0)
            sums = np.sum([part for _, part in found], axis=0)
            if centred:
                square = square - np.outer(sums, sums) / (self.n if rows is None else rows.sum())
        last = self.rank - 1
        return max(float(eigvalsh(square, subset_by_index=(last, last))[0]), 0.0)

    def diagonal(self) -> np.ndarray:
        """Squared norms of the rows of F."""
        return np.concatenate(self.parts.each("row_squares"))

    def expansion(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Landmarks and their coefficients: the same f at O(rank) a row."""
        inner = self.backend.numpy(self._inner(self.backend.columns(weights)))
        return self.landmarks, solve_triangular(self.corner, inner.astype(np.float64), lower=True, trans="T")

    def describe(self) -> str:
        """One line for people: what was chosen, why, and what it takes."""
        line = (
            f"low rank {self.rank} of {self.n:,} rows, {self.dtype}, {format_bytes(self.nbytes)}, "
            f"error {100 * self.error:.2g} %"
        )
        return line if self.probe is None else f"{line}; {self.probe.describe(self.rank)}"


def _accept(
    core: np.ndarray, before: np.ndarray, floor: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Which of the drawn points to keep, and the Cholesky factor of `core` restricted to them."""
    size = len(core)
    lower = np.zeros((size, size))
    left = np.diag(core).copy()
    kept: list[int] = []
    for j in range(size):
        if left[j] <= floor or (kept and rng.random() * before[j] > left[j]):
            continue
        column = (core[:, j] - lower[:, : len(kept)] @ lower[j, : len(kept)]) / np.sqrt(left[j])
        lower[:, len(kept)] = column
        left -= column**2
        kept.append(j)
    if not kept:  # rounding left nothing of the first point: take it alone, it is above the floor on the diagonal
        kept = [int(np.argmax(before))]
        lower[kept[0], 0] = np.sqrt(max(before[kept[0]], floor))
    chosen = np.array(kept)
    return chosen, np.tril(lower[chosen][:, : len(kept)])
