"""Which rows an attacker may flip, how many, and to what: validation and the exact choice under limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_learn.base.validation import count_points


@dataclass(frozen=True)
class Constraints:
    """Rows allowed (n,), limit of flips for each class (M,), and the flip matrix (M, M) or None."""

    codes: np.ndarray
    allowed: np.ndarray
    limits: np.ndarray
    flip_distribution: np.ndarray | None

    def most(self) -> int:
        """Return how many rows can be flipped at all."""
        available = np.bincount(self.codes[self.allowed], minlength=len(self.limits))
        return int(np.minimum(available, self.limits).sum())

    def best(self, scores: np.ndarray, count: int, ties: np.ndarray | None = None) -> np.ndarray:
        """argmax_S sum_{i in S} scores_i  s.t. |S| = count, S allowed, class limits kept.

        Taking rows in descending order is optimal, since the limits form a (truncated) partition
        matroid. Equal scores go by ``ties`` (n,), or by row number.
        """
        ties = np.arange(len(scores)) if ties is None else ties
        order = np.lexsort((ties, -scores))
        order = order[self.allowed[order]]
        codes = self.codes[order]
        within = np.empty(len(order), dtype=np.intp)
        for code in range(len(self.limits)):
            own = codes == code
            within[own] = np.arange(own.sum())
        return order[within < self.limits[codes]][:count]

    def new_codes(
        self, indices: np.ndarray, rng: np.random.Generator, preference: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the new class of each chosen row: from the flip matrix, else preferred, else uniform.

        ``preference`` is (n, M); the largest entry among the other classes wins.
        """
        own, n_classes = self.codes[indices], len(self.limits)
        if self.flip_distribution is not None:
            cumulative = np.cumsum(off_diagonal(self.flip_distribution), axis=1)[own]
            draws = rng.random((len(own), 1)) * cumulative[:, -1:]
            return (draws >= cumulative).sum(axis=1)
        if n_classes == 2:
            return 1 - own
        if preference is None:
            return (own + rng.integers(1, n_classes, size=len(own))) % n_classes
        others = np.array(preference[indices], dtype=float)
        others[np.arange(len(own)), own] = -np.inf
        return others.argmax(axis=1)


def off_diagonal(matrix: np.ndarray) -> np.ndarray:
    """Return a copy with a zero diagonal: a flip must change the label."""
    return matrix * ~np.eye(len(matrix), dtype=bool)


def flipped_first(estimates: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return scores (n,) that rank all rows: flipped rows first, in the order of their flips (integers from 1), then
    the others by their estimates, scaled into [0, 1)."""
    low, high = estimates.min(), estimates.max()
    scores = (estimates - low) / max(high - low, 1e-300) * (1 - 1e-9)
    scores[indices] = np.arange(len(indices), 0, -1)
    return scores


def allowed_rows(mask: Any, n: int) -> np.ndarray:
    """Return (n,) booleans from a boolean mask, row numbers, or None (all rows)."""
    if mask is None:
        return np.ones(n, dtype=bool)
    mask = np.asarray(mask)
    if mask.ndim == 1 and not mask.size:
        return np.zeros(n, dtype=bool)
    if mask.ndim == 1 and mask.dtype == bool and len(mask) == n:
        return mask.copy()
    if mask.ndim == 1 and mask.dtype.kind in "iu" and (mask.size == 0 or (mask.min() >= 0 and mask.max() < n)):
        allowed = np.zeros(n, dtype=bool)
        allowed[mask] = True
        return allowed
    raise ValueError(
        f"mask must be {n} booleans or row numbers in 0..{n - 1}, got shape {mask.shape}, dtype {mask.dtype}"
    )


def limits_per_class(limits: Mapping[Any, Any] | None, classes: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return (M,) most flips of rows of each class; classes that are not named have no limit."""
    sizes = np.bincount(codes, minlength=len(classes))
    if limits is None:
        return sizes
    if not isinstance(limits, Mapping):
        raise ValueError(f"class_limits must map labels to limits, got {type(limits).__name__}")
    known = {label: code for code, label in enumerate(classes.tolist())}
    resolved = sizes.copy()
    for label, limit in limits.items():
        if label not in known:
            raise ValueError(f"class_limits names {label!r}, which is not a label; labels are {list(known)}")
        try:
            resolved[known[label]] = count_points(limit, int(sizes[known[label]]), "limit")
        except ValueError as error:
            raise ValueError(f"class_limits[{label!r}]: {error}".replace("limit=", "")) from None
    return resolved
