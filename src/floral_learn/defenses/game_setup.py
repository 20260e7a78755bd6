"""Turn what a user passed to ``fit`` into numbers of the game, or say what is wrong with it."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_learn.core.gram import DenseGram


@dataclass(frozen=True)
class Budget:
    """B for each column and k, in points; all zero when the attacker is off."""

    columns: np.ndarray  # (M,)
    flips: int
    shown: int | dict[Any, int]  # what ``budget_`` holds


def count_points(value: float, n: int, name: str) -> int:
    """A fraction (float) or a number (int) of n points as a number of points."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_):
        points = int(value)
    elif isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
        if not 0 <= value <= 1:
            raise ValueError(
                f"{name}={value!r} is a fraction of the rows and must lie in [0, 1]; use an int for a count"
            )
        points = int(np.floor(value * n + 1e-9))
    else:
        raise ValueError(f"{name}={value!r} must be a float (a fraction of the rows) or an int (a count)")
    if points < 0:
        raise ValueError(f"{name}={value!r} must not be negative")
    if points > n:
        raise ValueError(f"{name}={value!r} is more than the {n} rows there are")
    return points


def resolve_budget(budget: Any, flips: Any, n: int, classes: np.ndarray) -> Budget:
    """B and k from `budget` (a float, an int, or a dict class -> either) and `flips` (None is B // 2).

    "auto" is off here: it is chosen once the kernel is there.
    """
    width = 1 if len(classes) == 2 else len(classes)
    if budget == "auto":
        if flips is not None:
            raise ValueError(f'flips={flips!r} needs a budget in numbers: budget="auto" chooses both')
        return Budget(np.zeros(width, dtype=int), 0, 0)
    if isinstance(budget, dict):
        if width == 1:
            raise ValueError("budget= as a dict needs three or more classes: with two there is one attacker")
        known = {c.item() if hasattr(c, "item") else c for c in classes}
        if set(budget) != known:
            raise ValueError(f"budget= must have exactly the classes {sorted(map(str, known))} as keys")
        shown: Any = {c: count_points(b, n, f"budget[{c!r}]") for c, b in budget.items()}
        columns = np.array([shown[c.item() if hasattr(c, "item") else c] for c in classes])
    else:
        shown = count_points(budget, n, "budget")
        columns = np.full(width, shown)
    most = int(columns.max())
    k = most // 2 if flips is None else count_points(flips, n, "flips")
    if flips is not None and k > most:
        raise ValueError(f"flips={flips!r} is {k} points, more than the budget of {most} to choose from")
    if most < 2 or k == 0:
        return Budget(np.zeros_like(columns), 0, 0)
    return Budget(columns, k, shown)


def resolve_caps(C: Any, budget: Any, n_classes: int) -> tuple[float, ...]:
    """C as a number or, for three or more classes and ``budget="auto"``, as two to choose from.

    "auto" is 1, as in SVC, where the budget is chosen automatically, else the paper's 10. One class against all others
    can need a larger C than pairs of classes do.
    """
    if C != "auto":
        return (float(C),)
    if budget != "auto":
        return (10.0,)
    return (1.0,) if n_classes == 2 else (1.0, 10.0)


def check_trusted(trusted: Any, n: int) -> np.ndarray | None:
    """Which labels the attacker may flip, from the mask of those known to be right."""
    if trusted is None:
        return None
    mask = np.asarray(trusted)
    if mask.dtype != bool or mask.shape != (n,):
        raise ValueError(
            f"trusted= must be a boolean mask with one entry a row ({n}); got {mask.dtype} of shape {mask.shape}"
        )
    return ~mask


def check_decay(decay: Any) -> tuple[float, int] | None:
    """``(factor, every)`` as numbers."""
    if decay is None:
        return None
    numbers_ = len(decay) == 2 and isinstance(decay[0], numbers.Real) and isinstance(decay[1], int | np.integer)
    if not numbers_ or not 0 < decay[0] <= 1 or decay[1] < 1:
        raise ValueError(
            f"decay={decay!r} must be None or (factor in (0, 1], every so many rounds), such as (0.1, 100)"
        )
    return float(decay[0]), int(decay[1])


def check_distribution(distribution: Any, n_classes: int) -> np.ndarray | None:
    """The flip distribution as a row-stochastic matrix."""
    if distribution is None:
        return None
    q = np.asarray(distribution, dtype=float)
    if q.shape != (n_classes, n_classes):
        raise ValueError(f"flip_distribution must have shape ({n_classes}, {n_classes}); got {q.shape}")
    if (q < 0).any() or not np.allclose(q.sum(axis=1), 1):
        raise ValueError("flip_distribution must be row-stochastic: no negative entries, every row summing to 1")
    return q


def check_callable(kernel: Any, rows: np.ndarray) -> None:
    """Refuse a function that is no kernel on a first few rows: not symmetric, or not finite."""
    values = np.asarray(kernel(rows[:64], rows[:64]), dtype=float)
    if values.shape != (len(rows[:64]),) * 2:
        raise ValueError(f"the kernel callable returned shape {values.shape} for {len(rows[:64])} and as many rows")
    if not np.isfinite(values).all():
        raise ValueError("the kernel callable returned values that are not finite")
    if not np.allclose(values, values.T, rtol=0, atol=1e-6 * (np.abs(values).max() or 1.0)):
        raise ValueError("the kernel callable is not symmetric: kernel(A, A) differs from its transpose")


def check_precomputed(K: np.ndarray) -> None:
    """Refuse a matrix that is no Gram matrix: not square, not symmetric, or with a negative eigenvalue."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"a precomputed kernel must be a square matrix for fit; got shape {K.shape}")
    n, tile = len(K), 512
    scale = max(abs(float(K.max())), abs(float(K.min()))) or 1.0
    for start in range(0, n, tile):  # tile by tile: the transpose of a large matrix does not fit in a cache
        stop = start + tile
        if np.abs(K[start:stop, start:] - K[start:, start:stop].T).max() > 1e-6 * scale:
            raise ValueError("the precomputed kernel is not symmetric")
    tolerance = 1e-6 * max(float(np.trace(K)), scale)
    if n <= 4000:
        try:
            np.linalg.cholesky(K.astype(float) + tolerance * np.eye(n))
            return
        except np.linalg.LinAlgError:
            lowest = float(np.linalg.eigvalsh(K)[0])
    else:
        # A negative Ritz value proves the point; a matrix of this size is not factorised only to be checked.
        lowest = DenseGram(np.ascontiguousarray(K)).ritz(steps=40, tol=0)[0]
    if lowest < -tolerance:
        raise ValueError(f"the precomputed kernel is not positive semi-definite: it has an eigenvalue of {lowest:.3g}")
