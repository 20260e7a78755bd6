"""Training and test rows as torch tensors: they stay on their device, and scores come back there."""

from __future__ import annotations

from typing import Any

import numpy as np

from floral_learn.game.arrays import is_tensor


def as_host(x: Any) -> Any:
    """Labels, weights and masks go to main memory; anything that is not a tensor is returned as it is."""
    if not is_tensor(x):
        return x
    x = x.detach().cpu()
    return (x.float() if x.dtype.is_floating_point and x.itemsize < 4 else x).numpy()  # numpy has no bfloat16


def check_training_tensor(X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """`X` and `y` with scikit-learn's checks, made on the device."""
    X = _checked(X)
    y = np.asarray(as_host(y))
    if y.ndim != 1 or len(y) != len(X):
        raise ValueError(f"X has {len(X):,} rows and y has shape {y.shape}; y needs one label per row")
    if len(X) < 2:
        raise ValueError(f"Found array with {len(X)} sample(s) while a minimum of 2 is required")
    return X, y


def check_query_tensor(X: Any, n_features: int) -> Any:
    """Rows to predict, checked on their device."""
    X = _checked(X)
    if X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} features, but the model expects {n_features} features as input")
    return X


def _checked(X: Any) -> Any:
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
    return X


def like(values: np.ndarray, X: Any) -> Any:
    """`values` as a tensor beside `X` where that is one and the values are numbers."""
    if not is_tensor(X) or values.dtype.kind not in "biuf":
        return values
    import torch

    return torch.as_tensor(values, device=X.device)
