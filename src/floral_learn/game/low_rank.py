"""K ~ F F' by randomly pivoted Cholesky (Epperly, Tropp and Webber), in blocks with rejection; which rank is enough.

Pivots are drawn with probability proportional to the diagonal of what is still missing; a drawn point is kept
with the share of it that the points drawn before it in the same block have left over. Memory is n * rank, a product
costs 2 n * rank a column, and prediction goes through the landmarks: k(x, landmarks) @ coef.

When is a rank enough? When more of it no longer changes how rows are told apart on a probe set: a small classifier
(ridge regression on the rows of F) learns, at every rank that is reached, which of a few random rows is nearest, from a
sample of rows, and says so for another sample. The share of its answers that a block of columns changed is what more
rank would still buy. The task is made from the features alone: the labels of the game have no say in K.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve, eigh, eigvalsh, solve_triangular
from sklearn.metrics import pairwise_distances_argmin

from floral_learn.game.arrays import NUMPY, Array, NumpyBackend, as_host
from floral_learn.game.gram import DENSE_ROWS, MAX_BYTES, Gram, check_memory, format_bytes
from floral_learn.game.kernels import Kernel

# rows of the probe: half trains, half is predicted, so that two answers of a thousand can be told
SAMPLE = 4000
# classes of its task: enough that small details matter, few enough for a hundred rows of each
CENTRES = 16
# Its ridge, relative to the largest eigenvalue of the centred sample Gram: a game of T rounds with the automatic step
# cannot follow directions much below 1 / T of that eigenvalue.
RIDGE = 1e-3
# over always answering with the most frequent class: below that, answers that stay are guesses
LEAST_GAIN = 0.05
TOL = 2e-3  # share of the answers that a block of columns may change once the rank is enough
ERROR_TOL = 5e-3  # relative error of a product at which no more rank is needed: that of 16-bit rankings
# the search ends here: a pass over F then costs as much as over a dense matrix of 1,024 columns
AUTO_RANK = 512


class LowRankGram(Gram):
    """The product F (F' v) in place of K v.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
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
    probe : Probe, optional
        Stop also when it is settled: when more columns no longer change its predictions.
    block : int
        Pivots drawn at a time.

    Attributes
    ----------
    landmarks : ndarray of shape (rank,)
        Row numbers of the pivots.
    error : float
        Estimate of ||K - F F'|| / ||F F'|| in the Frobenius norm, before the last block was added.
    missing : float
        Share of the trace of K that F F' does not have.
    corner : ndarray of shape (rank, rank)
        F at the landmarks, lower triangular: F is k(rows, landmarks) times the inverse of its transpose.

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
        probe: Probe | None = None,
        block: int = 64,
    ) -> None:
        self.backend, self.dtype, self.kernel, self.probe = backend, dtype, kernel, probe
        self.n, self.rank, self.error = int(X.shape[0]), 0, float("inf")
        rank = min(rank, self.n)
        left = self._begin(X, rank)  # the diagonal of K - F F'
        trace, floor = float(left.sum()), float(left.max()) * (1e-5 if dtype == "float32" else 1e-12)
        # F at the landmarks, and F'F
        self.corner, self.square = np.zeros((rank, rank)), np.zeros((rank, rank))
        self.landmarks = np.zeros(0, np.int64)
        empty_draws = 0
        # 20 such draws in a row: what is left is next to nothing
        while self.rank < rank and empty_draws < 20:
            if float(left.max()) <= floor:
                self.error = 0.0
                break
            pivots = self._draw(left, min(block, rank - self.rank), floor, rng)
            if not len(pivots):  # all that were drawn lie below the floor
                empty_draws += 1
                continue
            features, known = self._rows(pivots)
            squares, core = self._columns(features, known, pivots)
            # E |R e_s|^2 / p_s = |R|_F^2 when s is drawn with probability p_s, its share of the diagonal left.
            residual = float(np.mean(squares * left.sum() / left[pivots])) ** 0.5
            self.error = residual / max(float(np.linalg.norm(self.square)), 1e-300)
            if self.error <= tol:
                break
            kept, triangle = _accept(core.astype(np.float64), left[pivots], floor, rng)
            inverse = solve_triangular(triangle, np.eye(len(kept)), lower=True)
            product, squares = self._extend(kept, inverse)
            self._append(known[kept], triangle, product)
            self.landmarks = np.append(self.landmarks, pivots[kept])
            left = (left - squares).clip(0, None)
            left[self.landmarks] = 0
            if probe is not None:
                probe.extend(self._rows(probe.rows)[1][:, self.rank - len(kept) :])
                if probe.settled:
                    break
        self.corner = self.corner[: self.rank, : self.rank]
        self.square = self.square[: self.rank, : self.rank]
        self.missing = float(left.sum()) / trace if trace > 0 else 0.0
        self.nbytes = self.n * self.rank * np.dtype(dtype).itemsize

    def _draw(self, left: np.ndarray, count: int, floor: float, rng: np.random.Generator) -> np.ndarray:
        """Up to `count` distinct pivots, in the order in which they were drawn."""
        positions = rng.random(count) * left.sum()
        rows = np.minimum(np.searchsorted(np.cumsum(left), positions, side="right"), self.n - 1)
        rows = rows[np.sort(np.unique(rows, return_index=True)[1])]
        return rows[left[rows] > floor]

    def _append(self, factor: np.ndarray, triangle: np.ndarray, product: np.ndarray) -> None:
        done, new = self.rank, self.rank + len(triangle)
        self.corner[done:new, :done], self.corner[done:new, done:new] = factor, triangle
        self.square[:new, done:new], self.square[done:new, :new] = product, product.T
        self.rank = new

    # What follows is all that touches rows of X and F; rows on a cluster have their own (floral/dask_gram.py).

    def _begin(self, X: Any, rank: int) -> np.ndarray:
        """Make room for `rank` columns; the diagonal of K."""
        backend = self.backend
        self.prepared = self.kernel.prepare(X, backend, self.dtype)
        self.squares = self.kernel.squares(self.prepared)
        self._factor = backend.zeros((self.n, rank), backend.dtype(self.dtype))
        return backend.numpy(self.kernel.diagonal(self.prepared, backend)).astype(np.float64)

    def _rows(self, rows: np.ndarray) -> tuple[Any, np.ndarray]:
        """Prepared features and rows of F, in main memory."""
        features = self.prepared[rows]
        known = self.backend.numpy(self._factor[self.backend.array(rows), : self.rank])
        return features if sparse.issparse(features) else self.backend.numpy(features), known

    def _columns(self, features: Any, known: np.ndarray, pivots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Columns of K - F F' at the pivots: their squared lengths, and their entries at the pivots."""
        backend = self.backend
        self.fresh = backend.zeros((self.n, len(pivots)), backend.dtype(self.dtype))
        squares = np.zeros(len(pivots))
        for here in self._tiles():
            norms = None if self.squares is None else self.squares[here]
            rows, factor = self.prepared[here], self._factor[here, : self.rank]
            values = missing_columns(self.kernel, rows, factor, features, known, backend, norms)
            squares += backend.numpy((values * values).sum(0))
            self.fresh[here] = values
        return squares, backend.numpy(self.fresh[backend.array(pivots)])

    def _extend(self, kept: np.ndarray, inverse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Append the columns of the kept pivots: F'F for them, and the square of each of their rows, (n,)."""
        backend, new = self.backend, self.rank + len(kept)
        inverse = backend.cast(backend.array(np.ascontiguousarray(inverse.T)), self._factor.dtype)
        kept, product, squares = backend.array(kept), np.zeros((new, len(kept))), np.zeros(self.n)
        for here in self._tiles():
            added = self.fresh[here][:, kept] @ inverse
            self._factor[here, self.rank : new] = added
            exact = backend.cast(added, backend.float64)
            squares[here] = backend.numpy((exact * exact).sum(1))
            product += backend.numpy(self._factor[here, :new].T @ added)
        del self.fresh
        return product, squares

    def _tiles(self) -> Iterator[slice]:
        """Rows whose kernel values are computed at once; no second copy of the columns is made."""
        step = self.n if self.backend.name == "torch" else 2**14
        for start in range(0, self.n, step):
            yield slice(start, min(start + step, self.n))

    @property
    def factor(self) -> Array:
        """F, (n, rank)."""
        return self._factor[:, : self.rank]

    def inner(self, columns: Array) -> Array:
        """``F' columns``, (rank, c)."""
        return self.backend.product(self.factor.T, self.backend.cast(columns, self._factor.dtype))

    def outer(self, inner: Array) -> Array:
        """``F inner`` as float64, (n, c)."""
        product = self.backend.product(self.factor, self.backend.cast(inner, self._factor.dtype))
        return self.backend.cast(product, self.backend.float64)

    def weighted(self, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """F'WF and F'w, in float64; ones for no `weight`."""
        backend, square, sums = self.backend, np.zeros((self.rank, self.rank)), np.zeros(self.rank)
        step = max(2**14, self.n // 64)
        for start in range(0, self.n, step):
            here = slice(start, start + step)
            exact = scaled = backend.cast(self.factor[here], backend.float64)
            if weight is not None:
                scaled = exact * backend.array(weight[here])[:, None]
                square += backend.numpy(exact.T @ scaled)
            sums += backend.numpy(scaled.sum(0))
        return (self.square if weight is None else square), sums

    def row_squares(self) -> np.ndarray:
        """Squared norms of the rows of F, (n,)."""
        out = np.empty(self.n)
        for here in self._tiles():
            exact = self.backend.cast(self.factor[here], self.backend.float64)
            out[here] = self.backend.numpy((exact * exact).sum(1))
        return out

    def matmat(self, columns: Array) -> Array:
        """``F (F' columns)``."""
        return self.outer(self.inner(columns))

    def lambda_max(
        self, steps: int = 30, tol: float = 1e-3, centred: bool = False, weight: Array | None = None
    ) -> float:
        """The largest eigenvalue of F F' or, centred, of H F F' H: that of a matrix of the size of the rank."""
        if not self.rank:
            return 0.0
        rows = None if weight is None else self.backend.numpy(weight)[:, 0]
        square, sums = self.square, np.zeros(self.rank)
        if centred or weight is not None:
            square, sums = self.weighted(rows)
        whole = float(np.trace(square))
        if centred:
            square = square - np.outer(sums, sums) / (self.n if rows is None else rows.sum())
        last = self.rank - 1
        found = float(eigvalsh(square, subset_by_index=(last, last))[0])
        return found if found > 1e-13 * whole else 0.0  # equal rows: what is left is rounding

    def diagonal(self) -> np.ndarray:
        """Of F F'."""
        return self.row_squares()

    def expansion(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Landmarks and their coefficients: the same f at O(rank) a row."""
        inner = self.backend.numpy(self.inner(self.backend.columns(weights)))
        coef = solve_triangular(self.corner, inner.astype(np.float64), lower=True, trans="T")
        return self.landmarks, coef

    def describe(self) -> str:
        """One line for people: what was chosen, why, and what it takes."""
        line = (
            f"low rank {self.rank} of {self.n:,} rows, {self.dtype}, {format_bytes(self.nbytes)}, "
            f"error {100 * self.error:.2g} %"
        )
        return line if self.probe is None else f"{line}; {self.probe.describe(self.rank)}"


def missing_columns(
    kernel: Kernel,
    rows: Any,
    factor: Array,
    pivots: Any,
    known: np.ndarray,
    backend: NumpyBackend,
    squares: Any = None,
) -> Array:
    """Columns of K - F F' at `pivots` (features, and their rows of F), for prepared `rows` with their `factor`."""
    if not sparse.issparse(pivots) and not callable(kernel.name):
        pivots = backend.array(pivots)
    values = backend.cast(kernel(rows, pivots, backend, squares), factor.dtype)
    if not factor.shape[1]:
        return values
    return values - factor @ backend.cast(backend.array(known), factor.dtype).T


def _accept(
    core: np.ndarray, before: np.ndarray, floor: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Which of the drawn points to keep, and the Cholesky factor of `core` restricted to them."""
    size = len(core)
    lower = np.zeros((size, size))
    left = np.diag(core).copy()
    kept: list[int] = []
    for j in range(size):
        # The first point is taken; a later one with the share of it that the points before it have left over.
        if left[j] <= floor or (kept and rng.random() * before[j] > left[j]):
            continue
        column = (core[:, j] - lower[:, : len(kept)] @ lower[j, : len(kept)]) / np.sqrt(left[j])
        lower[:, len(kept)] = column
        left -= column**2
        kept.append(j)
    # rounding left nothing of the first point: take it alone, it is above the floor on the diagonal
    if not kept:
        kept = [int(np.argmax(before))]
        lower[kept[0], 0] = np.sqrt(max(before[kept[0]], floor))
    chosen = np.array(kept)
    return chosen, np.tril(lower[chosen][:, : len(kept)])


def low_rank_gram(
    X: Any,
    kernel: Kernel,
    gram: str | int,
    dtype: str,
    rng: np.random.Generator,
    backend: NumpyBackend,
    made_by: type[LowRankGram] = LowRankGram,
) -> tuple[LowRankGram, bool]:
    """A factor of the rank that `gram` says, or of one that is enough; and whether it is."""
    n, column = X.shape[0], X.shape[0] * np.dtype(dtype).itemsize
    if not kernel.definite and not callable(kernel.name):
        warnings.warn(
            f"the {kernel.name} kernel may have negative eigenvalues, which a low-rank factor F F' leaves out: the "
            "fit is that of another kernel. Use gram='dense'.",
            UserWarning,
            stacklevel=2,
        )
    if not isinstance(gram, str):
        check_memory(f"a factor of rank {gram}", n, column * min(gram, n), backend)
        return made_by(X, kernel, int(gram), 0.0, rng, dtype, backend), True
    # The factor and, while it is built, some blocks of 64 kernel columns.
    most = min(AUTO_RANK, n, max(1, int(MAX_BYTES // column) - 192))
    # there a product with F of this rank takes as long as a dense one
    if gram == "auto" and n <= DENSE_ROWS:
        most = min(most, n // 8)
    rows = rng.permutation(n) if n <= SAMPLE else rng.choice(n, SAMPLE, replace=False, shuffle=True)
    probe = Probe(rows, *nearest_centres(as_host(X[rows]), rng))
    made = made_by(X, kernel, most, ERROR_TOL, rng, dtype, backend, probe)
    # The error is that before the last block: a factor that misses nothing of the trace has none.
    return made, made.error <= 2 * ERROR_TOL or made.missing <= 1e-6 or probe.settled


class Probe:
    """Changes of the predictions on a sample while the factor grows.

    Parameters
    ----------
    rows : int ndarray of shape (m,)
        The sample, numbers among all rows.
    labels : int ndarray of shape (m,)
        Which class of the task each belongs to.
    n_classes : int
    """

    def __init__(self, rows: np.ndarray, labels: np.ndarray, n_classes: int) -> None:
        self.rows = rows
        # F at the sample, with room for more columns
        self.factor = np.zeros((len(rows), 64), order="F")
        self.square = np.zeros((64, 64))  # F'F over the rows that train
        self.rank = 0
        self.train = len(rows) // 2
        classes = np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)
        self.targets = 2.0 * (labels[: self.train, None] == classes) - 1
        # A kernel that is nearly the identity says nothing about unseen rows: answers that never change are no answers.
        self.truth = labels[self.train :]
        self.guess = float(np.bincount(self.truth, minlength=1).max() / max(len(self.truth), 1))
        self.right = 0.0
        self.answers: np.ndarray | None = None
        self.changed: list[float] = []  # share of the predictions that each block of columns changed

    @property
    def size(self) -> int:
        """Rows whose predictions are compared."""
        return len(self.rows) - self.train

    @property
    def settled(self) -> bool:
        """Whether the last two blocks changed next to nothing, and the answers are more than a guess."""
        still = len(self.changed) > 1 and max(self.changed[-2:]) <= TOL
        return still and self.right > self.guess + LEAST_GAIN

    def extend(self, columns: np.ndarray) -> None:
        """Append columns of F at the sample and predict again."""
        done, self.rank = self.rank, self.rank + columns.shape[1]
        if self.rank > self.factor.shape[1]:
            size = max(self.rank, 2 * self.factor.shape[1])
            former, square = self.factor, self.square
            self.factor, self.square = np.zeros((len(former), size), order="F"), np.zeros((size, size))
            self.factor[:, :done], self.square[:done, :done] = former[:, :done], square[:done, :done]
        self.factor[:, done : self.rank] = columns
        seen = self.factor[: self.train, : self.rank]
        self.square[: self.rank, done : self.rank] = seen.T @ seen[:, done:]
        self.square[done : self.rank, : self.rank] = self.square[: self.rank, done : self.rank].T
        answers = self._predict()
        self.changed.append(1.0 if self.answers is None else float(np.mean(answers != self.answers)))
        self.answers = answers
        self.right = float(np.mean(answers == self.truth))

    def describe(self, rank: int) -> str:
        """What the last columns changed, and whether the search for a rank ended because of it."""
        if len(self.changed) < 2:
            return f"rank {rank} was reached in one step"
        share = f"{100 * self.changed[-1]:.2g} % of {self.size:,} probe predictions"
        if self.settled:
            return f"rank {rank} is enough: the last columns changed {share}"
        return f"the last columns changed {share}"

    def _predict(self) -> np.ndarray:
        seen, unseen = np.split(self.factor[:, : self.rank], [self.train])
        mean, middle = seen.mean(axis=0), self.targets.mean(axis=0)
        square = self.square[: self.rank, : self.rank] - self.train * np.outer(mean, mean)
        last = len(square) - 1
        top = float(eigh(square, eigvals_only=True, subset_by_index=(last, last))[0])
        square[np.diag_indices_from(square)] += max(RIDGE * top, 1e-12)
        coef = cho_solve(cho_factor(square), seen.T @ (self.targets - middle))
        scores = (unseen - mean) @ coef + middle
        return scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1)


def nearest_centres(X: Any, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """For each row of the sample, which of `CENTRES` random ones of them is nearest; and how many there are."""
    count = min(CENTRES, max(2, X.shape[0] // 4))
    centres = X[rng.choice(X.shape[0], count, replace=False)]
    return pairwise_distances_argmin(X, centres), count
