"""Kernel values against scikit-learn's own, on every kind of input."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from floral_learn import FloralClassifier
from floral_learn.game import NUMPY, Kernel

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(20, 5)), RNG.normal(size=(15, 5))
NAMES = ("rbf", "linear", "poly", "sigmoid", "laplacian")


def reference(name, P, Q):
    params = {"rbf": {"gamma": 0.3}, "laplacian": {"gamma": 0.3}, "linear": {}}
    params["poly"] = {"gamma": 0.3, "degree": 2, "coef0": 0.5}
    params["sigmoid"] = {"gamma": 0.3, "coef0": 0.5}
    return pairwise_kernels(P, Q, metric=name, **params[name])


@pytest.mark.parametrize("name", NAMES)
def test_values_and_diagonal_on_every_backend(name, backend):
    kernel = Kernel(name, gamma=0.3, degree=2, coef0=0.5)
    P, Q = kernel.prepare(A, backend, "float64"), kernel.prepare(B, backend, "float64")
    np.testing.assert_allclose(backend.numpy(kernel(P, Q, backend)), reference(name, A, B), atol=1e-12)
    np.testing.assert_allclose(backend.numpy(kernel.diagonal(P, backend)), np.diag(reference(name, A, A)), atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_csr_rows(name, backend):
    S = sparse.random(30, 8, density=0.3, random_state=0, format="csr")
    kernel = Kernel(name, gamma=0.3, degree=2, coef0=0.5)
    rows = kernel.prepare(S, backend, "float64")
    np.testing.assert_allclose(backend.numpy(kernel(rows, rows, backend)), reference(name, S, S), atol=1e-12)


def test_float32_keeps_its_digits_far_from_the_origin():
    far = A + 1e4
    exact = reference("rbf", far, far)
    kernel = Kernel("rbf", gamma=0.3, shift=far.mean(axis=0))
    rows = kernel.prepare(far, NUMPY, "float32")
    assert rows.dtype == np.float32
    np.testing.assert_allclose(kernel(rows, rows, NUMPY), exact, atol=1e-5)
    plain = Kernel("rbf", gamma=0.3)
    rows = plain.prepare(far, NUMPY, "float32")
    assert np.abs(plain(rows, rows, NUMPY) - exact).max() > 0.1  # what the shift is for


def gamma_of(rows, y, gamma="scale", weight=None):
    return FloralClassifier(gamma=gamma, n_rounds=2).fit(rows, y, sample_weight=weight).gamma_


def test_gamma_is_that_of_svc():
    y = np.arange(20) % 2
    S = sparse.csr_matrix(np.where(A > 0, A, 0))
    for gamma, rows in (("scale", A), ("auto", A), (0.7, A), ("scale", S)):
        assert gamma_of(rows, y, gamma) == pytest.approx(SVC(gamma=gamma).fit(rows, y)._gamma)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_weighted_gamma_is_that_of_repeated_rows(make):
    y, times = np.arange(20) % 2, np.arange(20) % 3 + 1
    repeated = gamma_of(np.repeat(A, times, axis=0), np.repeat(y, times))
    assert gamma_of(make(A), y, weight=times.astype(float)) == pytest.approx(repeated)


def test_constant_rows_do_not_divide_by_zero():
    assert gamma_of(np.ones((4, 2)), [0, 1, 0, 1]) == 1.0


def test_a_callable_of_the_wrong_shape_is_named():
    kernel = Kernel(lambda P, Q: np.ones(3))
    with pytest.raises(ValueError, match=r"returned shape \(3,\)"):
        kernel(A, B, NUMPY)


def test_callable_equals_named(backend):
    kernel = Kernel(lambda P, Q: reference("rbf", P, Q))
    rows = kernel.prepare(A, backend, "float64")
    np.testing.assert_allclose(backend.numpy(kernel(rows, rows, backend)), reference("rbf", A, A))
    np.testing.assert_allclose(backend.numpy(kernel.diagonal(rows, backend)), np.ones(20))
