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
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, rbf_kernel

UNIT = np.finfo(np.float64).eps / 2  # unit roundoff


@dataclass(frozen=True)
class TrainingRows:
    """Training rows with their weights and the kernel between them and others."""

    X: Any
    weight: np.ndarray
    kernel: str
    gamma: float
    intercept: bool  # the constant 1 is one more feature: it is penalised as the others are
    ridge: float

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.weight)

    def values(self, A: Any, B: Any) -> np.ndarray:
        """Kernel values (len(A), len(B)), without the intercept."""
        if self.kernel == "linear":
            return linear_kernel(A, B, dense_output=True)
        kernel = rbf_kernel if self.kernel == "rbf" else laplacian_kernel
        return kernel(A, B, gamma=self.gamma)

    def value_error(self, X: Any) -> float:
        """How far one kernel value can be off: the terms that are summed for it, times their roundings."""
        radius = max(_largest_square(self.X), _largest_square(X))
        size = radius
        if self.kernel != "linear":
            size = 1.0 + 4.0 * self.gamma * (radius if self.kernel == "rbf" else np.sqrt(X.shape[1] * radius))
        return UNIT * (X.shape[1] + 8) * size


class DenseWeights:
    """a(x) through the n x n kernel matrix: exact kernel ridge, O(n^2) memory."""

    def __init__(self, rows: TrainingRows) -> None:
        self.rows = rows
        self.root = np.sqrt(rows.weight)
        matrix = rows.values(rows.X, rows.X)
        matrix += rows.intercept
        matrix *= self.root[:, None]
        matrix *= self.root
        matrix.flat[:: rows.n + 1] += rows.ridge
        trace = float(matrix.trace())
        self.solve = _solver(matrix, rows.ridge)
        # |S^-1 W^1/2 t| for any targets in [-1, 1]
        self.reach = float(np.sqrt(rows.weight.sum())) / rows.ridge
        self.step = UNIT * (3 * rows.n + 1) * trace

    def coefficients(self, targets: np.ndarray) -> np.ndarray:
        """Kernel coefficients (n, c) of the regression on targets (n, c)."""
        return self.solve(targets * self.root[:, None]) * self.root[:, None]

    def features(self, X: Any) -> np.ndarray:
        """What the coefficients are multiplied with, (m, n)."""
        return self.rows.values(X, self.rows.X) + self.rows.intercept

    def block(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """a(x) as (m, n) and the slack (m,) of any lead."""
        rows = self.rows
        right = self.features(X).T * self.root[:, None]
        solved = self.solve(right)
        a = (solved * self.root[:, None]).T
        solve = self.reach * self.step * np.linalg.norm(solved, axis=0)
        values = self.reach * float(np.sqrt(rows.weight.sum())) * rows.value_error(X)
        sums = UNIT * (rows.n + 2) * (np.abs(a).sum(axis=1) + self.reach * np.linalg.norm(right, axis=0))
        return a, 4.0 * (solve + sums + values)


class FactorWeights:
    """a(x) through features F (n, r) of the rows that no label has touched: O(n r) memory."""

    def __init__(self, rows: TrainingRows, transform: Callable[[Any], tuple[np.ndarray, float]]) -> None:
        """``transform(X)`` gives the features (m, r) of rows and how far their norms can be off."""
        self.rows, self.transform = rows, transform
        F = self.features(rows.X)
        self.weighted = F * rows.weight[:, None]
        matrix = F.T @ self.weighted
        self.rank = len(matrix)
        matrix.flat[:: self.rank + 1] += rows.ridge
        trace = float(matrix.trace())
        self.solve = _solver(matrix, rows.ridge)
        self.spread = float(np.linalg.norm(self.weighted, axis=1).sum())  # sum_i w_i |F_i|
        # |S^-1 F'W t| <= max_s s / (s^2 + ridge) |W^1/2 t|
        self.reach = float(np.sqrt(rows.weight.sum())) / (2.0 * np.sqrt(rows.ridge))
        self.step = UNIT * (rows.n + 3 * self.rank + 1) * trace

    def coefficients(self, targets: np.ndarray) -> np.ndarray:
        """Weights (r, c) of the features in the regression on targets (n, c)."""
        return self.solve(self.weighted.T @ targets)

    def features(self, X: Any) -> np.ndarray:
        """What the coefficients are multiplied with, (m, r)."""
        return self._with_intercept(self.transform(X)[0])

    def _with_intercept(self, features: np.ndarray) -> np.ndarray:
        return np.column_stack([features, np.ones(len(features))]) if self.rows.intercept else features

    def block(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """a(x) as (m, n) and the slack (m,) of any lead."""
        features, off = self.transform(X)
        solved = self.solve(self._with_intercept(features).T)  # (r, m)
        a = solved.T @ self.weighted.T
        length = np.linalg.norm(solved, axis=0)
        sums = (self.rows.n + 2) * np.abs(a).sum(axis=1) + (self.rank + 4) * self.spread * length
        return a, 4.0 * (self.reach * (self.step * length + off) + UNIT * sums)


def landmark_transform(rows: TrainingRows, landmarks: Any, corner: np.ndarray) -> Callable[..., Any]:
    """Features of any rows from a pivoted Cholesky factor: phi(x) = L^-1 k(landmarks, x), L = ``corner``."""
    inverse = solve_triangular(corner, np.eye(len(corner)), lower=True)
    grows = float(np.linalg.norm(inverse)) * np.sqrt(len(corner))
    return lambda X: (rows.values(X, landmarks) @ inverse.T, grows * rows.value_error(X))


def column_transform(X: Any) -> tuple[np.ndarray, float]:
    """The features themselves, for the linear kernel."""
    return (X.toarray() if hasattr(X, "toarray") else X), 0.0


def _solver(matrix: np.ndarray, ridge: float) -> Callable[[np.ndarray], np.ndarray]:
    """right -> matrix^-1 right for a positive definite matrix, which is overwritten."""
    try:
        # The matrix is symmetric: its transpose is the same, lies as LAPACK wants it, and needs no copy.
        factor = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError as error:
        raise ValueError(
            f"ridge={ridge:g} is too small for this kernel matrix: rounding leaves it no inverse; raise it"
        ) from error
    return lambda right: cho_solve(factor, right, check_finite=False)


def _largest_square(X: Any) -> float:
    squares = X.multiply(X).sum(axis=1) if hasattr(X, "multiply") else (X * X).sum(axis=1)
    return float(squares.max()) if X.shape[0] else 0.0
