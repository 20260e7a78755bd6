"""One small set of array operations, on numpy or torch, that the rest of the core is written in, and its BLAS threads.

Arrays of the core have shape (n, columns) and lie column by column in memory: a game is a column, its
sums run over contiguous numbers, and a product with the Gram matrix takes all columns at once.
numpy and torch share most of their operators and names (``xp.where``, ``xp.amax``, ``@``), so the code
above uses ``backend.xp`` directly; only what differs between the two stands here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from threading import Lock
from typing import Any

import numpy as np
from scipy.linalg import blas
from threadpoolctl import ThreadpoolController

Array = Any  # numpy.ndarray or torch.Tensor
FEW_COLUMNS = 3  # up to so many, a product column by column is faster than all at once
INT64_MAX = np.iinfo(np.int64).max
# A product of a small factor takes a tenth of a millisecond; a second BLAS thread that has to wait for a core that
# another process keeps busy takes eighty times that.
FEW_ROWS = 20_000  # up to here set-up and rounds take seconds at most, and a second thread saves less than it can cost
SMALL = 2e8  # multiplications of a product up to which a second thread is not worth its waiting


class NumpyBackend:
    """Arrays in main memory, products through BLAS."""

    name = "numpy"
    device: Any = None
    xp: Any = np
    placed: dict[str, Any] = {}  # noqa: RUF012 (what numpy's own functions need beside a type: nothing)
    kernels: Any = None  # products and the projection written for the device, where there are any

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

    def rowwise(self, x: Array) -> Array:
        """`x` row by row in memory."""
        return np.ascontiguousarray(x)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Zeros, column by column in memory."""
        return np.zeros(shape, dtype=dtype, order="F")

    def empty_square(self, n: int, dtype: str) -> Array:
        """Room for an n x n matrix; a MemoryError that names the size where there is none."""
        return np.empty((n, n), dtype=dtype)

    def copy(self, x: Array) -> Array:
        """A copy in the same memory order."""
        return x.copy(order="K")

    def numpy(self, x: Array) -> np.ndarray:
        """`x` as a numpy array."""
        return np.asarray(x)

    def numpy_rows(self, rows: list[Array]) -> list[np.ndarray]:
        """Each of `rows` as a numpy array."""
        return [np.asarray(row) for row in rows]

    def stacked(self, rows: list[Array]) -> Array:
        """`rows` of equal length as one array, (rows, length)."""
        return np.array(rows)

    def here(self) -> AbstractContextManager[Any]:
        """Where work on the device is done: the device is the current one, and too little memory is a MemoryError."""
        return nullcontext()

    def arange(self, n: int) -> Array:
        """0 .. n - 1."""
        return np.arange(n)

    def constant(self, x: np.ndarray) -> Array:
        """A small array that is the same in every round; a device keeps it after the first."""
        return x

    def assign(self, x: Array, rows: Array, values: Array) -> Array:
        """A copy of `x` (n, R) with ``x[rows[i, r], r] = values[i, r]``; negative rows are left out."""
        x = self.copy(x)
        if x.shape[1] == 1 and rows.min() >= 0:
            x[rows[:, 0], 0] = values[:, 0]
            return x
        place, game = np.nonzero(rows >= 0)
        x[rows[place, game], game] = values[place, game]
        return x

    def count(self, x: Array, rows: Array) -> None:
        """Add 1 to ``x[rows[i, r], r]``, in place; the rows of a column are distinct, negative ones are left out."""
        if x.shape[1] == 1 and rows.min() >= 0:
            x[rows[:, 0], 0] += 1
            return
        place, game = np.nonzero(rows >= 0)
        x[rows[place, game], game] += 1

    def project(self, z: Array, signs: Array, cap: Array, mu: Array) -> tuple[Array, ...] | None:
        """The projection of game/projections.py in one launch, where the device has one: dual, mu, residual, passes."""
        return None

    def side_by_side(self, *parts: Array) -> Array:
        """(n, c1), (n, c2), ... as one (n, c1 + c2 + ...), column by column in memory."""
        return np.concatenate([part.T for part in parts], axis=0).T

    def argsort(self, x: Array) -> Array:
        """Row order that sorts each column, equal values in the order they stand."""
        return np.argsort(x, axis=0, kind="stable")

    def largest(self, keys: Array, counts: np.ndarray) -> Array:
        """Row numbers of the ``counts[j]`` largest keys of column j, (max count, c), in no order; -1 in empty places.

        Non-negative keys are distinct within a column, so that the set is the same on every backend; rows with negative
        keys are never named.
        """
        if keys.shape[1] > 4 and 0 < counts.max() < len(keys):
            return _largest_of_many(keys, counts)
        if keys.shape[1] == 1:
            return _largest(keys[:, 0], int(counts[0]))[:, None]
        result = np.full((min(int(counts.max()), len(keys)), keys.shape[1]), -1, dtype=np.int64)
        for j, count in enumerate(counts):
            rows = _largest(keys[:, j], int(count))
            result[: len(rows), j] = rows
        return result

    def symmetric_product(self, matrix: Array, columns: Array) -> Array:
        """``matrix @ columns`` for a symmetric `matrix`, column by column in memory, in the type of the matrix.

        For few columns the time is that of reading the matrix, and the symmetric routine reads half of it.
        """
        columns = self.cast(columns, matrix.dtype)
        symv = self.symmetric_routine(matrix) if columns.shape[1] <= FEW_COLUMNS else None
        if symv is None:
            return np.asfortranarray(matrix @ np.ascontiguousarray(columns))
        return np.stack([symv(np.ascontiguousarray(column)) for column in columns.T]).T

    def symmetric_routine(self, matrix: Array) -> Callable[[Array], Array] | None:
        """BLAS's product of a symmetric `matrix` with a vector of its type, or None where it does not pay."""
        if len(matrix) < 64 or not matrix.flags.c_contiguous:
            return None
        return partial(blas.ssymv if matrix.dtype == np.float32 else blas.dsymv, 1.0, matrix.T)

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

    def few_rows_times(self, rows: Array, matrix: Array) -> Array:
        """``rows @ matrix``; a few rows go one by one, too."""
        return np.stack([row @ matrix for row in rows]) if len(rows) <= FEW_COLUMNS else rows @ matrix

    def exp_(self, x: Array) -> Array:
        """``exp(x)``, in place."""
        return np.exp(x, out=x)


