"""What users pass, checked once for attacks and defenses alike: labels, budgets, flip matrices, seeds, kernels.

Every message names the parameter, the value and what is allowed.
"""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets

from floral_learn.base.cells import is_missing

# entries whose squares, summed over a row, a float64 still holds, and a float32
LARGEST, LARGEST_SINGLE = (float(np.sqrt(np.finfo(kind).max)) / 100 for kind in (np.float64, np.float32))


def encode_labels(y: Any, who: str = "this") -> tuple[np.ndarray, np.ndarray]:
    """Sorted classes (M,) and the code (n,) of each label; what is no list of at least two classes is refused."""
    refuse_several_labels(y)
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must be one-dimensional, one label per row; got shape {y.shape}")
    if y.dtype == object:
        if missing := sum(map(is_missing, y)):
            raise ValueError(f"y has {missing} missing labels")
        kinds = sorted({_kind(label) for label in y})
        if len(kinds) > 1:
            raise ValueError(f"{who} needs labels of one type, and y mixes label types: {' and '.join(kinds)}")
    elif y.dtype.kind == "f":
        if not np.isfinite(y).all():
            raise ValueError("Input y contains NaN or infinity")
        refuse_measurements(y, who)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        only = f"all {len(y)} given labels are {classes.tolist()[0]!r}" if len(y) else "y is empty"
        raise ValueError(f"{who} needs labels of at least 2 classes, and {only}; y must not have only one class")
    return classes, codes.astype(np.intp)


def refuse_several_labels(y: Any) -> None:
    """Refuse more than one label per row in words; everything else about y is checked elsewhere."""
    shape: tuple[int, ...] = tuple(getattr(y, "shape", ()))
    several = len(shape) > 2 or (len(shape) == 2 and shape[1] != 1)
    if isinstance(y, list | tuple) or (len(shape) == 1 and str(getattr(y, "dtype", "")) == "object"):
        several = any(isinstance(label, list | tuple | set) and len(label) != 1 for label in y)
    if several:
        found = f"an array of shape {shape}" if len(shape) > 1 else "rows with several labels"
        raise ValueError(
            f"y should be a 1d array, one label per row, got {found}; for several labels per row (multilabel) "
            "train one classifier per label, for example with sklearn.multioutput.MultiOutputClassifier"
        )


def refuse_measurements(y: np.ndarray, who: str) -> None:
    """Refuse labels that are measurements and no classes."""
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        raise ValueError(
            f"Unknown label type: y holds {len(np.unique(y)):,} different numbers, and {who} is for classes; bin them "
            "first, with numpy.digitize or pandas.cut"
        )


def _kind(label: Any) -> str:
    if isinstance(label, bool | np.bool_):
        return "bool"
    if isinstance(label, str):
        return "str"
    return "number" if isinstance(label, Real) else type(label).__name__


def count_points(value: Any, n: int, name: str) -> int:
    """A fraction (float, rounded down) or a number (int) of n points as a number of points."""
    flag = isinstance(value, bool | np.bool_)
    if isinstance(value, Integral) and not flag:
        if not 0 <= int(value) <= n:
            raise ValueError(f"{name}={value!r} must be between 0 and the number of rows, {n}")
        return int(value)
    if isinstance(value, Real) and not flag:
        if not 0 <= float(value) <= 1:
            raise ValueError(f"{name}={value!r} is a fraction and must lie in [0, 1]; give a count as an int")
        return int(np.floor(float(value) * n + 1e-9))  # 0.29 * 100 is 28.999999999999996
    raise ValueError(f"{name}={value!r} must be a fraction of the rows (float in [0, 1]) or a count (int)")


def check_flip_distribution(matrix: Any, n_classes: int) -> np.ndarray | None:
    """Row c: probabilities of the new label of a flipped row of class c, as floats; None stays None."""
    if matrix is None:
        return None
    q = np.asarray(matrix, dtype=float)
    if q.shape != (n_classes, n_classes):
        raise ValueError(f"flip_distribution must have shape ({n_classes}, {n_classes}); got {q.shape}")
    if not np.isfinite(q).all() or (q < 0).any() or not np.allclose(q.sum(axis=1), 1):
        raise ValueError("flip_distribution must be row-stochastic: rows non-negative, each summing to 1")
    return q


def check_scale(X: Any, largest: float = LARGEST) -> None:
    """Refuse rows whose squared distances would overflow or vanish: scores would be NaN, or the same everywhere.

    The one place that decides which scales are computed on, for all that takes rows. Missing values are skipped.
    """
    values = X.data if issparse(X) else np.asarray(X)
    if values.dtype.kind not in "fiu" or not values.size:
        return
    high, low = np.fmax.reduce(values, axis=0), np.fmin.reduce(values, axis=0)
    top, bottom = float(np.fmax.reduce(high, axis=None)), float(np.fmin.reduce(low, axis=None))
    peak = float(np.fmax.reduce([top, -bottom, 0.0]))
    if peak > largest:
        raise ValueError(f"X has values up to {peak:.1e}, whose squares overflow: standardise its columns first.")
    if 0 < peak < 1 / largest:
        raise ValueError(f"X has no value above {peak:.1e}; squares of such vanish: standardise its columns first.")
    spread = float(np.fmax.reduce(np.append(np.asarray(high, dtype=float) - low, 0.0)))
    if not issparse(X) and 0 < spread < 1 / largest:
        raise ValueError(f"X varies by at most {spread:.1e}; squares of such vanish: standardise its columns first.")


def generator(random_state: Any) -> np.random.Generator:
    """One Generator from anything that scikit-learn or numpy call a random state; a Generator is returned as it is."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    return np.random.default_rng(random_state)


def check_trusted(trusted: Any, n: int) -> np.ndarray | None:
    """Which labels the attacker may flip, from the mask of those known to be right."""
    if trusted is None:
        return None
    mask = np.asarray(trusted)
    if mask.dtype != bool or mask.shape != (n,):
        raise ValueError(
            f"trusted= must be a boolean mask with one entry per row ({n}); got {mask.dtype} of shape {mask.shape}"
        )
    return ~mask


def check_decay(decay: Any) -> tuple[float, int] | None:
    """``(factor, every)`` as numbers."""
    if decay is None:
        return None
    pair = len(decay) == 2 and isinstance(decay[0], Real) and isinstance(decay[1], int | np.integer)
    if not pair or not 0 < decay[0] <= 1 or decay[1] < 1:
        raise ValueError(
            f"decay={decay!r} must be None or (factor in (0, 1], every so many rounds), such as (0.1, 100)"
        )
    return float(decay[0]), int(decay[1])


def check_svm(C: Any, kernel: Any, gamma: Any, kernels: Collection[str]) -> None:
    """C above 0, a kernel among `kernels`, and a gamma that is a rule or a number above 0."""
    if not isinstance(C, Real) or not float(C) > 0:
        raise ValueError(f"C={C!r} must be positive")
    if kernel not in kernels:
        raise ValueError(f"kernel={kernel!r} must be one of {', '.join(sorted(kernels))}")
    positive = isinstance(gamma, Real) and float(gamma) > 0
    if not positive and not (isinstance(gamma, str) and gamma in ("scale", "auto")):
        raise ValueError(f"gamma={gamma!r} must be 'scale', 'auto' or a number above 0")
