"""The weights a(x) of the labels in a kernel ridge regression, with a bound on what rounding does to any score.

argmin_f  sum_i w_i (t_i - f(x_i))^2 + ridge |f|^2   has   f(x) = sum_i a_i(x) t_i,
a(x) = W^1/2 (W^1/2 K W^1/2 + ridge I)^-1 W^1/2 k(x), the same for every target t: labels never enter a(x).
With rows of features F in place of a kernel, K = F F' and a(x) = W F (F'W F + ridge I)^-1 phi(x).

Rounding. Cholesky solves (S + E) z = b with |E| <= g(3 n + 1) trace(S) in the spectral norm, g(k) = k u / (1 - k u)
(Higham, Accuracy and Stability of Numerical Algorithms, theorem 10.4, with | |R'| |R| | <= |R|_F^2 = trace(S)), so a
score for targets in [-1, 1] moves by at most |S^-1 W^1/2 t| |E| |z|, where |S^-1 W^1/2 t| <= (sum w)^1/2 / ridge.
The bounds below add up this term for the certificate and once more for the refitted model, the rounding of kernel
values and of the products, and are doubled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from floral_learn.game.arrays import Array, NumpyBackend
from floral_learn.game.kernels import Kernel

UNIT = {"float32": 2.0**-24, "float64": 2.0**-53}  # unit roundoff


@dataclass(frozen=True)
class Rows:
    """Training rows with their weights, ready for kernels on a backend."""

    X: Any
    weight: np.ndarray
    kernel: Kernel
    intercept: bool  # the constant 1 is one more feature: it is penalised as the others are
    ridge: float
    dtype: str
    backend: NumpyBackend

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.weight)

    def values(self, A: Any, B: Any) -> Array:
        """Kernel values (len(A), len(B)) in float64, the intercept included."""
        found = self.backend.cast(self.kernel(A, B, self.backend), self.backend.float64)
        if self.intercept:
            found += 1.0
        return found

    def prepared(self, X: Any) -> Any:
        """Rows as the kernel wants them."""
        return self.kernel.prepare(X, self.backend, "float64")

    def value_error(self, X: Any) -> float:
        """How far one kernel value can be off: the terms that are summed for it, times their roundings."""
        radius = max(_largest_square(self.X), _largest_square(X))
        kernel = self.kernel
        if kernel.name in ("rbf", "laplacian"):
            size = 1.0 + 4.0 * kernel.gamma * (radius if kernel.name == "rbf" else np.sqrt(X.shape[1] * radius))
        elif kernel.name == "linear":
            size = radius
        else:
            size = kernel.degree * (kernel.gamma * radius + kernel.coef0 + 1.0) ** kernel.degree
        return UNIT["float64"] * (X.shape[1] + 8) * size


class DenseWeights:
    """a(x) through the n x n kernel matrix: exact kernel ridge, O(n^2) memory."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        backend = rows.backend
        with backend.here():
            self.X = rows.prepared(rows.X)
            self.root = backend.array(np.sqrt(rows.weight))
            matrix = rows.values(self.X, self.X)
            matrix *= self.root[:, None]
            matrix *= self.root[None, :]
            index = backend.arange(rows.n)
            matrix[index, index] += rows.ridge
            trace = float(matrix[index, index].sum())
            self.solve = _solver(matrix, backend, rows.ridge)
        # |S^-1 W^1/2 t| for any targets in [-1, 1]
        self.reach = float(np.sqrt(rows.weight.sum())) / rows.ridge
        self.step = UNIT["float64"] * (3 * rows.n + 1) * trace

    def coefficients(self, targets: np.ndarray) -> np.ndarray:
        """Kernel coefficients (n, c) of the regression on targets (n, c)."""
        backend = self.rows.backend
        with backend.here():
            solved = self.solve(backend.array(targets) * self.root[:, None])
            return backend.numpy(solved * self.root[:, None])

    def block(self, X: Any) -> tuple[Array, Array]:
        """a(x) as (m, n) in the chosen type and the slack (m,) of any lead."""
        rows, backend, xp = self.rows, self.rows.backend, self.rows.backend.xp
        with backend.here():
            asked = rows.prepared(X)
            right = rows.values(self.X, asked) * self.root[:, None]
            solved = self.solve(right)
            a = (solved * self.root[:, None]).T
            solve = self.reach * self.step * xp.sqrt((solved * solved).sum(0))
            values = self.reach * float(np.sqrt(rows.weight.sum())) * rows.value_error(X)
            sums = UNIT["float64"] * (rows.n + 2) * (xp.abs(a).sum(1) + self.reach * xp.sqrt((right * right).sum(0)))
            slack = 4.0 * (solve + sums + values)
            if rows.dtype == "float32":  # casting moves every weight by half a unit in its last place
                slack = 2.0 * slack + 2.0 * UNIT["float32"] * xp.abs(a).sum(1)
                a = backend.cast(a, backend.dtype("float32"))
            return a, slack


