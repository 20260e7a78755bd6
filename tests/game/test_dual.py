"""Objective, gradient, bias and KKT residual of the SVM dual."""

import numpy as np
import pytest
from sklearn.svm import SVC

from floral_learn.game import NUMPY, DenseGram, Kernel, gradient
from floral_learn.game import optimality as bias_residual_objective

RNG = np.random.default_rng(2)
X = RNG.normal(size=(80, 3))
K = DenseGram.from_rows(X, Kernel("rbf", gamma=0.5)).matrix
SIGNS = np.where(X[:, :1] + 0.3 * RNG.normal(size=(80, 1)) > 0, 1.0, -1.0)


def optimality(product, dual, signs, cap, backend=NUMPY):
    """Bias and KKT residual of one column."""
    bias, residual, _ = bias_residual_objective(product, dual, signs, cap, backend)
    return float(bias[0]), float(residual[0])


def test_gradient_passes_a_finite_difference_test():
    dual = RNG.uniform(0, 1, size=(80, 1))

    def value(a):
        return bias_residual_objective(K @ (SIGNS * a), a, SIGNS, 1e9 + 0 * a)[2][0]

    found = gradient(K @ (SIGNS * dual), SIGNS)[:, 0]
    for i in range(0, 80, 7):
        bump = np.zeros((80, 1))
        bump[i] = 1e-5
        slope = (value(dual + bump) - value(dual - bump)) / 2e-5
        assert slope == pytest.approx(found[i], abs=1e-7)


@pytest.mark.parametrize("C", [0.05, 1.0, 100.0])
def test_libsvm_solution_has_no_residual_and_libsvm_bias(C):
    svc = SVC(kernel="precomputed", C=C, tol=1e-10).fit(K, SIGNS[:, 0])
    dual = np.zeros((80, 1))
    dual[svc.support_, 0] = np.abs(svc.dual_coef_[0])
    bias, residual = optimality(K @ (SIGNS * dual), dual, SIGNS, np.full((80, 1), C))
    assert residual <= 1e-6 * max(1, C)  # libsvm's own accuracy
    assert bias == pytest.approx(svc.intercept_[0], abs=1e-6 * max(1, C))


def test_residual_is_large_away_from_the_optimum():
    zero = np.zeros((80, 1))
    assert optimality(zero, zero, SIGNS, np.ones((80, 1)))[1] == 2.0


def test_no_free_point_gives_the_middle_of_the_interval(backend):
    # One point of each class, both at their cap: f = K (y a), the interval is [y- - f-, y+ - f+].
    signs = np.array([[1.0], [-1.0]])
    dual, cap, product = np.full((2, 1), 0.5), np.full((2, 1), 0.5), np.array([[0.25], [-0.25]])
    bias, residual = optimality(*(backend.columns(v) for v in (product, dual, signs, cap)), backend=backend)
    assert bias == 0.0
    # Both can only move down their side: up = {-1}, g = -0.75; down = {+1}, g = 0.75; nothing is crossed.
    assert residual == 0.0


def test_one_sided_labels_have_a_finite_bias():
    zero = np.zeros((3, 1))
    for sign in (1.0, -1.0):
        bias, residual = optimality(zero, zero, np.full((3, 1), sign), np.ones((3, 1)))
        assert bias == sign
        assert residual == 0.0
