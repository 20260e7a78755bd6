"""Refuse matrices and functions that are no kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from floral_learn.game.gram import DenseGram


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
