"""What is particular about some kinds of rows: tensors, kernels that are given; and words for what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from floral_learn.game.arrays import is_tensor
from floral_learn.game.gram import DenseGram


def check_tensor(X: Any, y: np.ndarray | None = None, n_features: int | None = None) -> Any:
    """Training rows (with labels `y`) or rows to predict, with scikit-learn's checks, made on the device."""
    import torch

    if X.ndim != 2:
        raise ValueError(f"Expected a tensor of shape (rows, features), got shape {tuple(X.shape)}")
    if min(X.shape) == 0:
        raise ValueError(f"Found a tensor of shape {tuple(X.shape)}; at least one row and one feature are required")
    if X.is_complex():
        raise ValueError(f"X has dtype {X.dtype}; use a tensor of real numbers")
    X = X.detach()
    if X.dtype not in (torch.float32, torch.float64):  # half precision loses nothing in float32, large integers would
        X = X.to(torch.float32 if X.dtype.is_floating_point else torch.float64)
    if not bool(torch.isfinite(X).all()):
        raise ValueError("Input X contains NaN or infinity")
    if n_features is not None and X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} features, but the model expects {n_features} features as input")
    if y is not None:
        if y.ndim != 1 or len(y) != len(X):
            raise ValueError(f"X has {len(X):,} rows and y has shape {y.shape}; y needs one label per row")
        if len(X) < 2:
            raise ValueError(f"Found array with {len(X)} sample(s) while a minimum of 2 is required")
    return X


def tensor_of(values: np.ndarray, X: Any) -> Any:
    """`values` as a tensor beside `X` where that is one and the values are numbers."""
    if not is_tensor(X) or values.dtype.kind not in "biuf":
        return values
    import torch

    return torch.as_tensor(values, device=X.device)


def in_other_words(error: Exception, X: Any, name: str) -> Exception:
    """`error` of scikit-learn's checks; where rows hold texts, categories or dates, which and what to do about them."""
    strange = None
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        numbers = ("int", "uint", "float", "bool", "decimal", "sparse")
        kinds = zip(X.columns, (str(kind).lower() for kind in X.dtypes))
        strange = next((name for name, kind in kinds if not kind.startswith(numbers)), None)
    if strange is None and "could not convert string to float" not in str(error):
        return error
    what = "X holds texts" if strange is None else f"column {strange!r} of X does not hold numbers"
    return ValueError(
        f"{what} ({error}). {name} takes numbers, as SVC does: put floral_learn.base.TableEncoder() or scikit-learn's "
        f"ColumnTransformer in front, such as make_pipeline(TableEncoder(), {name}())"
    )


def check_callable(kernel: Any, rows: np.ndarray) -> None:
    """Refuse a function that is not a kernel on a first few rows: not symmetric, or not finite."""
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
        # A negative estimate proves the point; a matrix of this size is not factorised only to be checked.
        lowest = DenseGram(np.ascontiguousarray(K)).eigenvalue("SA", steps=5, tol=1e-3)
    if lowest < -tolerance:
        raise ValueError(f"the precomputed kernel is not positive semi-definite: it has an eigenvalue of {lowest:.3g}")
