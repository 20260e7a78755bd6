"""Many SVM duals at once: label sets are columns, and one product with the Gram operator serves them all."""

from dataclasses import dataclass

import numpy as np

from floral_learn.core.dual import gradient, optimality
from floral_learn.core.gram import Gram
from floral_learn.core.projections import project_exact


@dataclass(frozen=True)
class BatchedDual:
    """Signed duals (n, c), K @ beta (n, c), intercepts (c,), KKT residuals (c,) and rounds used."""

    beta: np.ndarray
    product: np.ndarray
    intercept: np.ndarray
    residual: np.ndarray
    n_iter: int


def solve_duals(gram: Gram, signs: np.ndarray, C: float, *, tol: float = 0.05, max_iter: int = 1000) -> BatchedDual:
    """argmin_a a'Q a / 2 - 1'a  s.t. signs'a = 0, 0 <= a <= C, for each column of ``signs`` (n, c).

    Accelerated projected gradient with step 1 / lambda_max(HKH) and a momentum that restarts, column by
    column, whenever it points uphill. Stops once every column's KKT residual (libsvm's measure, in units of
    the margin) is at most ``tol``; ``residual`` says what was reached.
    """
    signs = np.asfortranarray(signs, dtype=float)
    cap = np.full((len(signs), 1), float(C))
    step = 1.0 / gram.lambda_max(centred=True)
    dual = np.zeros_like(signs)
    ahead, product_ahead = dual, np.zeros_like(signs)
    product, mu = product_ahead, np.zeros(signs.shape[1])
    momentum = np.ones(signs.shape[1])
    for n_iter in range(1, max_iter + 1):
        projection = project_exact(ahead - step * gradient(product_ahead, signs), signs, cap, mu)
        new, mu = projection.dual, projection.mu
        uphill = ((ahead - new) * (new - dual)).sum(axis=0) > 0
        momentum = np.where(uphill, 1.0, momentum)
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        weight = np.where(uphill, 0.0, (momentum - 1) / following)
        new_product = gram.matmat(signs * new)
        ahead = new + weight * (new - dual)
        # K is linear: the product at the extrapolated point needs no second pass
        product_ahead = new_product + weight * (new_product - product)
        dual, product, momentum = new, new_product, following
        if n_iter % 10 == 0 and optimality(product, dual, signs, cap).residual.max() <= tol:
            break
    found = optimality(product, dual, signs, cap)
    return BatchedDual(signs * dual, product, found.bias, found.residual, n_iter)
