"""The operations of game/arrays.py on torch tensors, on any device with 64-bit floats."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cached_property
from typing import Any

import numpy as np

from floral_learn.base.extras import install_line
from floral_learn.game.arrays import Array, NumpyBackend, is_tensor


class TorchBackend(NumpyBackend):
    """The same operations on torch tensors, on any device with 64-bit floats."""

    name = "torch"

    def __init__(self, device: str) -> None:
        self.device = self.xp.device(device)
        self.placed = {"device": self.device}
        self._constants: dict[tuple[Any, ...], Array] = {}

    @cached_property
    def xp(self) -> Any:
        """The torch module, imported on first use."""
        try:
            import torch
        except ImportError as error:
            raise ImportError(
                f"device= runs the game on torch, which is not installed: {install_line('torch')}"
            ) from error
        return torch

    def array(self, x: Array, dtype: Any = None) -> Array:
        """`x` as a tensor on this device; an array that may not be written to is copied, as torch has no such thing."""
        if isinstance(x, np.ndarray) and not x.flags.writeable:
            x = x.copy()
        return self.xp.as_tensor(x, dtype=dtype, device=self.device)

    def cast(self, x: Array, dtype: Any) -> Array:
        """`x` in another type."""
        return x.to(dtype)

    def columns(self, x: Array, dtype: Any = None) -> Array:
        """`x` of shape (n,) or (n, c) as (n, c), column by column in memory."""
        x = self.array(x, dtype)
        x = x[:, None] if x.ndim == 1 else x
        return x.T.contiguous().T

    def rowwise(self, x: Array) -> Array:
        """`x` row by row in memory."""
        return x.contiguous()

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Zeros, column by column in memory."""
        try:
            out = self.xp.zeros(tuple(reversed(shape)), dtype=dtype, device=self.device)
        except self.xp.OutOfMemoryError as error:
            size = np.prod(shape, dtype=float) * dtype.itemsize / 1e9
            raise MemoryError(
                f"an array of shape {shape} takes {size:.3g} GB, more than is free on {self.device}; "
                "use a smaller rank or device=None"
            ) from error
        return out.T if len(shape) == 2 else out

    def empty_square(self, n: int, dtype: str) -> Array:
        """Room for an n x n matrix; a MemoryError that names the size where there is none."""
        try:
            return self.xp.empty((n, n), dtype=self.dtype(dtype), device=self.device)
        except RuntimeError as error:  # torch's own out-of-memory errors are RuntimeErrors
            size = n * n * self.dtype(dtype).itemsize / 1e9
            smaller = "" if dtype == "float32" else ", or dtype='float32'"
            raise MemoryError(
                f"a dense Gram of {n:,} rows takes {size:.3g} GB, more than is free on {self.device}; "
                f"use gram='low_rank' or gram='chunked'{smaller}"
            ) from error

    def copy(self, x: Array) -> Array:
        """A copy in the same memory order."""
        return x.clone(memory_format=self.xp.preserve_format)

    def numpy(self, x: Array) -> np.ndarray:
        """`x` as a numpy array in main memory."""
        return x.detach().cpu().numpy() if is_tensor(x) else np.asarray(x)

    def numpy_rows(self, rows: list[Array]) -> list[np.ndarray]:
        """Each of `rows` as a numpy array; those of one shape come over in one piece, as each copy makes one wait."""
        out: list[Any] = list(rows)
        alike: dict[tuple[Any, ...], list[int]] = {}
        for i, row in enumerate(rows):
            if is_tensor(row):
                alike.setdefault((tuple(row.shape), row.dtype), []).append(i)
            else:
                out[i] = np.asarray(row)
        for places in alike.values():
            for i, row in zip(places, self.numpy(self.xp.stack([rows[i] for i in places]))):
                out[i] = row
        return out

    @contextmanager
    def here(self) -> Iterator[None]:
        """Where work on the device is done: the device is the current one, and too little memory is a MemoryError."""
        current = self.xp.cuda.device(self.device) if self.device.type == "cuda" else nullcontext()
        try:
            with current:
                yield
        except self.xp.OutOfMemoryError as error:
            raise MemoryError(
                f"{self.device} has too little free memory for this game; use gram='low_rank', a smaller rank=, fewer "
                f"rows or device=None ({str(error).splitlines()[0]})"
            ) from error

    def arange(self, n: int) -> Array:
        """0 .. n - 1."""
        return self.xp.arange(n, device=self.device)

    def constant(self, x: np.ndarray) -> Array:
        """A small array that is the same in every round: a copy to a device makes the host wait, so it is made once."""
        key = (x.tobytes(), x.shape, x.dtype.str)
        if key not in self._constants:
            self._constants[key] = self.array(np.ascontiguousarray(x))
        return self._constants[key]

    def assign(self, x: Array, rows: Array, values: Array) -> Array:
        """A copy of `x` (n, R) with ``x[rows[i, r], r] = values[i, r]``; negative rows are left out."""
        xp = self.xp
        # Picking out the valid entries would make the host wait for their number: the others repeat the column's first
        # entry instead, or write row 0 as it is where there is none.
        first, valid = rows[0] >= 0, rows >= 0
        row = xp.where(first, rows[0], 0)
        value = xp.where(first, values[0], x[0])
        out = self.copy(x)
        out.T.scatter_(1, xp.where(valid, rows, row).T, xp.where(valid, values, value).T)
        return out

    def count(self, x: Array, rows: Array) -> None:
        """Add 1 to ``x[rows[i, r], r]``, in place; negative rows are left out."""
        x.T.scatter_add_(1, rows.clip(0, None).T, self.cast(rows >= 0, x.dtype).T)

    @cached_property
    def kernels(self) -> Any:
        """The Triton kernels of game/cuda.py, or None where there is no CUDA device or no Triton."""
        if self.device.type != "cuda":
            return None
        try:
            from floral_learn.game import cuda
        except ImportError:
            return None
        return cuda

    def project(self, z: Array, signs: Array, cap: Array, mu: Array) -> tuple[Array, ...] | None:
        """The projection of game/projections.py in one launch, where the device has one: dual, mu, residual, passes."""
        if self.kernels is None:
            return None
        columns = [self.columns(x) for x in (z, signs, cap)]
        return self.kernels.project(*columns, mu)

    def side_by_side(self, *parts: Array) -> Array:
        """(n, c1), (n, c2), ... as one (n, c1 + c2 + ...), column by column in memory."""
        return self.xp.cat([part.T for part in parts], dim=0).T

    def stacked(self, rows: list[Array]) -> Array:
        """`rows` of equal length as one tensor, (rows, length)."""
        return self.xp.stack([self.array(row) for row in rows])

    def take_columns(self, x: Array, places: Array) -> Array:
        """``x[:, places]``."""
        return x[:, places]

    def argsort(self, x: Array) -> Array:
        """Row order that sorts each column, equal values in the order they stand."""
        return self.xp.argsort(x, dim=0, stable=True)

    def largest(self, keys: Array, counts: np.ndarray) -> Array:
        """Row numbers of the ``counts[j]`` largest keys of column j, (max count, c), in no order; -1 in empty places.

        One launch for all columns; those with a smaller count end where it does.
        """
        even = int(counts.max()) == int(counts.min())
        rows = self.xp.topk(keys.T, min(int(counts.max()), len(keys)), dim=1, sorted=not even).indices.T
        wanted = keys[rows, self.arange(keys.shape[1])[None, :]] >= 0
        if not even:
            wanted = wanted & (self.arange(len(rows))[:, None] < self.constant(counts))
        return self.xp.where(wanted, rows, -1)

    def symmetric_product(self, matrix: Array, columns: Array) -> Array:
        """``matrix @ columns`` for a symmetric `matrix`, column by column in memory."""
        kernels = self.kernels
        if kernels is not None and kernels.fits(matrix, columns.shape[1]):
            return kernels.half_product(matrix, columns)
        return (self.cast(columns, matrix.dtype).T @ matrix).T

    def product(self, matrix: Array, columns: Array) -> Array:
        """``matrix @ columns``."""
        wide = matrix.shape[1] >= 64 * matrix.shape[0] and matrix.stride(1) == 1 and columns.shape[1] <= 2
        if wide and self.kernels is not None and matrix.dtype == self.xp.float32:
            return self.kernels.wide_product(matrix, columns)
        return (columns.T @ matrix.T).T

    def few_rows_times(self, rows: Array, matrix: Array) -> Array:
        """``rows @ matrix``."""
        return rows @ matrix

    def exp_(self, x: Array) -> Array:
        """``exp(x)``, in place."""
        return x.exp_()
