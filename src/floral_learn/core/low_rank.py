"""K ~ F F' by randomly pivoted Cholesky (Epperly, Tropp and Webber), in blocks with rejection.

Pivots are drawn with probability proportional to the diagonal of what is still missing; a drawn point is kept
with the share of it that the points drawn before it in the same block have left over. Memory is n * rank, a product
costs 2 n * rank a column, and prediction goes through the landmarks: k(x, landmarks) @ coef.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from floral_learn.core.arrays import NUMPY, Array, NumpyBackend
from floral_learn.core.gram import Gram, format_bytes
from floral_learn.core.kernels import Kernel


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
    ) -> None:
        self.backend = backend
        self.dtype = dtype
        rows = kernel.prepare(X, backend, dtype)
        self.n = rows.shape[0]
        rank = min(rank, self.n)
        storage = backend.dtype(dtype)
        diagonal = kernel.diagonal(rows, backend)
        trace = float(diagonal.sum())
        floor = float(diagonal.max()) * (1e-5 if dtype == "float32" else 1e-12)
        factor = backend.zeros((self.n, rank), storage)
        corner = np.zeros((rank, rank))  # F at the landmarks: lower triangular, in float64
        landmarks: list[int] = []
        self.error = float("inf")
        while len(landmarks) < rank:
            left = backend.numpy(diagonal)
            if left.max() <= floor:
                self.error = 0.0
                break
            drawn = rng.choice(self.n, size=min(block, rank - len(landmarks)), p=left / left.sum())
            drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
            drawn = drawn[left[drawn] > floor]
            if not len(drawn):
                continue
            done = len(landmarks)
            picks = backend.array(drawn)
            columns = kernel(rows, rows[drawn], backend)
            columns = backend.cast(columns, storage) - factor[:, :done] @ factor[picks, :done].T
            self.error = self._error(columns, left, drawn, factor[:, :done])
            if self.error <= tol:
                break
            core = np.asarray(backend.numpy(columns[picks]), dtype=np.float64)
            kept, triangle = _accept(core, left[drawn], floor, rng)
            new = done + len(kept)
            inverse = solve_triangular(triangle, np.eye(len(kept)), lower=True)
            factor[:, done:new] = columns[:, backend.array(kept)] @ backend.cast(backend.array(inverse.T), storage)
            corner[done:new, :done] = backend.numpy(factor[picks[backend.array(kept)], :done])
            corner[done:new, done:new] = triangle
            landmarks += drawn[kept].tolist()
            fresh = backend.cast(factor[:, done:new], backend.float64)
            diagonal = (diagonal - (fresh * fresh).sum(1)).clip(0, None)
            diagonal[backend.array(np.array(landmarks[done:]))] = 0
        self.rank = len(landmarks)
        self.factor = factor[:, : self.rank]
        self.landmarks = np.array(landmarks, dtype=np.int64)
        self.corner = corner[: self.rank, : self.rank]
        self.missing = float(diagonal.sum()) / trace if trace > 0 else 0.0
        self.nbytes = self.n * self.rank * np.dtype(dtype).itemsize

    def _error(self, columns: Array, left: np.ndarray, drawn: np.ndarray, factor: Array) -> float:
        # E |R e_s|^2 / p_s = |R|_F^2 when s is drawn with probability p_s = left_s / sum(left).
        squares = self.backend.numpy((columns * columns).sum(0))
        residual = float(np.mean(squares * left.sum() / left[drawn])) ** 0.5
        square = self.backend.numpy(factor.T @ factor)
        return residual / max(float(np.linalg.norm(square)), 1e-300)

    def matmat(self, columns: Array) -> Array:
        """``F (F' columns)``."""
        columns = self.backend.cast(columns, self.factor.dtype)
        product = self.backend.product(self.factor, self.backend.product(self.factor.T, columns))
        return self.backend.cast(product, self.backend.float64)

    def expansion(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Landmarks and their coefficients: the same f at O(rank) a row."""
        columns = self.backend.cast(self.backend.columns(weights), self.factor.dtype)
        inner = np.asarray(self.backend.numpy(self.factor.T @ columns), dtype=np.float64)
        return self.landmarks, solve_triangular(self.corner, inner, lower=True, trans="T")

    def describe(self) -> str:
        """One line for people: what was chosen and what it takes."""
        return (
            f"low rank {self.rank} of {self.n:,} rows, {self.dtype}, {format_bytes(self.nbytes)}, "
            f"error {100 * self.error:.2g} %"
        )


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
