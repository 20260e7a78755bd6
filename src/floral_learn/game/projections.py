"""Project onto {a : y'a = 0, 0 <= a <= C_i}, the feasible set of the SVM dual (the paper's eq. 9 and 10).

With u = y * z and the box [l, h] = [min(0, y C), max(0, y C)], the projection in the signed variable y * a is
clip(u - mu, l, h), where the scalar mu is a root of

    phi(mu) = sum_i clip(u_i - mu, l_i, h_i),

piecewise linear and non-increasing with slope -|I_z|, I_z being the points strictly inside their box. Every
function here takes one column or a batch of columns, each with its own mu, on numpy or torch.

With a ``weight`` w the projection is the one in the norm sum_i (a_i - z_i)^2 / w_i: mu becomes mu * w_i and the slope
the sum of w over I_z. A row of weight 2 then moves exactly as two equal rows do together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_learn.game.arrays import NUMPY, Array, NumpyBackend, outer

_EPS = 2.0**-52
HUGE = 1e300  # ends of a bracket that nobody has looked for


@dataclass(frozen=True)
class Projection:
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
    >>> from floral_learn.game.projections import project
    >>> found = project(np.array([2.0, 0.5, 0.2]), np.array([1.0, -1.0, -1.0]), C=1.0)
    >>> bool(found.converged.all()), float(found.residual.max()) < 1e-12
    (True, True)
    """

    dual: Array  # (n, c), feasible
    mu: Array  # (c,), multiplier of y'a = 0
    iterations: Any  # passes over the data, the most of any column
    residual: Array  # (c,), |y'a|
    converged: Array  # (c,), bool


def box(signs: Array, cap: Array) -> tuple[Array, Array]:
    """[l, h] of the signed variable y * a."""
    reach = signs * cap
    return reach.clip(None, 0), reach.clip(0, None)


def bracket(u: Array, low: Array, high: Array, weight: Array | None, xp: Any) -> tuple[Array, Array]:
    """Ends between which the root lies: phi(left) >= 0 >= phi(right)."""
    # A row that cannot move (a cap of 0) says nothing about where the root is.
    open_rows = high > low
    per = 1.0 if weight is None else weight
    infinity = float("inf")
    left = xp.amin(xp.where(open_rows, (u - high) / per, infinity), 0)
    right = xp.amax(xp.where(open_rows, (u - low) / per, -infinity), 0)
    closed = left > right
    return xp.where(closed, 0.0, left), xp.where(closed, 0.0, right)


def phi_sums(u: Array, mu: Array, low: Array, high: Array, weight: Array | None, xp: Any) -> tuple[Array, ...]:
    """The clipped point, then sums over the rows: phi(mu), minus its slope, and the sum of |y * a|."""
    moved = u - (mu if weight is None else outer(weight, mu))
    clipped = xp.minimum(xp.maximum(moved, low), high)
    inside = (moved > low) & (moved < high)
    slope = inside.sum(0) if weight is None else (inside * weight).sum(0)
    return clipped, clipped.sum(0), slope, xp.abs(clipped).sum(0)


def _rounding(mu: Array, slope: Array, total: Array, xp: Any) -> Array:
    """What rounding alone can leave in phi, in units of the machine's precision."""
    return total + slope * xp.abs(mu) + 1e-300


@dataclass(frozen=True)
class Root:
    """Where phi vanishes, for each column."""

    mu: Array
    iterations: Any
    residual: Array
    converged: Array


def find_root(
    sums: Callable[[Array], tuple[Array, ...]],
    left: Array,
    right: Array,
    mu: Array,
    xp: Any,
    max_iter: int = 200,
) -> Root:
    """The root of phi between `left` and `right`: Newton steps, the bracket kept, halved when a step leaves it.

    Parameters
    ----------
    sums : callable
        mu -> (phi, minus its slope, sum of |y * a|), each (c,): sums over all rows, wherever these are.
    left, right, mu : array of shape (c,)
        The bracket and where to start.
    xp : module
        numpy or torch.
    max_iter : int
        Passes at most; past twenty each other one bisects, so this is never reached in practice.
    """
    mu = xp.minimum(xp.maximum(mu + left * 0, left), right)
    for iterations in range(1, max_iter + 1):
        phi, slope, total = sums(mu)
        scale = _rounding(mu, slope, total, xp)
        width = right - left
        done = (xp.abs(phi) <= 32 * _EPS * scale) | (width <= 2 * _EPS * (xp.abs(left) + xp.abs(right)))
        if bool(xp.all(done)):
            break
        left = xp.where(phi > 0, mu, left)
        right = xp.where(phi < 0, mu, right)
        newton = mu + phi / xp.where(slope > 0, slope, 1)
        # Newton can crawl along many small pieces: past twenty passes every other one halves the bracket.
        trusted = (slope > 0) & (newton >= left) & (newton <= right) & (iterations <= 20 or iterations % 2 == 0)
        mu = xp.where(done, mu, xp.where(trusted, newton, (left + right) / 2))
    # A bracket can end on neighbouring numbers while y'a is still as large as the duals (caps of 1e-16 |z|): say so.
    balanced = xp.abs(phi) <= 1e-9 * total + 32 * _EPS * scale
    return Root(mu, iterations, xp.abs(phi), done & balanced)