class FactorWeights:
    """a(x) through features F (n, r) of the rows that no label has touched: O(n r) memory."""

    def __init__(self, rows: Rows, factor: Array, transform: Callable[[Any], tuple[Array, float]]) -> None:
        """``transform(X)`` gives the features (m, r) of other rows and how far their norms can be off."""
        self.rows, self.transform = rows, transform
        backend, xp = rows.backend, rows.backend.xp
        with backend.here():
            self.weight = backend.array(rows.weight)
            self.F = factor
            matrix = factor.T @ (factor * self.weight[:, None])
            index = backend.arange(matrix.shape[0])
            matrix[index, index] += rows.ridge
            trace = float(matrix[index, index].sum())
            self.solve = _solver(matrix, backend, rows.ridge)
            norms = xp.sqrt((factor * factor).sum(1))
            self.spread = float((norms * self.weight).sum())  # sum_i w_i |F_i|
            self.held = backend.cast(factor * self.weight[:, None], backend.dtype(rows.dtype))
        # |S^-1 F'W t| <= max_s s / (s^2 + ridge) |W^1/2 t|
        self.reach = float(np.sqrt(rows.weight.sum())) / (2.0 * np.sqrt(rows.ridge))
        self.rank = factor.shape[1]
        self.step = UNIT["float64"] * (rows.n + 3 * self.rank + 1) * trace

    def coefficients(self, targets: np.ndarray) -> np.ndarray:
        """Weights (r, c) of the features in the regression on targets (n, c)."""
        backend = self.rows.backend
        with backend.here():
            return backend.numpy(self.solve(self.F.T @ (backend.array(targets) * self.weight[:, None])))

    def block(self, X: Any) -> tuple[Array, Array]:
        """a(x) as (m, n) in the chosen type and the slack (m,) of any lead."""
        rows, backend, xp = self.rows, self.rows.backend, self.rows.backend.xp
        with backend.here():
            features, off = self.transform(X)
            solved = self.solve(features.T)  # (r, m)
            a = backend.cast(solved, backend.dtype(rows.dtype)).T @ self.held.T
            length = xp.sqrt((solved * solved).sum(0))
            sums = (rows.n + 2) * xp.abs(a).sum(1, dtype=backend.float64)
            slack = 4.0 * (
                self.reach * (self.step * length + off)
                + UNIT["float64"] * (sums + (self.rank + 4) * self.spread * length)
            )
            if rows.dtype == "float32":  # both factors are cast, and their product rounds in float32
                slack = 2.0 * slack + 2.0 * _product_unit(backend) * (self.rank + 4) * self.spread * length
            return a, slack


def landmark_transform(rows: Rows, landmarks: Any, corner: np.ndarray) -> Callable[[Any], tuple[Array, float]]:
    """Features of any rows from a pivoted Cholesky factor: phi(x) = L^-1 k(landmarks, x), L = ``corner``."""
    backend = rows.backend
    inverse = solve_triangular(corner, np.eye(len(corner)), lower=True)
    grows = float(np.linalg.norm(inverse)) * np.sqrt(len(corner))
    with backend.here():
        anchors, back = rows.prepared(landmarks), backend.array(inverse.T)

    def transform(X: Any) -> tuple[Array, float]:
        with backend.here():
            values = backend.cast(rows.kernel(rows.prepared(X), anchors, backend), backend.float64)
            return _with_ones(values @ back, rows), grows * rows.value_error(X)

    return transform


def feature_transform(rows: Rows) -> Callable[[Any], tuple[Array, float]]:
    """The features themselves, for the linear kernel."""

    def transform(X: Any) -> tuple[Array, float]:
        X = X.toarray() if hasattr(X, "toarray") else X
        with rows.backend.here():
            return _with_ones(rows.backend.array(X, rows.backend.float64), rows), 0.0

    return transform


def _with_ones(features: Array, rows: Rows) -> Array:
    if not rows.intercept:
        return features
    xp = rows.backend.xp
    ones = xp.ones_like(features[:, :1])
    return xp.concatenate([features, ones], 1)


def _solver(matrix: Array, backend: NumpyBackend, ridge: float) -> Callable[[Array], Array]:
    """right -> matrix^-1 right for a positive definite matrix, which is overwritten."""
    too_small = f"ridge={ridge:g} is too small for this kernel matrix: rounding leaves it no inverse; raise it"
    if backend.name == "torch":
        try:
            lower = backend.xp.linalg.cholesky(matrix)
        except backend.xp.linalg.LinAlgError as error:
            raise ValueError(too_small) from error
        return lambda right: backend.xp.cholesky_solve(right, lower)
    try:
        # The matrix is symmetric: its transpose is the same, lies as LAPACK wants it, and needs no copy.
        factor = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError as error:
        raise ValueError(too_small) from error
    return lambda right: cho_solve(factor, right, check_finite=False)


def _product_unit(backend: NumpyBackend) -> float:
    """Unit roundoff of float32 products: a user may have told torch to take TF32 or bfloat16 for them."""
    if backend.name != "torch":
        return UNIT["float32"]
    shorter = {"high": 2.0**-11, "medium": 2.0**-8}
    return shorter.get(backend.xp.get_float32_matmul_precision(), UNIT["float32"])


def _largest_square(X: Any) -> float:
    squares = X.multiply(X).sum(axis=1) if hasattr(X, "multiply") else (X * X).sum(axis=1)
    return float(squares.max()) if X.shape[0] else 0.0
