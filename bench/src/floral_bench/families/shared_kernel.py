"""One kernel matrix for all SVMs that libsvm fits on the same rows.

libsvm computes entries of K as it needs them, many times over: on 10,000 images a fit takes it a minute, and a few
seconds where K is given. The model is the same to rounding.
"""

from __future__ import annotations

from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np

from floral_learn.game.arrays import backend_for
from floral_learn.game.kernels import Kernel, resolve_gamma

KEPT = 2  # matrices: training rows with themselves, and test rows with these


class SharedKernel:
    """exp(-gamma |a - b|^2) between rows, for estimators that take a function as their kernel; the last few are kept.

    `device` is where K is computed, in float64.
    """

    def __init__(self, X: np.ndarray, device: str | None = None) -> None:
        self.X, self.backend = np.asarray(X, np.float64), backend_for(device)
        self._known: dict[tuple[Any, ...], np.ndarray] = {}

    def lend(self, model: Any) -> Any:
        """`model` with its rbf kernel replaced by this one; others are returned as they are."""
        svm = getattr(model, "estimator", model)
        if svm.get_params().get("kernel") == "rbf":
            svm.set_params(kernel=partial(self.between, gamma=resolve_gamma(svm.gamma, self.X)))
        return model

    def between(self, A: np.ndarray, B: np.ndarray, gamma: float) -> np.ndarray:
        """K of all pairs of rows."""
        A, B = np.ascontiguousarray(A, np.float64), np.ascontiguousarray(B, np.float64)
        key = (*(blake2b(rows.data, digest_size=16).digest() + str(rows.shape).encode() for rows in (A, B)), gamma)
        if key not in self._known:
            while len(self._known) >= KEPT:
                del self._known[next(iter(self._known))]
            kernel = Kernel("rbf", gamma)
            left, right = (kernel.prepare(rows, self.backend, "float64") for rows in (A, B))
            self._known[key] = self.backend.numpy(kernel(left, right, self.backend))
        return self._known[key]

    def __deepcopy__(self, memo: Any) -> SharedKernel:
        return self  # estimators are cloned inside others, and K must not be
