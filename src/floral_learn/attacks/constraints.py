"""Which rows an attacker may flip, how many and to what; the exact choice under these limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_array

from floral_learn.base.validation import count_points

VOTERS = 15  # rows that say which label a target would get


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
            # inverse of the cumulative distribution: one draw per row
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


def allowed_rows(mask: Any, n: int, what: str = "mask must") -> np.ndarray:
    """Return (n,) booleans from a boolean mask, row numbers, or None (all rows); `what` begins the message."""
    if mask is None:
        return np.ones(n, dtype=bool)
    mask = np.asarray(mask)
    if mask.ndim == 1 and not mask.size:
        return np.zeros(n, dtype=bool)
    if mask.ndim == 1 and mask.dtype == bool and len(mask) == n:
        return mask.copy()
    if mask.ndim == 1 and mask.dtype.kind in "iu" and ((mask >= 0) & (mask < n)).all():
        allowed = np.zeros(n, dtype=bool)
        allowed[mask] = True
        return allowed
    raise ValueError(f"{what} be {n} booleans or row numbers in 0..{n - 1}, got shape {mask.shape}, dtype {mask.dtype}")


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
        resolved[known[label]] = count_points(limit, int(sizes[known[label]]), f"class_limits[{label!r}]")
    return resolved


def aimed_rows(
    target: Any, X: Any, codes: np.ndarray, classes: np.ndarray, flips: int, allowed: np.ndarray
) -> np.ndarray:
    """Return (n,) booleans: the rows that an attacker of ``target`` may flip, out of ``allowed``.

    A label of y: all rows that carry it. Rows, (m, d) features or row numbers of X: the ``flips`` rows nearest to
    them, taken in turn, that carry the label which each target's 15 nearest rows agree on.
    """
    if np.ndim(target) == 0:
        known = {label: code for code, label in enumerate(classes.tolist())}
        label = target.item() if isinstance(target, np.generic) else target
        if label not in known:
            raise ValueError(f"target={target!r} is not a label; labels are {list(known)}, rows are an array")
        return allowed & (codes == known[label])
    if X is None:
        raise ValueError("target rows need features: X is None")
    X = check_array(X, accept_sparse="csr", input_name="X")
    points = target_points(target, X)
    n = len(codes)
    voters = NearestNeighbors(n_neighbors=min(VOTERS, n)).fit(X)
    near = voters.kneighbors(points, return_distance=False)
    wins = np.array([np.bincount(codes[rows]).argmax() for rows in near])
    # Rows of the winning label by distance, for each target; a flip of any other row would not help the attacker.
    queues: list[np.ndarray] = [np.empty(0, np.intp)] * points.shape[0]
    for code in np.unique(wins):
        mine, aims = np.flatnonzero(allowed & (codes == code)), np.flatnonzero(wins == code)
        if len(mine):
            nearest = NearestNeighbors(n_neighbors=min(flips, len(mine)) or 1).fit(X[mine])
            for aim, order in zip(aims, nearest.kneighbors(points[aims], return_distance=False)):
                queues[aim] = mine[order]
    # In turn: the nearest row of every target, then the second nearest; each row once.
    turns = (queue[rank] for rank in range(flips) for queue in queues if rank < len(queue))
    chosen = list(islice(dict.fromkeys(turns), flips))
    if len(chosen) < flips:
        raise ValueError(f"the budget is {flips} flips, but only {len(chosen)} rows may be flipped for this target")
    rows = np.zeros(n, dtype=bool)
    rows[chosen] = True
    return rows


def target_points(target: Any, X: Any) -> Any:
    """Return the features of target rows that are given as features or as row numbers of X."""
    if np.ndim(target) == 1 and not hasattr(target, "toarray"):
        numbers = np.flatnonzero(allowed_rows(target, X.shape[0], "target must be a label, (m, d) rows, or"))
        if not len(numbers):
            raise ValueError("target names no row")
        return X[numbers]
    points = check_array(target, accept_sparse="csr", input_name="target")
    if points.shape[1] != X.shape[1]:
        raise ValueError(f"target rows have {points.shape[1]} features, X has {X.shape[1]}")
    return points
