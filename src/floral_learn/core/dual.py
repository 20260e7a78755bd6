"""The SVM dual D(a) = a'Qa / 2 - 1'a, Q = diag(y) K diag(y): objective, gradient, bias and KKT residual.

All functions take columns (n, c) and the product ``K @ (signs * dual)``, so that one pass over K serves them all.
"""

from __future__ import annotations

from dataclasses import dataclass

from floral_learn.core.arrays import NUMPY, Array, NumpyBackend


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
    >>> from floral_learn.core.dual import gradient
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
    >>> from floral_learn.core.dual import objective
    >>> objective(np.array([[1.0], [-1.0]]), np.array([[1.0], [1.0]]), np.array([[1.0], [-1.0]])).tolist()
    [-1.0]
    """
    return 0.5 * (dual * signs * product).sum(0) - dual.sum(0)


@dataclass(frozen=True)
class Optimality:
    """The bias of the SVM for given duals, and how far these are from optimal."""

    bias: Array  # (c,)
    residual: Array  # (c,), libsvm's measure: the largest violation of the KKT conditions


def optimality(
    product: Array,
    dual: Array,
    signs: Array,
    cap: Array,
    backend: NumpyBackend = NUMPY,
    weight: Array | None = None,
) -> Optimality:
    """Bias and KKT residual of ``dual``.

    With g_i = y_i - f_i, a bias b is consistent with the KKT conditions if g_i <= b for all points that could move up
    along y'a = 0 and g_i >= b for all that could move down. Free points can do both: the bias is their mean
    (weighted by `weight`, if given). Where
    there is none, it is the middle of the interval. The residual is by how much the interval is crossed, as in libsvm.

    Parameters
    ----------
    product, dual, signs : array of shape (n, c)
        K (y * a), a and y.
    cap : array of shape (n, 1) or (n, c)
        Upper bounds.
    backend : NumpyBackend
        Where the arrays live.
    weight : array of shape (n, 1), optional
        Sample weights.

    Returns
    -------
    Optimality
        ``bias`` and ``residual``, (c,) each.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.core.dual import optimality
    >>> one = np.ones((2, 1))
    >>> found = optimality(np.array([[1.0], [-1.0]]), one, np.array([[1.0], [-1.0]]), 2 * one)
    >>> found.bias.tolist(), found.residual.tolist()
    ([0.0], [0.0])
    """
    xp = backend.xp
    gap = signs - product
    positive = signs > 0
    interior, below = dual > 0, dual < cap
    up = xp.where(positive, below, interior)
    down = xp.where(positive, interior, below)
    free = up & down
    count = free.sum(0) if weight is None else (free * weight).sum(0)
    mean = xp.where(free, gap if weight is None else gap * weight, 0.0).sum(0) / xp.where(count > 0, count, 1)
    infinity = float("inf")
    most = xp.amax(xp.where(up, gap, -infinity), 0)
    least = xp.amin(xp.where(down, gap, infinity), 0)
    # One-sided labels leave one end open: the bias is then the other end (0 where both are).
    lower = xp.where(most > -infinity, most, xp.where(least < infinity, least, 0.0))
    upper = xp.where(least < infinity, least, lower)
    bias = xp.where(count > 0, mean, (lower + upper) / 2)
    both = (most > -infinity) & (least < infinity)
    residual = xp.where(both, lower - upper, 0.0).clip(0, None)
    return Optimality(bias, residual)
