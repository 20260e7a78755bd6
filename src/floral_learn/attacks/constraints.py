"""Which rows an attacker may flip, how many, and to what: validation and the exact choice under limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target


@dataclass(frozen=True)
class Constraints:
    """Rows allowed (n,), limit of flips for each class (M,), and the flip matrix (M, M) or None."""

    codes: np.ndarray
    allowed: np.ndarray
    limits: np.ndarray
    flip_matrix: np.ndarray | None

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
        if self.flip_matrix is not None:
            cumulative = np.cumsum(off_diagonal(self.flip_matrix), axis=1)[own]
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


def encode_labels(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes (M,) and each label's code (n,); refuse what is not a list of labels."""
    if labels.ndim != 1:
        raise ValueError(f"y must be one-dimensional, got shape {labels.shape}")
    if len(labels) < 2:
        raise ValueError(f"y must have at least 2 labels, got {len(labels)}")
    if labels.dtype == object:
        missing = sum(label is None or label != label for label in labels)
        kinds = {
            str if isinstance(label, str) else Real if isinstance(label, Real) else type(label) for label in labels
        }
        if missing:
            raise ValueError(f"y has {missing} missing labels")
        if len(kinds) > 1:
            raise ValueError(f"y mixes label types: {sorted(kind.__name__ for kind in kinds)}")
    elif labels.dtype.kind == "f":
        if not np.isfinite(labels).all():
            raise ValueError("y has NaN or infinite labels")
        if type_of_target(labels).startswith("continuous"):
            raise ValueError("y holds continuous values, not class labels")
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must have at least 2 classes, got only {classes[0]!r}")
    return classes, codes.astype(np.intp)


def number_of_flips(budget: Any, n: int) -> int:
    """Return the number of flips: an int as it is, a float in [0, 1] as floor(budget * n)."""
    if isinstance(budget, Integral) and not isinstance(budget, bool):
        if not 0 <= int(budget) <= n:
            raise ValueError(f"budget={budget!r} must be between 0 and the number of rows, {n}")
        return int(budget)
    if isinstance(budget, Real) and not isinstance(budget, bool):
        if not 0 <= float(budget) <= 1:
            raise ValueError(f"budget={budget!r} as a fraction must be in [0, 1]; give a count as an int")
        return int(np.floor(float(budget) * n + 1e-9))  # 0.29 * 100 is 28.999999999999996
    raise ValueError(f"budget={budget!r} must be a fraction (float in [0, 1]) or a count (int)")


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
            resolved[known[label]] = number_of_flips(limit, int(sizes[known[label]]))
        except ValueError as error:
            raise ValueError(f"class_limits[{label!r}]: {error}".replace("budget=", "")) from None
    return resolved


def check_flip_matrix(matrix: Any, n_classes: int) -> np.ndarray | None:
    """Return the flip matrix as floats after checking that every row is a distribution."""
    if matrix is None:
        return None
    matrix = np.asarray(matrix, dtype=float)
    if matrix.shape != (n_classes, n_classes):
        raise ValueError(f"flip_matrix must be ({n_classes}, {n_classes}), got {matrix.shape}")
    if not np.isfinite(matrix).all() or (matrix < 0).any() or not np.allclose(matrix.sum(axis=1), 1):
        raise ValueError("flip_matrix rows must be non-negative and sum to 1")
    return matrix


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a Generator for None, an int, a SeedSequence, a Generator (itself) or a RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    return np.random.default_rng(random_state)
