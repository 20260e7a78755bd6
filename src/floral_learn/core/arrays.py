"""One small set of array operations, on numpy or torch, that the rest of the core is written in.

Arrays of the core have shape (n, columns) and lie column by column in memory: a game is a column, its
sums run over contiguous numbers, and a product with the Gram matrix takes all columns at once.
numpy and torch share most of their operators and names (``xp.where``, ``xp.amax``, ``@``), so the code
above uses ``backend.xp`` directly; only what differs between the two stands here.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import blas

Array = Any  # numpy.ndarray or torch.Tensor
INT64_MAX = np.iinfo(np.int64).max


class NumpyBackend:
    """Arrays in main memory, products through BLAS."""

    name = "numpy"
    device = None
    xp: Any = np

    @property
    def float64(self) -> Any:
        """The type of the game's state (duals, signs, sums)."""
        return self.xp.float64

    @property
    def int64(self) -> Any:
        """The type of row numbers and ranking keys."""
        return self.xp.int64

    def dtype(self, name: str) -> Any:
        """The backend's own name for ``"float32"``, ``"float64"`` and so on."""
        return getattr(self.xp, name)

    def array(self, x: Array, dtype: Any = None) -> Array:
        """`x` as an array of this backend; copied only where needed."""
        return np.asarray(x, dtype=dtype)

    def cast(self, x: Array, dtype: Any) -> Array:
        """`x` in another type, same memory order; `x` itself where it has the type."""
        return x.astype(dtype, copy=False)

    def columns(self, x: Array, dtype: Any = None) -> Array:
        """`x` of shape (n,) or (n, c) as (n, c), column by column in memory."""
        x = np.asarray(x, dtype=dtype)
        return np.asfortranarray(x[:, None] if x.ndim == 1 else x)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Zeros, column by column in memory."""
        return np.zeros(shape, dtype=dtype, order="F")

    def copy(self, x: Array) -> Array:
        """A copy in the same memory order."""
        return x.copy(order="K")

    def numpy(self, x: Array) -> np.ndarray:
        """`x` as a numpy array."""
        return np.asarray(x)

    def side_by_side(self, *parts: Array) -> Array:
        """(n, c1), (n, c2), ... as one (n, c1 + c2 + ...), column by column in memory."""
        return np.concatenate([part.T for part in parts], axis=0).T

    def argsort(self, x: Array) -> Array:
        """Row order that sorts each column, equal values in the order they stand."""
        return np.argsort(x, axis=0, kind="stable")

    def largest(self, keys: Array, count: int) -> Array:
        """Row numbers of the `count` largest keys of each column, (count, c), in no order.

        Non-negative keys are distinct within a column, so that the set is the same on every backend; the places
        that too few of them leave are taken by rows with negative keys.
        """
        n = len(keys)
        if count >= n:
            return np.repeat(np.arange(n)[:, None], keys.shape[1], axis=1)
        return np.stack([_largest(column, count) for column in keys.T], axis=1)

    def symmetric_product(self, matrix: Array, columns: Array) -> Array:
        """``matrix @ columns`` for a symmetric `matrix`, column by column in memory.

        For few columns the time is that of reading the matrix, and the symmetric routine reads half of it.
        """
        if columns.shape[1] > 3 or len(matrix) < 64 or not matrix.flags.c_contiguous:
            return (columns.T @ matrix).T
        symv = blas.ssymv if matrix.dtype == np.float32 else blas.dsymv
        return np.stack([symv(1.0, matrix.T, np.ascontiguousarray(column)) for column in columns.T]).T

    def product(self, matrix: Array, columns: Array) -> Array:
        """``matrix @ columns``, column by column in memory.

        A few columns go one by one, which reads the matrix without repacking it.
        """
        if columns.shape[1] > 3:
            return (columns.T @ matrix.T).T
        return np.stack([matrix @ np.ascontiguousarray(column) for column in columns.T]).T

    def exp_(self, x: Array) -> Array:
        """``exp(x)``, in place."""
        return np.exp(x, out=x)


def _largest(keys: np.ndarray, count: int) -> np.ndarray:
    # Late in a game most keys are -1, and a partition among equal keys is slow: leave them out first.
    open_rows = np.flatnonzero(keys >= 0)
    if len(open_rows) <= count:
        rest = np.flatnonzero(keys < 0)[: count - len(open_rows)]
        return np.concatenate([open_rows, rest])
    return open_rows[np.argpartition(keys[open_rows], len(open_rows) - count)[len(open_rows) - count :]]


class TorchBackend(NumpyBackend):
    """The same operations on torch tensors, on any device with 64-bit floats."""

    name = "torch"

    def __init__(self, device: str) -> None:
        self.device = self.xp.device(device)

    @cached_property
    def xp(self) -> Any:
        """The torch module, imported on first use."""
        try:
            import torch
        except ImportError as error:
            raise ImportError(
                "device= runs the game on torch, which is not installed: pip install 'floral-learn[torch]'"
            ) from error
        return torch

    def array(self, x: Array, dtype: Any = None) -> Array:
        """`x` as a tensor on this device."""
        return self.xp.as_tensor(x, dtype=dtype, device=self.device)

    def cast(self, x: Array, dtype: Any) -> Array:
        """`x` in another type."""
        return x.to(dtype)

    def columns(self, x: Array, dtype: Any = None) -> Array:
        """`x` of shape (n,) or (n, c) as (n, c), column by column in memory."""
        x = self.array(x, dtype)
        x = x[:, None] if x.ndim == 1 else x
        return x.T.contiguous().T

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Zeros, column by column in memory."""
        out = self.xp.zeros(tuple(reversed(shape)), dtype=dtype, device=self.device)
        return out.T if len(shape) == 2 else out

    def copy(self, x: Array) -> Array:
        """A copy in the same memory order."""
        return x.clone(memory_format=self.xp.preserve_format)

    def numpy(self, x: Array) -> np.ndarray:
        """`x` as a numpy array in main memory."""
        return x.detach().cpu().numpy() if hasattr(x, "detach") else np.asarray(x)

    def side_by_side(self, *parts: Array) -> Array:
        """(n, c1), (n, c2), ... as one (n, c1 + c2 + ...), column by column in memory."""
        return self.xp.cat([part.T for part in parts], dim=0).T

    def argsort(self, x: Array) -> Array:
        """Row order that sorts each column, equal values in the order they stand."""
        return self.xp.argsort(x, dim=0, stable=True)

    def largest(self, keys: Array, count: int) -> Array:
        """Row numbers of the `count` largest keys of each column, (count, c), in no order."""
        return self.xp.topk(keys.T, min(count, len(keys)), dim=1, sorted=False).indices.T

    def symmetric_product(self, matrix: Array, columns: Array) -> Array:
        """``matrix @ columns`` for a symmetric `matrix`."""
        return (columns.T @ matrix).T

    def product(self, matrix: Array, columns: Array) -> Array:
        """``matrix @ columns``."""
        return (columns.T @ matrix.T).T

    def exp_(self, x: Array) -> Array:
        """``exp(x)``, in place."""
        return x.exp_()


