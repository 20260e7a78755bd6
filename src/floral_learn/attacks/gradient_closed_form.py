"""Input gradients of kernel SVMs and logistic models, written out."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

SMOOTH_KERNELS = ("rbf", "linear", "poly", "sigmoid")


def svc_decision(model: SVC, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return f (n,) and grad f (n, d) of a fitted binary SVC, f(x) = sum_j c_j k(x, x_j) + b.

    rbf      grad k = -2 gamma k (x - x_j)           linear   grad k = x_j
    poly     grad k = degree gamma (gamma x'x_j + coef0)^(degree - 1) x_j
    sigmoid  grad k = gamma (1 - k^2) x_j
    """
    support, weights, gamma = model.support_vectors_, model.dual_coef_[0], model._gamma
    values = model.decision_function(X)
    if model.kernel == "linear":
        return values, np.broadcast_to(weights @ support, X.shape)
    if model.kernel == "rbf":
        pulls = rbf_kernel(X, support, gamma=gamma) * weights
        return values, -2 * gamma * (X * pulls.sum(axis=1, keepdims=True) - pulls @ support)
    inner = gamma * (X @ support.T) + model.coef0
    if model.kernel == "poly":
        return values, (model.degree * gamma * inner ** (model.degree - 1) * weights) @ support
    return values, (gamma * (1 - np.tanh(inner) ** 2) * weights) @ support


def linear_softmax(model: LogisticRegression, X: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return (n, d) gradients of the cross entropy: W'(p - onehot(y))."""
    residual = model.predict_proba(X)
    residual[np.arange(len(codes)), codes] -= 1.0
    return residual @ model.coef_
