"""Kernel functions k(a, b) on numpy arrays, CSR matrices and torch tensors.

rbf        exp(-gamma |a - b|^2)          laplacian  exp(-gamma |a - b|_1)
linear     a'b                            poly       (gamma a'b + coef0)^degree
sigmoid    tanh(gamma a'b + coef0)        or any callable k(A, B) -> (len(A), len(B))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import manhattan_distances

from floral_learn.game.arrays import Array, NumpyBackend, is_tensor

KERNELS = ("rbf", "linear", "poly", "sigmoid", "laplacian", "precomputed")
# Positive semi-definite for any parameters allowed here: a low-rank factor F F' exists.
_DEFINITE = ("rbf", "linear", "laplacian")


def resolve_gamma(gamma: float | str, X: Any, weight: np.ndarray | None = None) -> float:
    """The number behind ``gamma``: ``"scale"`` is 1 / (d Var(X)) and ``"auto"`` 1 / d, as in SVC.

    With a `weight` (n,) the variance is that of the weighted rows: a row of weight 2 counts as two.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if is_tensor(X):
        share = X.new_ones(len(X)) if weight is None else X.new_tensor(weight)
        share = (share / share.sum()).double()
        variance = float((share @ (X.double() ** 2)).mean() - (share @ X.double()).mean() ** 2)
    elif weight is not None and not (weight == weight[0]).all():
        share = weight / weight.sum()
        mean = np.mean(share @ X)
        if sparse.issparse(X):
            variance = np.mean(share @ X.multiply(X)) - mean**2
        else:  # centred first: far from zero the difference of squares has no digits left
            variance = np.mean(share @ (X - mean) ** 2)
    elif sparse.issparse(X):
        variance = X.multiply(X).mean() - X.mean() ** 2
    else:
        variance = X.var()
    return 1.0 / (X.shape[1] * float(variance)) if variance > 0 else 1.0


@dataclass(frozen=True)
class Kernel:
    """A kernel with its numbers: ``kernel(A, B, backend)`` is the (len(A), len(B)) matrix of values.

    Parameters
    ----------
    name : str or callable, default="rbf"
        rbf, linear, poly, sigmoid, laplacian, precomputed, or a function of two arrays of rows.
    gamma, degree, coef0 : float, int, float
        As in :class:`sklearn.svm.SVC`, gamma as a number.
    shift : ndarray of shape (d,), optional
        Subtracted from every row first (see `prepare`); the rbf and laplacian kernels do not change by it, and
        distances between rows far from the origin keep their digits in float32.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.arrays import NUMPY
    >>> from floral_learn.game.kernels import Kernel
    >>> rows = np.array([[0.0], [1.0]])
    >>> Kernel("rbf", gamma=1.0)(rows, rows, NUMPY).round(3).tolist()
    [[1.0, 0.368], [0.368, 1.0]]
    """

    name: str | Callable[..., Any] = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    shift: np.ndarray | None = None

    @property
    def definite(self) -> bool:
        """Whether the kernel is known to be positive semi-definite."""
        return self.name in _DEFINITE or (self.name == "poly" and self.coef0 >= 0 and self.gamma >= 0)

    def prepare(self, X: Any, backend: NumpyBackend, dtype: str) -> Any:
        """`X` in the type and place where the kernel is computed; CSR and callables stay on numpy.

        CSR rows stay in float64: a shift would fill them, and without one distances need the digits.
        """
        if sparse.issparse(X):
            return X.tocsr().astype(np.float64, copy=False)
        if is_tensor(X) and backend.name == "torch":  # a tensor: stays on the device
            exact = X.dtype == backend.float64
            X = X.to(backend.device, backend.float64 if exact else backend.dtype("float32"))
            X = X if self.shift is None else X - backend.array(self.shift, X.dtype)
            return X.to(backend.dtype(dtype)).contiguous()
        X, kind = np.asarray(X), np.dtype(np.float64 if callable(self.name) else dtype)
        if self.shift is None:
            X = np.ascontiguousarray(X, dtype=kind)
        else:
            X = _shifted(X, self.shift, kind)
        return X if callable(self.name) else backend.array(X)

    def squares(self, A: Any) -> Any:
        """What `__call__` needs of the rows `A` alone, for those who ask it many times; None for most kernels."""
        return self.gamma * _squares(A) if self.name == "rbf" else None

    def __call__(self, A: Any, B: Any, backend: NumpyBackend, squares: Any = None) -> Array:
        """Kernel values between prepared rows, as an array of `backend`; `squares` are those of `A`, if at hand."""
        if callable(self.name):
            values = np.asarray(self.name(A, B), dtype=np.float64)
            if values.shape != (A.shape[0], B.shape[0]):
                raise ValueError(
                    f"the kernel callable returned shape {values.shape} for {A.shape[0]} and {B.shape[0]} rows"
                )
            return backend.array(values)
        if self.name == "laplacian":
            distances = self._manhattan(A, B, backend) * -self.gamma
            return backend.xp.exp(distances, out=distances)
        if sparse.issparse(A) or sparse.issparse(B):
            inner = backend.array(_dense(_host(A, backend) @ _host(B, backend).T))
        else:
            inner = A @ B.T
        if self.name == "rbf":
            inner *= 2 * self.gamma
            inner -= backend.array(self.gamma * _squares(A) if squares is None else squares)[:, None]
            inner -= backend.array(self.gamma * _squares(B))[None, :]
            return backend.xp.exp(backend.xp.clip(inner, None, 0, out=inner), out=inner)
        if self.name == "linear":
            return inner
        inner = inner * self.gamma + self.coef0
        return inner**self.degree if self.name == "poly" else backend.xp.tanh(inner)

    def diagonal(self, X: Any, backend: NumpyBackend) -> Array:
        """k(x, x) for every row, (n,), without the matrix."""
        if self.name in ("rbf", "laplacian"):
            return backend.zeros((X.shape[0],), backend.float64) + 1.0
        if callable(self.name):
            rows = (X[i : i + 1] for i in range(X.shape[0]))
            return backend.array(np.array([float(np.squeeze(self.name(row, row))) for row in rows]))
        squares = backend.cast(backend.array(_squares(X)), backend.float64)
        if self.name == "linear":
            return squares
        squares = squares * self.gamma + self.coef0
        return squares**self.degree if self.name == "poly" else backend.xp.tanh(squares)

    @staticmethod
    def _manhattan(A: Any, B: Any, backend: NumpyBackend) -> Array:
        if backend.name == "torch" and not sparse.issparse(A) and not sparse.issparse(B):
            return backend.xp.cdist(A, B, p=1)
        A, B = _host(A, backend), _host(B, backend)
        return backend.array(manhattan_distances(A, B).astype(A.dtype, copy=False))


def _shifted(X: np.ndarray, shift: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """`X` - `shift` in `dtype`, a few rows at a time: no copy in the type of X is made."""
    out, step = np.empty(X.shape, dtype), max(1, 2**16 // max(X.shape[1], 1))
    for start in range(0, len(X), step):
        out[start : start + step] = X[start : start + step] - shift
    return out


def _host(X: Any, backend: NumpyBackend) -> Any:
    return X if sparse.issparse(X) else backend.numpy(X)


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def _squares(X: Any) -> Any:
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return (X * X).sum(1)
