"""What the authors' published code does in a round, written plainly: the yardstick of benchmarks/game.py.

The Gram matrix is computed twice a round (once for the gradient, once for the bias) and the projection is the damped
fixed-point iteration. Vectorised with numpy and scikit-learn; nothing is slowed down on purpose.
"""

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel


def fixed_point(z, y, C, iterations=1000, tol=1e-12):
    mu = 0.0
    for _ in range(iterations):
        dual = np.clip(z - mu * y, 0, C)
        balance = y @ dual
        if abs(balance) <= tol * max(1.0, np.abs(dual).sum()):
            break
        mu += balance / (2 * max(np.count_nonzero((dual > 0) & (dual < C)), 1))
    return np.clip(z - mu * y, 0, C)


def reference_round(X, y, dual, flips, eta, C, gamma):
    """One round from `dual` with the labels at `flips` flipped: the new dual and its bias."""
    flipped = y.copy()
    flipped[flips] = -flipped[flips]
    K = rbf_kernel(X, X, gamma=gamma)
    gradient = flipped * (K @ (flipped * dual)) - 1
    dual = fixed_point(dual - eta * gradient, flipped, C)
    K = rbf_kernel(X, X, gamma=gamma)
    free = (dual > 0) & (dual < C)
    bias = np.mean((flipped - K @ (flipped * dual))[free])
    return dual, bias
