"""One small set of array operations, on numpy or torch, that the rest of this room is written in, and its BLAS threads.

Arrays have shape (n, columns) and lie column by column in memory: a game is a column, its sums run over contiguous
numbers, and a product with the Gram matrix takes all columns at once. numpy and torch share most of their operators and
names (``xp.where``, ``xp.amax``, ``@``), so the code above uses ``backend.xp`` directly; only what differs between the
two stands here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
from scipy.linalg import blas
from threadpoolctl import ThreadpoolController

from floral_learn.base.extras import install_line

Array = Any  # numpy.ndarray or torch.Tensor
# up to so many, a product column by column is faster than all at once (no repacking of the matrix)
FEW_COLUMNS = 3
# Rows of up to so many numbers of K each: a product takes milliseconds on one core, and a second BLAS thread that waits
# for a core that another process keeps busy takes longer than that.
SMALL_PRODUCT = 2e7


class NumpyBackend:
    """Arrays in main memory, products through BLAS."""

    name = "numpy"
    device: Any = None
    xp: Any = np
    float64: Any = np.float64  # the type of the game's state (duals, signs, sums)
    int64: Any = np.int64  # the type of row numbers and ranking keys

    def dtype(self, name: str) -> Any:
        """The backend's own name for ``"float32"``, ``"float64"`` and so on."""
        return getattr(self.xp, name)

    def array(self, x: Array, dtype: Any = None) -> Array:
        """`x` as an array of this backend; copied only where needed."""
        return np.asarray(x, dtype=dtype)

    def cast(self, x: Array, dtype: Any) -> Array:
        """`x` in another type, same memory order; `x` itself where it has the type."""
        return x if x.dtype == dtype else x.astype(dtype)

    def columns(self, x: Array, dtype: Any = None) -> Array:
        """`x` of shape (n,) or (n, c) as (n, c), column by column in memory."""
        x = np.asarray(x, dtype=dtype)
        return np.asfortranarray(x[:, None] if x.ndim == 1 else x)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Zeros, column by column in memory."""
        return np.zeros(shape, dtype=dtype, order="F")

    def numpy(self, x: Array) -> np.ndarray:
        """`x` as a numpy array."""
        return np.asarray(x)

    def here(self) -> AbstractContextManager[Any]:
        """Where work on the device is done: the device is the current one, and too little memory is a MemoryError."""
        return nullcontext()

    def arange(self, n: int) -> Array:
        """0 .. n - 1."""
        return np.arange(n)

    def assign(self, x: Array, rows: Array, values: Array) -> Array:
        """A copy of `x` (n, R) with ``x[rows[i, r], r] = values[i, r]``; negative rows are left out."""
        x = x.copy(order="K")
        if x.shape[1] == 1:  # the one game has no empty places
            x[rows[:, 0], 0] = values[:, 0]
            return x
        place, game = np.nonzero(rows >= 0)
        x[rows[place, game], game] = values[place, game]
        return x

    def top(self, keys: Array, count: int) -> Array:
        """Places of the `count` largest keys (n,) that are not negative, in no order; a device fills up with -1."""
        bar = len(keys) - count
        if bar <= 0:
            return (keys >= 0).nonzero()[0]
        parted = keys.copy()
        parted.partition(bar)
        return (keys >= (parted[bar] if parted[bar] > 0 else 0)).nonzero()[0]

    def largest(self, keys: Array, counts: np.ndarray, width: int) -> Array:
        """Row numbers of the ``counts[j]`` largest keys of column j, -1 in empty places; in no order.

        Columns j, j + width, ... are lists of one game, whose rows stand below one another: (places, width). Keys are
        distinct within a column, so that the set is the same on every backend; rows with negative keys are never named.
        """
        n, turned = len(keys), keys.T
        wanted = np.minimum(counts, n)
        places = n - np.maximum(wanted, 1)
        parted = np.partition(turned, sorted(set(places.tolist())), axis=1)
        last = np.where(wanted > 0, parted[np.arange(len(parted)), places], sys.maxsize)
        named = np.flatnonzero(turned >= np.maximum(last, 0)[:, None])
        columns = named // n
        places = np.arange(len(named)) - np.searchsorted(columns, np.arange(len(turned)))[columns]
        result = np.full((int(wanted.max()), len(turned)), -1, dtype=np.int64)
        result[places, columns] = named - columns * n
        return np.concatenate([result[:, at : at + width] for at in range(0, len(turned), width)])

    def symmetric_product(self, matrix: Array, columns: Array) -> Array:
        """``matrix @ columns`` for a symmetric `matrix`, column by column in memory, in the type of the matrix.

        For few columns the time is that of reading the matrix, and the symmetric routine reads half of it.
        """
        columns = self.cast(columns, matrix.dtype)
        if columns.shape[1] > FEW_COLUMNS or len(matrix) < 64 or not matrix.flags.c_contiguous:
            return np.asfortranarray(matrix @ np.ascontiguousarray(columns))
        symv = blas.ssymv if matrix.dtype == np.float32 else blas.dsymv
        if columns.shape[1] == 1:
            return symv(1.0, matrix.T, columns[:, 0])[:, None]
        return np.stack([symv(1.0, matrix.T, column) for column in map(np.ascontiguousarray, columns.T)]).T

    def product(self, matrix: Array, columns: Array) -> Array:
        """``matrix @ columns``, column by column in memory.

        A few columns go one by one, which reads the matrix without repacking it.
        """
        if columns.shape[1] > FEW_COLUMNS:
            return np.asfortranarray(matrix @ np.ascontiguousarray(columns))
        return np.stack([matrix @ np.ascontiguousarray(column) for column in columns.T]).T

    def take_columns(self, x: Array, places: Array) -> Array:
        """``x[:, places]``."""
        return x.take(places, axis=1)


NUMPY = NumpyBackend()


class TorchBackend(NumpyBackend):
    """The same operations on torch tensors, on any device with 64-bit floats."""

    name = "torch"

    def __init__(self, device: str) -> None:
        try:
            import torch
        except ImportError as error:
            raise ImportError(f"device= needs torch, which is not installed: {install_line('torch')}") from error
        self.xp, self.device = torch, torch.device(device)
        self.float64, self.int64 = torch.float64, torch.int64

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

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Zeros, column by column in memory."""
        out = self.xp.zeros(shape[::-1], dtype=dtype, device=self.device)
        return out.T if len(shape) == 2 else out

    def numpy(self, x: Array) -> np.ndarray:
        """`x` as a numpy array in main memory."""
        return x.detach().cpu().numpy() if is_tensor(x) else np.asarray(x)

    @contextmanager
    def here(self) -> Iterator[None]:
        """Where work on the device is done: the device is the current one, and too little memory is a MemoryError."""
        current = self.xp.cuda.device(self.device) if self.device.type == "cuda" else nullcontext()
        try:
            with current:
                yield
        except self.xp.OutOfMemoryError as error:
            raise MemoryError(
                f"{self.device} has too little free memory for this game; use gram='low_rank', a smaller rank "
                f"(gram=128), fewer rows or device=None ({str(error).splitlines()[0]})"
            ) from error

    def arange(self, n: int) -> Array:
        """0 .. n - 1."""
        return self.xp.arange(n, device=self.device)

    def assign(self, x: Array, rows: Array, values: Array) -> Array:
        """A copy of `x` (n, R) with ``x[rows[i, r], r] = values[i, r]``; negative rows are left out."""
        xp = self.xp
        # Picking out the valid entries would make the host wait for their number: the others repeat the column's first
        # entry instead, or write row 0 as it is where there is none.
        first, valid = rows[0] >= 0, rows >= 0
        row = xp.where(first, rows[0], 0)
        value = xp.where(first, values[0], x[0])
        out = x.clone(memory_format=xp.preserve_format)
        out.T.scatter_(1, xp.where(valid, rows, row).T, xp.where(valid, values, value).T)
        return out

    def top(self, keys: Array, count: int) -> Array:
        """Places of the `count` largest keys (n,), -1 for negative ones."""
        found, rows = self.xp.topk(keys, min(count, len(keys)))
        return self.xp.where(found >= 0, rows, -1)

    def largest(self, keys: Array, counts: np.ndarray, width: int) -> Array:
        """Row numbers of the ``counts[j]`` largest keys of column j, -1 in empty places; in no order."""
        rows = self.xp.topk(keys.T, min(int(counts.max()), len(keys)), dim=1).indices.T
        candidate = keys[rows, self.arange(keys.shape[1])[None, :]] >= 0
        among_first = self.arange(len(rows))[:, None] < self.array(np.ascontiguousarray(counts))
        named = self.xp.where(candidate & among_first, rows, -1)
        return self.xp.concatenate([named[:, at : at + width] for at in range(0, named.shape[1], width)])

    def symmetric_product(self, matrix: Array, columns: Array) -> Array:
        """``matrix @ columns`` for a symmetric `matrix`, column by column in memory."""
        return (self.cast(columns, matrix.dtype).T @ matrix).T

    def product(self, matrix: Array, columns: Array) -> Array:
        """``matrix @ columns``."""
        return (columns.T @ matrix.T).T

    def take_columns(self, x: Array, places: Array) -> Array:
        """``x[:, places]``."""
        return x[:, places]