def project_exact(
    z: Array,
    signs: Array,
    cap: Array,
    mu: Array | float = 0.0,
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
    xp = backend.xp
    if weight is None and (fused := backend.project(z, signs, cap, mu + z[0] * 0)) is not None:
        dual, root, residual, passes = fused
        balanced = residual <= 1e-9 * dual.sum(0) + 1e-300
        return Projection(dual, root, passes.max(), residual, (passes < max_iter) & balanced)
    u = signs * z
    low, high = box(signs, cap)
    if backend is NUMPY and u.shape[1] == 1 and weight is None:
        point, one = root_of_one(u[:, 0], low[:, 0], high[:, 0], float(np.max(mu)))
        mu, residual, converged = (np.array([part]) for part in (one.mu, one.residual, one.converged))
        return Projection(signs * point[:, None], mu, one.iterations, residual, converged)
    clipped, mu = u, mu + u[0] * 0

    def sums(at: Array) -> tuple[Array, ...]:
        nonlocal clipped
        clipped, *found = phi_sums(u, at, low, high, weight, xp)
        return tuple(found)

    found = None
    if backend.name == "numpy":  # Newton's steps alone nearly always do, and need no bracket
        found = find_root(sums, -HUGE, HUGE, mu, xp, 8)
    if found is None or not np.all(found.converged):
        found = find_root(sums, *bracket(u, low, high, weight, xp), mu, xp, max_iter)
    return Projection(signs * clipped, found.mu, found.iterations, found.residual, found.converged)


def root_of_one(
    u: np.ndarray, low: np.ndarray, high: np.ndarray, mu: float, most_total: float = HUGE
) -> tuple[np.ndarray, Root]:
    """The signed point and the root of a single column in numpy: `find_root` in plain numbers, pass for pass.

    Small games spend most of their time here, and an array of one number takes ten times as long as the number. The
    sum of |y a|, which says how exact phi can be, is at most `most_total`: it is not computed where phi is above that.
    """
    left, right, most = -HUGE, HUGE, 8  # Newton's steps alone nearly always do, and need no bracket
    start, total = mu, 0.0
    loosest = 32 * _EPS * (most_total + len(u))  # the largest phi that can pass, for |mu| <= 1
    while True:
        mu = min(max(start, left), right)
        for iterations in range(1, most + 1):
            moved = u - mu
            clipped = np.minimum(np.maximum(moved, low), high)
            phi = float(np.add.reduce(clipped))
            narrow = right - left <= 2 * _EPS * (abs(left) + abs(right))
            if narrow or iterations == most or abs(phi) <= loosest * (1 + abs(mu)):
                total = float(np.add.reduce(np.abs(clipped)))
                if abs(phi) <= 32 * _EPS * total:
                    return clipped, Root(mu, iterations, abs(phi), True)
            slope = int(np.count_nonzero((moved > low) & (moved < high)))
            scale = total + slope * abs(mu) + 1e-300
            done = narrow or abs(phi) <= 32 * _EPS * scale
            if done:
                break
            if phi > 0:
                left = mu
            else:
                right = mu
            newton = mu + phi / slope if slope else mu
            trusted = slope > 0 and left <= newton <= right and (iterations <= 20 or iterations % 2 == 0)
            mu = newton if trusted else (left + right) / 2
        converged = done and abs(phi) <= 1e-9 * total + 32 * _EPS * scale
        if converged or most > 8:
            return clipped, Root(mu, iterations, abs(phi), converged)
        left, right = (float(end) for end in bracket(u, low, high, None, np))
        most = 200


def project_fixed_point(
    z: Array,
    signs: Array,
    cap: Array,
    mu: Array | float = 0.0,
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
    low, high = box(signs, cap)
    start = mu + u[0] * 0
    mu = start * 0  # Algorithm 2 starts at zero, whatever round it is
    for iterations in range(1, max_iter + 1):  # noqa: B007
        clipped, phi, slope, total = phi_sums(u, mu, low, high, weight, xp)
        done = xp.abs(phi) <= 64 * _EPS * _rounding(mu, slope, total, xp)
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
    >>> from floral_learn.game.projections import project
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