def _largest(keys: np.ndarray, count: int) -> np.ndarray:
    # Late in a game most keys are -1, and a partition among equal keys is slow: leave them out first.
    open_rows = np.flatnonzero(keys >= 0)
    if count == 0 or len(open_rows) <= count:
        return open_rows[: min(count, len(open_rows))]
    return open_rows[np.argpartition(keys[open_rows], len(open_rows) - count)[len(open_rows) - count :]]


def _largest_of_many(keys: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """All columns at once: those above the last key that a column has room for; a loop over many short ones would take
    longer.
    """
    n, turned = len(keys), keys.T
    wanted = np.minimum(counts, n)
    # A partition among equal keys is slow: rows that are never named get keys of their own.
    parted = np.where(turned < 0, -1 - np.arange(n), turned)
    parted.partition(sorted({n - count for count in wanted.tolist() if count}), axis=1)
    last = np.where(wanted > 0, parted[np.arange(len(parted)), n - np.maximum(wanted, 1)], INT64_MAX)
    named = np.flatnonzero(turned >= np.maximum(last, 0)[:, None])
    columns = named // n
    places = np.arange(len(named)) - np.searchsorted(columns, np.arange(len(turned)))[columns]
    result = np.full((int(counts.max()), len(turned)), -1, dtype=np.int64)
    result[places, columns] = named - columns * n
    return result


NUMPY = NumpyBackend()


def is_tensor(x: Any) -> bool:
    """Whether `x` is a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def backend_for(device: str | None) -> NumpyBackend:
    """numpy for ``None``, torch on `device` otherwise; a device that is not there is an error here."""
    if device is None:
        return NUMPY
    from floral_learn.game.torch_arrays import TorchBackend

    try:
        backend = TorchBackend(device)
    except RuntimeError as error:
        raise ValueError(f"device={device!r} is not a torch device; use None, 'cpu', 'cuda' or 'cuda:0'") from error
    if backend.device is not None and backend.device.type == "cuda" and not backend.xp.cuda.is_available():
        raise ValueError(f"device={device!r} was asked for, but torch sees no CUDA device; use device=None or 'cpu'")
    return backend


def outer(rows: Array, columns: Array) -> Array:
    """rows (n, 1) or (n, c) times columns (c,), as (n, c) column by column in memory."""
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


def draw(seed: Array, counter: int | Array, rows: Array) -> Array:
    """Non-negative random 63-bit integers for `rows`, the same for the same (seed, counter, row).

    A counter that lies on a device is multiplied there, where integers wrap by themselves.
    """
    return drawn(stream(seed, counter), mix(rows + 1))


def stream(seed: Array, counter: int | Array) -> Array:
    """The half of `draw` that is the same for all rows."""
    offset = (counter + 1) * (0x9E3779B97F4A7C15 - (1 << 64))
    if isinstance(counter, int):
        offset = (offset + (1 << 63)) % (1 << 64) - (1 << 63)  # wrapped to signed
    return mix(seed + offset)


def drawn(stream: Array, mixed: Array) -> Array:
    """The other half of `draw`; `mixed` is ``mix(rows + 1)``, which stays the same from round to round."""
    return mix(stream ^ mixed) & INT64_MAX


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


_ONE_THREAD = _OneThread()


def threads_for_rows(n: int) -> AbstractContextManager[None]:
    """One BLAS thread for a whole fit of up to `FEW_ROWS` rows; the caller's for more."""
    return _ONE_THREAD if n <= FEW_ROWS else nullcontext()


def threads_for_product(multiplications: float) -> AbstractContextManager[None]:
    """One BLAS thread for rounds whose product with K takes up to `SMALL` multiplications; the caller's for more."""
    return _ONE_THREAD if multiplications <= SMALL else nullcontext()