def is_tensor(x: Any) -> bool:
    """Whether `x` is a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_dask(x: Any) -> bool:
    """Whether `x` is a dask collection; dask is not imported to find out."""
    return callable(getattr(x, "__dask_graph__", None))


def as_host(x: Any) -> Any:
    """Tensors and dask collections in main memory; anything else is returned as it is."""
    if is_dask(x):
        return x.compute()
    if not is_tensor(x):
        return x
    x = x.detach().cpu()
    half = x.dtype.is_floating_point and x.itemsize < 4  # numpy has no bfloat16
    return (x.float() if half else x).numpy()


def backend_for(device: str | None) -> NumpyBackend:
    """numpy for ``None``, torch on `device` otherwise; a device that is not there is an error here."""
    if device is None:
        return NUMPY
    try:
        backend = TorchBackend(device)
    except RuntimeError as error:
        raise ValueError(f"device={device!r} is not a torch device; use None, 'cpu', 'cuda' or 'cuda:0'") from error
    if backend.device.type == "cuda" and not backend.xp.cuda.is_available():
        raise ValueError(f"device={device!r} was asked for, but torch sees no CUDA device; use device=None or 'cpu'")
    return backend


def outer(rows: Array, columns: Array) -> Array:
    """rows (n, 1) or (n, c) times columns (c,) or a number, as (n, c) column by column in memory."""
    return (rows.T * (columns[:, None] if np.ndim(columns) else columns)).T


def mix(x: Array) -> Array:
    """A fixed, well-stirred bijection of 64-bit integers (the finaliser of splitmix64).

    A counter-based random stream: the number for (seed, counter, row) needs no generator state, so that numpy, torch
    and a cluster draw the same, and a batch of games draws what each game draws alone. Shifts are logical ones on
    signed integers, since torch has no unsigned ones.
    """
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * -4658895280553007687  # 0xBF58476D1CE4E5B9 as a signed number
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685  # 0x94D049BB133111EB
    return x ^ ((x >> 31) & 0x1FFFFFFFF)


def stream(seed: Array, counter: int | Array) -> Array:
    """The half of `draw` that is the same for all rows; the other half stays the same from round to round."""
    offset = (counter + 1) * (0x9E3779B97F4A7C15 - (1 << 64))
    if isinstance(counter, int):
        offset = (offset + (1 << 63)) % (1 << 64) - (1 << 63)  # wrapped to signed
    return mix(seed + offset)


def draw(seed: Array, counter: int | Array, rows: Array) -> Array:
    """Non-negative random 63-bit integers for `rows`, the same for the same (seed, counter, row)."""
    return mix(stream(seed, counter) ^ mix(rows + 1)) & sys.maxsize


@cache
def _controller() -> Any:
    return ThreadpoolController().select(user_api="blas")


class _OneThread:
    """One BLAS thread while at least one game asks for it, then the caller's setting again.

    The setting belongs to the whole process: games played in several Python threads share it, so that the first one in
    sets it and the last one out restores it.
    """

    def __init__(self) -> None:
        self._lock, self._players = Lock(), 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._players += 1
            if self._players == 1:
                self._limits = _controller().limit(limits=1)
                self._limits.__enter__()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._players -= 1
            if self._players == 0 and self._limits is not None:
                self._limits.__exit__(None, None, None)


ONE_THREAD = _OneThread()
