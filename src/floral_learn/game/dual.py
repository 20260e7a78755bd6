"""The SVM dual D(a) = a'Qa / 2 - 1'a, Q = diag(y) K diag(y): objective, gradient, bias and KKT residual.

All functions take columns (n, c) and the product ``K @ (signs * dual)``, so that one pass over K serves them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_learn.game.arrays import NUMPY, Array, NumpyBackend


def gradient(product: Array, signs: Array) -> Array:
    """dD/da = y * K (y * a) - 1 (the paper's eq. 8), (n, c).

    Parameters
    ----------
    product : array of shape (n, c)
        K (y * a).
    signs : array of shape (n, c)
        y, -1 or +1.

    Returns
    -------
    array of shape (n, c)
        The gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.dual import gradient
    >>> gradient(np.array([[0.5], [-0.5]]), np.array([[1.0], [-1.0]])).tolist()
    [[-0.5], [-0.5]]
    """
    return signs * product - 1


def objective(product: Array, dual: Array, signs: Array) -> Array:
    """D(a) for each column, (c,).

    Parameters
    ----------
    product : array of shape (n, c)
        K (y * a).
    dual, signs : array of shape (n, c)
        a and y.

    Returns
    -------
    array of shape (c,)
        The value that training lowers.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.dual import objective
    >>> objective(np.array([[1.0], [-1.0]]), np.array([[1.0], [1.0]]), np.array([[1.0], [-1.0]])).tolist()
    [-1.0]
    """
    return 0.5 * (dual * signs * product).sum(0) - dual.sum(0)


@dataclass(frozen=True)
class KKTSums:
    """What rows contribute to bias, residual and objective; those of several sets of rows are joined by `joined`."""

    free: Array  # (c,), weight of the free points
    total: Array  # (c,), their gaps y - f, summed
    most: Array  # (c,), largest gap among points that could move up
    least: Array  # (c,), smallest gap among points that could move down
    objective: Array  # (c,)

    @classmethod
    def joined(cls, parts: list[KKTSums]) -> KKTSums:
        """The sums over the rows of all `parts`."""

        def gather(name: str, how: Any) -> np.ndarray:
            return how([getattr(part, name) for part in parts], axis=0)

        summed = {name: gather(name, np.sum) for name in ("free", "total", "objective")}
        return cls(most=gather("most", np.max), least=gather("least", np.min), **summed)


def kkt_sums(
    product: Array,
    dual: Array,
    signs: Array,
    cap: Array,
    backend: NumpyBackend = NUMPY,
    weight: Array | None = None,
) -> KKTSums:
    """The sums over rows from which `optimality_of` reads bias and residual.

    Parameters
    ----------
    product, dual, signs : array of shape (n, c)
        K (y * a), a and y.
    cap : array of shape (n, 1) or (n, c)
        Upper bounds.
    backend : NumpyBackend
        Where the arrays live.
    weight : array of shape (n, 1) or (n, c), optional
        Sample weights.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.dual import kkt_sums, optimality_of
    >>> one = np.ones((2, 1))
    >>> bias, residual = optimality_of(kkt_sums(np.array([[1.0], [-1.0]]), one, np.array([[1.0], [-1.0]]), 2 * one))
    >>> bias.tolist(), residual.tolist()
    ([0.0], [0.0])
    """
    xp = backend.xp
    gap = signs - product
    positive = signs > 0
    interior, below = dual > 0, dual < cap
    up = xp.where(positive, below, interior)
    down = xp.where(positive, interior, below)
    free = interior & below
    return KKTSums(
        free=free.sum(0) if weight is None else (free * weight).sum(0),
        total=xp.where(free, gap if weight is None else gap * weight, 0.0).sum(0),
        # A row with a cap of 0 can move neither way: it has no say in the bias.
        most=xp.amax(xp.where(up, gap, -float("inf")), 0),
        least=xp.amin(xp.where(down, gap, float("inf")), 0),
        objective=objective(product, dual, signs),
    )


def optimality_of(sums: KKTSums, xp: Any = np) -> tuple[Array, Array]:
    """Bias and KKT residual (libsvm's measure: the largest violation of the KKT conditions), (c,) each.

    With g_i = y_i - f_i, a bias b is consistent with the KKT conditions if g_i <= b for all points that could move up
    along y'a = 0 and g_i >= b for all that could move down. Free points can do both: the bias is their mean (weighted,
    if rows have weights). Where there is none, it is the middle of the interval. The residual is by how much the
    interval is crossed, as in libsvm.
    """
    infinity = float("inf")
    most, least = sums.most, sums.least
    mean = sums.total / xp.where(sums.free > 0, sums.free, 1)
    # One-sided labels leave one end open: the bias is then the other end (0 where both are).
    lower = xp.where(most > -infinity, most, xp.where(least < infinity, least, 0.0))
    upper = xp.where(least < infinity, least, lower)
    both = (most > -infinity) & (least < infinity)
    residual = xp.where(both & (lower > upper), lower - upper, 0.0)
    return xp.where(sums.free > 0, mean, (lower + upper) / 2), residual
