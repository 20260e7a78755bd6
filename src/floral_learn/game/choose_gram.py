"""Choose the Gram operator for n rows and a memory cap, and say what was chosen.

When is a rank enough? When more of it no longer changes how rows are told apart on a probe set: a small classifier
(ridge regression on the rows of F) learns, at every rank that is reached, which of a few random rows is nearest, from a
sample of rows, and says so for another sample. The share of its answers that a block of columns changed is what more
rank would still buy. The task is made from the features alone: the labels of the game have no say in K.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from sklearn.metrics import pairwise_distances_argmin

from floral_learn.game.arrays import NUMPY, NumpyBackend, is_tensor
from floral_learn.game.gram import ChunkedGram, DenseGram, Gram, format_bytes
from floral_learn.game.kernels import Kernel
from floral_learn.game.low_rank import LowRankGram
from floral_learn.game.row_blocks import RowBlocks

SAMPLE = 4000  # rows of the sample: half trains, half is predicted
# Ridge, relative to the largest eigenvalue of the centred sample Gram: a game of T rounds with the automatic step
# cannot follow directions much below 1 / T of that eigenvalue.
RIDGE = 1e-3
CENTRES = 16
LEAST_GAIN = 0.05  # over always answering with the most frequent class
TOL = 2e-3  # share of the predictions that a block may change once the rank is enough


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
        self.factor = np.zeros((len(rows), 64), order="F")  # F at the sample, with room for more columns
        self.square = np.zeros((64, 64))  # F'F over the rows that train
        self.rank = 0
        self.train = len(rows) // 2
        classes = np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)
        self.targets = 2.0 * (labels[: self.train, None] == classes) - 1
        # A kernel that is nearly the identity says nothing about unseen rows: answers that never change are no answers.
        self.truth = labels[self.train :]
        self.guess = float(np.bincount(self.truth, minlength=n_classes).max() / max(len(self.truth), 1))
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
        return len(self.changed) > 1 and max(self.changed[-2:]) <= TOL and self.right > self.guess + LEAST_GAIN

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
        seen, unseen = self.factor[: self.train, : self.rank], self.factor[self.train :, : self.rank]
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


def sample_rows(n: int, rng: np.random.Generator) -> np.ndarray:
    """The rows of a probe, at random: all where there are few."""
    return rng.permutation(n) if n <= SAMPLE else rng.choice(n, SAMPLE, replace=False, shuffle=True)


GRAMS = ("auto", "dense", "chunked", "low_rank")
EXACT_ROWS = 1000  # up to here the whole matrix is small and fast: exact, in float64
DENSE_ROWS = 3000  # up to here it is the choice where a small factor does not do
DENSE_FALLBACK_ROWS = 6000  # up to here a dense matrix replaces a factor that is not good enough
ERROR_TOL = 5e-3  # relative error of a product at which rank="auto" stops
AUTO_RANK = 512  # rank="auto" stops here at the latest; below DENSE_ROWS at an eighth of the rows, where both are equal
WRONG = 0.25  # error of a product from which a factor that was kept is warned about
_UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
}


def parse_bytes(size: str | float) -> int:
    """Bytes in ``"4GB"``, ``"500 MiB"`` or a number."""
    if isinstance(size, str):
        match = re.fullmatch(r"\s*([\d.]+)\s*([KMGT]?I?B|)\s*", size.upper())
        if match is None or match[2] not in _UNITS or match[1].count(".") > 1:
            raise ValueError(
                f"max_memory={size!r} is not a size; use a number of bytes or text such as '4GB', '500MiB'"
            )
        size = float(match[1]) * _UNITS[match[2]]
    if not size > 0:
        raise ValueError(f"max_memory={size!r} must be above 0")
    return int(size)


def resolve_dtype(dtype: str, n: int) -> str:
    """``"auto"`` is float64 for up to `EXACT_ROWS` rows and float32 above."""
    return ("float64" if n <= EXACT_ROWS else "float32") if dtype == "auto" else dtype


def choose_gram(
    X: Any,
    kernel: Kernel,
    *,
    gram: str = "auto",
    rank: int | str = "auto",
    max_memory: str | float = "4GB",
    dtype: str = "auto",
    rng: np.random.Generator | None = None,
    backend: NumpyBackend = NUMPY,
    progress: Callable[[int, int], Any] | None = None,
) -> Gram:
    """The Gram operator for the rows of `X` (a matrix, RowBlocks or Parts), as `gram` says or by size (``"auto"``).

    Up to 1,000 rows: dense. Above: low rank where the kernel is positive semi-definite and a rank does that is small
    for so many rows. ``rank="auto"`` stops where the relative error of a product is about 0.5 % or where more rank no
    longer changes how a probe set is told apart (`Probe`), and at 512 at the latest. If that does not
    suffice, dense up to 6,000 rows if it fits in `max_memory`; otherwise the low-rank factor is kept, with a warning
    where it is far off. Kernels that may be indefinite (sigmoid, callables) are dense where that fits, else chunked.
    Labels have no say.

    Raises
    ------
    MemoryError
        Before any work, if what `gram` names would not fit in `max_memory`.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.choose_gram import choose_gram
    >>> from floral_learn.game.kernels import Kernel
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> choose_gram(X, Kernel("rbf", gamma=0.3)).describe()
    'dense, 100 rows, float64, 80 kB'
    """
    cap = parse_bytes(max_memory)
    rng = np.random.default_rng() if rng is None else rng
    n = X.shape[0]
    dtype = resolve_dtype(dtype, n)
    dense_bytes = DenseGram.bytes_for(n, dtype)
    small = n <= (EXACT_ROWS if kernel.definite else DENSE_ROWS)
    if gram == "dense" or (gram == "auto" and small and dense_bytes <= cap):
        _check_memory("dense", n, dense_bytes, cap)
        return DenseGram.from_rows(X, kernel, dtype, backend)
    if gram == "chunked":
        return ChunkedGram(X, kernel, cap // 2, dtype, backend)
    if gram == "low_rank" or kernel.definite:
        if not kernel.definite and not callable(kernel.name):
            warnings.warn(
                f"the {kernel.name} kernel may have negative eigenvalues, which a low-rank factor F F' leaves out: the "
                "fit is that of another kernel. Use gram='dense' or gram='chunked'.",
                UserWarning,
                stacklevel=2,
            )
        column = n * np.dtype(dtype).itemsize
        if not isinstance(rank, str):
            _check_memory(f"rank {rank}", n, column * min(rank, n), cap)
            return LowRankGram(X, kernel, int(rank), 0.0, rng, dtype, backend, progress=progress)
        # The factor and, while it is built, one block of kernel columns with its temporaries.
        most = min(AUTO_RANK, n, max(1, cap // column - 192))
        if gram == "auto" and n <= DENSE_ROWS:
            most = min(most, n // 8)
        rows = sample_rows(n, rng)
        probe = Probe(rows, *nearest_centres(_features(X, rows), rng))
        made = LowRankGram(X, kernel, most, ERROR_TOL, rng, dtype, backend, probe=probe, progress=progress)
        # The error is that before the last block: a factor that misses nothing of the trace has none.
        enough = made.error <= 2 * ERROR_TOL or made.missing <= 1e-6 or probe.settled
        if not enough and gram == "auto" and dense_bytes <= cap and n <= DENSE_FALLBACK_ROWS:
            return DenseGram.from_rows(X, kernel, dtype, backend)
        if not enough and made.error > WRONG:
            _warn_of_error(made, dense_bytes)
        return made
    if dense_bytes <= cap:
        return DenseGram.from_rows(X, kernel, dtype, backend)
    return ChunkedGram(X, kernel, cap // 2, dtype, backend)


def _features(X: Any, rows: np.ndarray) -> Any:
    """The given rows in memory, from wherever they lie."""
    if isinstance(X, RowBlocks):
        return X.take(rows)
    if is_tensor(X):
        return X[rows].detach().cpu().numpy()
    return X[rows]


def _warn_of_error(made: LowRankGram, dense_bytes: int) -> None:
    warnings.warn(
        f"products with the rank-{made.rank} kernel are off by about {100 * made.error:.2g} %: the fit is that "
        f"of a smoother kernel. A smaller gamma, a larger rank= or gram='dense' "
        f"({format_bytes(dense_bytes)}) is closer.",
        UserWarning,
        stacklevel=2,
    )


def _check_memory(what: str, n: int, needed: int, cap: int) -> None:
    if needed > cap:
        raise MemoryError(
            f"a {what} Gram of {n:,} rows takes {format_bytes(needed)}, over max_memory={format_bytes(cap)}; "
            "use gram='low_rank' with a smaller rank, gram='chunked', or raise max_memory"
        )
