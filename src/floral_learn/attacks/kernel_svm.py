"""A kernel SVM on a fixed Gram matrix, refitted for many label vectors; libsvm does the solving."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from floral_learn.base.validation import check_svm
from floral_learn.game.kernels import resolve_gamma

MAX_BYTES = 4_000_000_000


@dataclass(frozen=True)
class SVMSettings:
    """min_w 1/2 |w|^2 + C sum_i hinge(y_i f(x_i)): kernel and cost of the attacked SVM."""

    C: float
    kernel: str
    gamma: float | str
    degree: int
    coef0: float

    @classmethod
    def of(cls, owner: Any) -> "SVMSettings":
        """Read the settings from an attack or, where it has a ``surrogate``, from that SVC; check them."""
        source = owner if getattr(owner, "surrogate", None) is None else owner.surrogate
        settings = cls(source.C, source.kernel, source.gamma, source.degree, source.coef0)
        check_svm(settings.C, settings.kernel, settings.gamma, ("rbf", "linear", "poly", "sigmoid", "laplacian"))
        return settings

    def gram(self, X: np.ndarray) -> np.ndarray:
        """Return the (n, n) Gram matrix; labels never enter it, so it is built once an attack."""
        if (needed := 8 * len(X) ** 2) > MAX_BYTES:
            raise MemoryError(
                f"the Gram matrix of {len(X):,} rows takes {needed / 1e9:.1f} GB, over {MAX_BYTES / 1e9:.0f} GB; "
                "attack a subset of the rows, or use 'alfa-tilt' with gram='low_rank'"
            )
        gamma = resolve_gamma(self.gamma, X)
        parameters = {
            "linear": {},
            "rbf": {"gamma": gamma},
            "laplacian": {"gamma": gamma},
            "sigmoid": {"gamma": gamma, "coef0": self.coef0},
            "poly": {"gamma": gamma, "coef0": self.coef0, "degree": self.degree},
        }[self.kernel]
        return pairwise_kernels(X, metric=self.kernel, **parameters)


@dataclass(frozen=True)
class SVMFit:
    """Signed duals ``beta = alpha * y`` (n,), intercept, values f(x_i) (n,) and |w|^2."""

    beta: np.ndarray
    intercept: float
    values: np.ndarray
    squared_norm: float


def fit_dual(gram: np.ndarray, signs: np.ndarray, C: float, weights: np.ndarray | None = None) -> SVMFit:
    """Solve the SVM dual on ``gram`` (n, n) for labels ``signs`` in {-1, +1} and cost C * weights_i.

    Where an attack has left one class only, the optimum is w = 0 with that class as intercept.
    """
    if (signs == signs[0]).all():
        return SVMFit(np.zeros(len(signs)), float(signs[0]), np.full(len(signs), float(signs[0])), 0.0)
    model = SVC(kernel="precomputed", C=C).fit(gram, signs, sample_weight=weights)
    beta = np.zeros(len(signs))
    beta[model.support_] = model.dual_coef_[0]
    product = gram[:, model.support_] @ model.dual_coef_[0]
    intercept = float(model.intercept_[0])
    return SVMFit(beta, intercept, product + intercept, float(beta @ product))
