"""The SVM dual D(a) = a'Qa / 2 - 1'a, Q = diag(y) K diag(y), over {a : y'a = 0, 0 <= a <= C_i}.

Its gradient, the projection onto its feasible set (the paper's eq. 9 and 10), and what its KKT conditions say of a
point: bias and residual. Every function here takes one column or a batch of columns, on numpy or torch, and where K is
needed the product ``K @ (signs * dual)``, so that one pass over K serves them all.

With u = y * z and the box [l, h] = [min(0, y C), max(0, y C)], the projection in the signed variable y * a is
clip(u - mu, l, h), where the scalar mu is a root of

    phi(mu) = sum_i clip(u_i - mu, l_i, h_i),

piecewise linear and non-increasing with slope -|I_z|, I_z being the points strictly inside their box. With a
``weight`` w the projection is the one in the norm sum_i (a_i - z_i)^2 / w_i: mu becomes mu * w_i and the slope the sum
of w over I_z. A row of weight 2 then moves exactly as two equal rows do together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from floral_learn.base.validation import LARGEST
from floral_learn.game.arrays import NUMPY, Array, NumpyBackend, outer

# A sum of n numbers is known to a few units of float64's precision, times their total.
ROUNDING = 32 * float(np.finfo(float).eps)


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


class Projection(NamedTuple):
    """A projected point and how exact it is.

    Attributes
    ----------
    dual : array of shape (n, c)
        Feasible.
    mu : array of shape (c,)
        Multiplier of y'a = 0.
    iterations : int
        Passes over the data, the most of any column.
    residual : array of shape (c,)
        ``|y'a|``.
    converged : bool array of shape (c,)
        Whether the tolerance was met.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.dual import project
    >>> found = project(np.array([2.0, 0.5, 0.2]), np.array([1.0, -1.0, -1.0]), C=1.0)
    >>> bool(found.converged.all()), float(found.residual.max()) < 1e-12
    (True, True)
    """

    dual: Array  # (n, c), feasible
    mu: Array  # (c,), multiplier of y'a = 0
    iterations: Any  # passes over the data, the most of any column
    residual: Array  # (c,), |y'a|
    converged: Array  # (c,), bool


def bracket(u: Array, low: Array, high: Array, weight: Array | None, xp: Any) -> tuple[Array, Array]:
    """Ends between which the root lies: phi(left) >= 0 >= phi(right)."""
    # A row that cannot move (a cap of 0) says nothing about where the root is.
    open_rows = high > low
    per = 1.0 if weight is None else weight
    left = xp.amin(xp.where(open_rows, (u - high) / per, np.inf), 0)
    right = xp.amax(xp.where(open_rows, (u - low) / per, -np.inf), 0)
    closed = left > right
    return xp.where(closed, 0.0, left), xp.where(closed, 0.0, right)


def phi_sums(u: Array, mu: Array, low: Array, high: Array, weight: Array | None, xp: Any) -> tuple[Array, ...]:
    """The clipped point, then sums over the rows: phi(mu), minus its slope, and the sum of |y * a|."""
    moved = u - (mu if weight is None else outer(weight, mu))
    clipped = xp.minimum(xp.maximum(moved, low), high)
    inside = (moved > low) & (moved < high)
    slope = inside.sum(0) if weight is None else (inside * weight).sum(0)
    return clipped, clipped.sum(0), slope, xp.abs(clipped).sum(0)


class Numbers:
    """The functions of numpy that `find_root` needs, for plain numbers: an array of one takes ten times as long."""

    minimum, maximum, abs, all = min, max, abs, bool

    @staticmethod
    def where(condition: bool, yes: float, no: float) -> float:
        """One of two."""
        return yes if condition else no


def find_root(
    sums: Callable[[Array], tuple[Array, ...]], left: Array, right: Array, mu: Array, xp: Any, max_iter: int = 200
) -> tuple[Array, int, Array, Array]:
    """The root of phi between `left` and `right`: Newton steps, the bracket kept, halved when a step leaves it.

    Returns the root, the passes over the rows, |phi| there and whether it has converged.

    Parameters
    ----------
    sums : callable
        mu -> (phi, minus its slope, sum of |y * a|), each (c,): sums over all rows, wherever these are.
    left, right, mu : array of shape (c,), or numbers
        The bracket and where to start.
    xp : module
        numpy or torch, or `Numbers`.
    max_iter : int
        Passes at most; past twenty each other one bisects, so this is never reached in practice.
    """
    mu = xp.minimum(xp.maximum(mu + left * 0, left + mu * 0), right + mu * 0)
    for iterations in range(1, max_iter + 1):
        phi, slope, total = sums(mu)
        # what rounding alone can leave in phi
        size, exact = abs(phi), ROUNDING * (total + slope * abs(mu) + 1e-300)
        done = size <= exact
        if iterations > 8:  # a bracket takes some halving before its ends are neighbouring numbers
            done = done | (right - left <= ROUNDING / 16 * (abs(left) + abs(right)))
        if xp.all(done):
            break
        left = xp.where(phi > 0, mu, left)
        right = xp.where(phi < 0, mu, right)
        newton = mu + phi / (slope + (slope == 0))
        # Newton can crawl along many small pieces: past twenty passes every other one halves the bracket.
        in_time = iterations <= 20 or iterations % 2 == 0
        trusted = (slope > 0) & (newton >= left) & (newton <= right) & in_time
        mu = xp.where(done, mu, xp.where(trusted, newton, (left + right) / 2))
    # A bracket can end on neighbouring numbers while y'a is still as large as the duals (caps of 1e-16 |z|): say so.
    return mu, iterations, size, done & (size <= 1e-9 * total + exact)


def project_exact(
    z: Array,
    signs: Array,
    cap: Array,
    mu: Array = 0.0,
    backend: NumpyBackend = NUMPY,
    weight: Array | None = None,
    max_iter: int = 200,
) -> Projection:
    """argmin ||a - z||^2 s.t. signs'a = 0, 0 <= a <= cap: safeguarded Newton on the scalar root.

    Parameters
    ----------
    z, signs : array of shape (n, c)
        The points to project and their labels, -1 or +1.
    cap : array of shape (n, 1) or (n, c)
        Upper bounds, at least 0.
    mu : array of shape (c,) or float
        Where to start; the root of the round before saves a pass or two.
    backend : NumpyBackend
        Where the arrays live.
    weight : array of shape (n, 1), optional
        Positive; the norm of the projection (see above).
    max_iter : int
        Passes at most; each bisects at the latest every other time, so this is never reached in practice.

    Returns
    -------
    Projection
    """
    u, reach, xp = signs * z, signs * cap, backend.xp
    low = reach * (signs < 0)
    high = reach - low
    one = backend is NUMPY and u.shape[1] == 1
    ops, start = (Numbers, float(mu[0] if np.ndim(mu) else mu)) if one else (xp, mu + u[0] * 0)
    clipped, total, ones = u, 0.0, np.ones(len(u) if one else 0)

    def sums(at: Any) -> tuple[Any, ...]:
        nonlocal clipped, total
        if not one or weight is not None:
            clipped, *found = phi_sums(u, at, low, high, weight, xp)
            return tuple(part.item() for part in found) if one else tuple(found)
        # The same for one column, in a third of the calls: small games spend most of their time here.
        moved = u - at
        clipped = np.minimum(np.maximum(moved, low), high)
        phi, slope = ones.dot(clipped).item(), np.count_nonzero(clipped == moved)
        # otherwise phi is far from the rounding that it is held against
        if total == 0 or abs(phi) <= 1e-6 * total:
            total = ones.dot(np.abs(clipped)).item()
        return phi, slope, total

    # Newton's steps alone nearly always do, without looking for the ends of a bracket.
    root = find_root(sums, -LARGEST, LARGEST, start, ops, 8)
    if not ops.all(root[-1]):
        left, right = bracket(u, low, high, weight, xp)
        left, right = (left.item(), right.item()) if one else (left, right)
        root = find_root(sums, left, right, start, ops, max_iter)
    mu, iterations, residual, converged = root
    if one:
        mu, residual, converged = np.array([mu]), np.array([residual]), np.array([converged])
    return Projection(signs * clipped, mu, iterations, residual, converged)


def project_fixed_point(
    z: Array,
    signs: Array,
    cap: Array,
    mu: Array = 0.0,
    backend: NumpyBackend = NUMPY,
    weight: Array | None = None,
    max_iter: int = 1000,
    damping: float = 2.0,
) -> Projection:
    """The paper's Algorithm 2, corrected and damped: mu += phi(mu) / (damping * max(|I_z|, 1)).

    The listing sums the clipped duals where its derivation (App. A.1) has the unclipped z; as printed its fixed
    point is wrong unless mu = 0. Even corrected it can cycle or crawl, so ``converged`` says whether the
    tolerance that float64 can reach was met within `max_iter`; columns where it was not are projected exactly.
    """
    xp = backend.xp
    u = signs * z
    reach = signs * cap
    low, high = reach.clip(None, 0), reach.clip(0, None)
    start = mu + u[0] * 0
    mu = start * 0  # Algorithm 2 starts at zero, whatever round it is
    for iterations in range(1, max_iter + 1):  # noqa: B007
        clipped, phi, slope, total = phi_sums(u, mu, low, high, weight, xp)
        done = xp.abs(phi) <= 2 * ROUNDING * (total + slope * xp.abs(mu) + 1e-300)
        if bool(done.all()):
            break
        mu = xp.where(done, mu, mu + phi / (damping * xp.where(slope > 0, slope, 1)))
    dual, residual = signs * clipped, xp.abs(phi)
    if not bool(done.all()):
        exact = project_exact(z, signs, cap, start, backend, weight)
        dual = xp.where(done, dual, exact.dual)
        mu = xp.where(done, mu, exact.mu)
        residual = xp.where(done, residual, exact.residual)
    return Projection(dual, mu, iterations, residual, done)


PROJECTIONS: dict[str, Callable[..., Projection]] = {
    "exact": project_exact,
    "fixed_point": project_fixed_point,
}


def project(z: Array, y: Array, C: Array | float, method: str = "exact") -> Projection:
    """argmin ``||a - z||^2`` s.t. y'a = 0, 0 <= a <= C, for numpy input of shape (n,) or (n, c).

    A convenience over `project_exact` and `project_fixed_point` that takes plain vectors and scalars and
    returns the dual in the shape of `z`.

    Parameters
    ----------
    z : ndarray of shape (n,) or (n, c)
        What to project.
    y : ndarray of the same shape
        Labels, -1 or +1.
    C : float or ndarray
        Upper bounds.
    method : {"exact", "fixed_point"}, default="exact"
        How the multiplier is found.

    Returns
    -------
    Projection
        The point, its multiplier and its residual.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.game.dual import project
    >>> z, y = np.array([1.5] * 8 + [5.0] * 4), np.array([1.0] * 8 + [-1.0] * 4)
    >>> found = project(z, y, C=1.0)
    >>> float(found.mu), found.dual.tolist()[:1], found.dual.tolist()[-1:]
    (1.0, [0.5], [1.0])
    """
    z = np.asarray(z, dtype=np.float64)
    flat = z.ndim == 1
    cap = np.broadcast_to(np.asarray(C, dtype=np.float64), z.shape[:1]) if np.ndim(C) < 2 else C
    if np.shape(y)[0] != len(z):
        raise ValueError(f"y has {np.shape(y)[0]} labels, z has {len(z)} rows")
    if np.min(cap, initial=0) < 0:
        raise ValueError("C must not be negative")
    result = PROJECTIONS[method](NUMPY.columns(z), NUMPY.columns(y, np.float64), NUMPY.columns(cap))
    if not flat:
        return result
    return Projection(result.dual[:, 0], result.mu[0], result.iterations, result.residual[0], result.converged[0])


def optimality(
    product: Array,
    dual: Array,
    signs: Array,
    cap: Array,
    backend: NumpyBackend = NUMPY,
    weight: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Bias, KKT residual (libsvm's measure: the largest violation of the KKT conditions) and objective, (c,) each.

    With g_i = y_i - f_i, a bias b is consistent with the KKT conditions if g_i <= b for all points that could move up
    along y'a = 0 and g_i >= b for all that could move down. Free points can do both: the bias is their mean (weighted,
    if rows have weights). Where there is none, it is the middle of the interval. The residual is by how much the
    interval is crossed, as in libsvm.

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
    >>> from floral_learn.game.dual import optimality
    >>> one = np.ones((2, 1))
    >>> bias, residual, _ = optimality(np.array([[1.0], [-1.0]]), one, np.array([[1.0], [-1.0]]), 2 * one)
    >>> bias.tolist(), residual.tolist()
    ([0.0], [0.0])
    """
    xp = backend.xp
    gap, positive = signs - product, signs > 0
    interior, below = dual > 0, dual < cap
    up, down = xp.where(positive, below, interior), xp.where(positive, interior, below)
    free = interior & below
    share = free if weight is None else free * weight
    # A row with a cap of 0 can move neither way: it has no say in the bias.
    most = xp.amax(xp.where(up, gap, -np.inf), 0)
    least = xp.amin(xp.where(down, gap, np.inf), 0)
    # One-sided labels leave one end open: the bias is then the other end (0 where both are).
    lower = xp.where(most > -np.inf, most, xp.where(least < np.inf, least, 0.0))
    upper = xp.where(least < np.inf, least, lower)
    crossed = (most > -np.inf) & (least < np.inf) & (lower > upper)
    size = share.sum(0)
    mean = (gap * share).sum(0) / xp.where(size > 0, size, 1)
    bias = xp.where(size > 0, mean, (lower + upper) / 2)
    objective = 0.5 * (dual * signs * product).sum(0) - dual.sum(0)
    return bias, xp.where(crossed, lower - upper, 0.0), objective
