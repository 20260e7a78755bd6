"""Gram operators: all that a solver sees of the kernel matrix K is a product with columns.

`DenseGram` holds K and `LowRankGram` (game/low_rank.py) a factor F with K ~ F F'. Labels never enter K: it is built
once.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

from floral_learn.base.validation import LARGEST
from floral_learn.game.arrays import NUMPY, Array, NumpyBackend, draw
from floral_learn.game.kernels import Kernel

EXACT_ROWS = 1000  # up to here the whole matrix is small and fast: exact, in float64
# up to here it is the choice where a small factor does not do; up to twice as many if none does
DENSE_ROWS = 3000
# a kernel matrix or factor that nobody asked for takes at most so much: half of a small laptop's memory
MAX_BYTES = 4e9


def format_bytes(count: float) -> str:
    """``4.2 GB`` and the like."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


class Gram:
    """What every Gram operator has: its size, its cost, products, and its largest eigenvalue.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.gram import DenseGram
    >>> gram = DenseGram(np.diag([3.0, 1.0]))
    >>> gram.matmat(np.ones((2, 1))).tolist(), round(gram.lambda_max(), 2)
    ([[3.0], [1.0]], 3.0)
    """

    kind = ""
    n: int
    dtype: str
    nbytes: int
    backend: NumpyBackend

    def matmat(self, columns: Array) -> Array:
        """``K @ columns`` for float64 `columns` of shape (n, c); computed in the operator's own type."""
        raise NotImplementedError

    def expansion(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows and coefficients of f(x) = sum_j coef_j k(x, x_rows[j]) for signed duals `weights` (n, c)."""
        rows = np.flatnonzero(np.any(weights != 0, axis=1))
        return rows, weights[rows]

    def describe(self) -> str:
        """One line for people: what was chosen and what it takes."""
        return f"{self.kind}, {self.n:,} rows, {self.dtype}, {format_bytes(self.nbytes)}"

    def diagonal(self) -> np.ndarray:
        """k(x_i, x_i) as the operator has it, (n,): what a row's own label adds to its own decision value."""
        raise NotImplementedError

    def lambda_max(
        self, steps: int = 30, tol: float = 1e-3, centred: bool = False, weight: Array | None = None
    ) -> float:
        """An estimate, from above, of the largest eigenvalue of K or (centred) of HKH, H = I - 11'/n.

        Under the labels of the last round the signed duals sum to zero, so that another projected step with these
        labels sees only HKH and is stable for eta < 2 / lambda_max(HKH); after new flips only 2 / lambda_max(K) is
        shown. For an rbf kernel with a small gamma K is nearly constant and the centred bound is several times larger.
        `weight` (n, 1) scales rows and columns by its square root, as sample weights do.
        """
        return (1 + tol) * self.eigenvalue("LA", steps, tol, centred, weight)

    def eigenvalue(
        self, end: str, steps: int = 30, tol: float = 1e-3, centred: bool = False, weight: Array | None = None
    ) -> float:
        """The largest ("LA") or smallest ("SA") eigenvalue by Lanczos iteration, to a relative error of about `tol`."""
        root = self.backend.zeros((self.n, 1), self.backend.float64) + 1 if weight is None else weight**0.5
        normal = root / (root * root).sum() ** 0.5

        def image(vector: np.ndarray) -> np.ndarray:
            v = self.backend.columns(vector.reshape(-1))
            v = v - normal * (normal * v).sum() if centred else v
            v = self.matmat(v) if weight is None else root * self.matmat(root * v)
            return self.backend.numpy(v - normal * (normal * v).sum() if centred else v)[:, 0]

        if self.n - centred <= 2:  # too small for an iteration
            matrix = np.stack([image(unit) for unit in np.eye(self.n)])
            return float(np.linalg.eigvalsh(matrix)[-1 if end == "LA" else 0])
        random = draw(np.zeros(1, np.int64), 0, np.arange(self.n)) / 2.0**63
        start = self.backend.numpy(root)[:, 0] * (random + 0.5)
        first = image(start)
        if not np.isfinite(first).all():
            raise ValueError("the kernel has values that are not finite: check the kernel and the scale of X")
        peak = float(np.abs(first).max())
        whole = self.matmat(self.backend.columns(start)) if centred else first
        if peak <= 1e-13 * float(abs(whole).max()):  # equal rows: what is left is rounding
            return 0.0
        if not 1 / LARGEST < peak < LARGEST:  # ARPACK takes squares
            words = f"no value above {peak:.1e}" if peak < 1 else f"values up to {peak:.1e}"
            raise ValueError(f"the kernel has {words}: standardise the columns of X first")
        operator = LinearOperator((self.n, self.n), matvec=image, dtype=np.float64)
        size = min(self.n - 1, 20)
        try:
            return float(eigsh(operator, 1, which=end, v0=first, ncv=size, tol=tol, maxiter=steps)[0][0])
        except ArpackNoConvergence as error:
            if len(error.eigenvalues):
                return float(error.eigenvalues[0])
        except ArpackError:  # the start has no other direction in its image: a kernel of one or two eigenvalues
            pass
        return _by_power(image, first, end)


def _by_power(image: Callable[[np.ndarray], np.ndarray], vector: np.ndarray, end: str) -> float:
    """A Rayleigh quotient after a few power iterations: inside the spectrum, near its largest or smallest end."""
    for _ in range(20):
        vector = image(vector / np.linalg.norm(vector))
    largest = float(np.linalg.norm(vector))
    if end == "LA":
        return largest
    vector = draw(np.ones(1, np.int64), 0, np.arange(len(vector))) / 2.0**63 - 0.5
    for _ in range(60):  # K - largest has the smallest end of K as its largest in size
        vector = image(vector) - largest * vector
        vector /= np.linalg.norm(vector)
    return float(vector @ image(vector))


class DenseGram(Gram):
    """The whole matrix in memory: n^2 numbers, exact.

    Parameters
    ----------
    matrix : array of shape (n, n)
        K; `from_rows` computes it.
    backend : NumpyBackend
        Where the matrix lives.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.gram import DenseGram
    >>> from floral_learn.game.kernels import Kernel
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> DenseGram.from_rows(X, Kernel("rbf", gamma=0.3)).describe()
    'dense, 50 rows, float64, 20 kB'
    """

    kind = "dense"

    def __init__(self, matrix: Array, backend: NumpyBackend = NUMPY) -> None:
        self.matrix = matrix
        self.backend = backend
        self.n = len(matrix)
        self.dtype = str(matrix.dtype).removeprefix("torch.")
        self.nbytes = self.n * self.n * matrix.itemsize

    @classmethod
    def from_rows(cls, X: Any, kernel: Kernel, dtype: str = "float64", backend: NumpyBackend = NUMPY) -> DenseGram:
        """K for all pairs of rows; each tile serves both triangles."""
        rows = kernel.prepare(X, backend, dtype)
        n = rows.shape[0]
        matrix = backend.zeros((n, n), getattr(backend.xp, dtype)).T
        # Tiles of 32,768 values fit in a cache; each serves both triangles, so that small ones also save kernel values.
        tile = 1024 if backend.name == "torch" else max(64, 2**15 // n)
        for start in range(0, n, tile):
            stop = min(start + tile, n)
            block = kernel(rows[start:stop], rows[start:], backend)
            matrix[start:stop, start:] = block
            matrix[stop:, start:stop] = block[:, stop - start :].T
        return cls(matrix, backend)

    def diagonal(self) -> np.ndarray:
        """Of the matrix."""
        return self.backend.numpy(self.backend.xp.diagonal(self.matrix)).astype(np.float64)

    def matmat(self, columns: Array) -> Array:
        """``K @ columns``, one pass over the matrix."""
        product = self.backend.symmetric_product(self.matrix, columns)
        return self.backend.cast(product, self.backend.float64)


def choose_gram(
    X: Any,
    kernel: Kernel,
    *,
    gram: str | int = "auto",
    dtype: str | None = None,
    rng: np.random.Generator | None = None,
    backend: NumpyBackend = NUMPY,
) -> Gram:
    """The Gram operator for the rows of `X`, as `gram` says or by size (``"auto"``); a number is the rank of a factor.

    Up to 1,000 rows: dense. Above: low rank where the kernel is positive semi-definite and a rank does that is small
    for so many rows. It stops where the relative error of a product is about 0.5 % or where more rank no longer changes
    how a probe set is told apart (`Probe`), and at 512 at the latest. If that does not suffice, dense up to 6,000 rows
    if it fits in `MAX_BYTES`; otherwise the low-rank factor is kept, with a warning where it is far off. Kernels that
    may be indefinite (sigmoid, callables) are dense. Labels have no say.

    Raises
    ------
    MemoryError
        Before any work, if what `gram` names would not fit in this machine's memory.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.gram import choose_gram
    >>> from floral_learn.game.kernels import Kernel
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> choose_gram(X, Kernel("rbf", gamma=0.3)).describe()
    'dense, 100 rows, float64, 80 kB'
    """
    n = X.shape[0]
    dtype = ("float64" if n <= EXACT_ROWS else "float32") if dtype is None else dtype
    dense_bytes = n * n * np.dtype(dtype).itemsize
    if gram == "dense" or (gram == "auto" and (n <= EXACT_ROWS or not kernel.definite)):
        if dense_bytes > MAX_BYTES:
            check_memory("a dense Gram", n, dense_bytes, backend)
        return DenseGram.from_rows(X, kernel, dtype, backend)
    from floral_learn.game.low_rank import low_rank_gram  # which builds on this file

    rng = np.random.default_rng() if rng is None else rng
    made, enough = low_rank_gram(X, kernel, gram, dtype, rng, backend)
    if not enough and gram == "auto" and dense_bytes <= MAX_BYTES and n <= 2 * DENSE_ROWS:
        return DenseGram.from_rows(X, kernel, dtype, backend)
    if not enough and made.error > 0.25:  # decision values are then off by a quarter of their size
        warnings.warn(
            f"products with the rank-{made.rank} kernel are off by about {100 * made.error:.2g} %: the fit is that "
            f"of a smoother kernel. A smaller gamma, a larger rank (gram={2 * made.rank}) or gram='dense' "
            f"({format_bytes(dense_bytes)}) is closer.",
            UserWarning,
            stacklevel=2,
        )
    return made


def check_memory(what: str, n: int, needed: float, backend: NumpyBackend) -> None:
    """Refuse what this machine cannot hold; a GPU says so itself."""
    if backend.device is None and needed > machine_bytes():
        raise MemoryError(
            f"{what} of {n:,} rows takes {format_bytes(needed)}, and this machine has {format_bytes(machine_bytes())}; "
            "use gram='low_rank' or a smaller rank, such as gram=128"
        )


def machine_bytes() -> float:
    """Memory of this machine; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")