NUMPY = NumpyBackend()


def backend_for(device: str | None) -> NumpyBackend:
    """numpy for ``None``, torch on `device` otherwise; a device that is not there is an error here."""
    if device is None:
        return NUMPY
    backend = TorchBackend(device)
    if backend.device is not None and backend.device.type == "cuda" and not backend.xp.cuda.is_available():
        raise ValueError(f"device={device!r} was asked for, but torch sees no CUDA device; use device=None or 'cpu'")
    return backend


def outer(rows: Array, columns: Array) -> Array:
    """rows (n, 1) times columns (c,), as (n, c) column by column in memory."""
    return (rows.T * columns[:, None]).T


def _shift(x: Array, bits: int) -> Array:
    # A logical right shift on signed integers: torch has no unsigned ones.
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def mix(x: Array) -> Array:
    """A fixed, well-stirred bijection of 64-bit integers (the finaliser of splitmix64).

    A counter-based random stream: the number for (seed, round, row) needs no generator state, so that numpy,
    torch and many machines draw the same, a batch of games draws what each game draws alone, and a fit
    that was killed continues with the very next draw.
    """
    x = (x ^ _shift(x, 30)) * -4658895280553007687  # 0xBF58476D1CE4E5B9 as a signed number
    x = (x ^ _shift(x, 27)) * -7723592293110705685  # 0x94D049BB133111EB
    return x ^ _shift(x, 31)


def draw(seed: Array, counter: int, rows: Array) -> Array:
    """Non-negative random 63-bit integers for `rows`, the same for the same (seed, counter, row)."""
    offset = ((counter + 1) * 0x9E3779B97F4A7C15 + (1 << 63)) % (1 << 64) - (1 << 63)  # wrapped to signed
    stream = mix(seed + offset)
    return mix(stream ^ mix(rows + 1)) & INT64_MAX
