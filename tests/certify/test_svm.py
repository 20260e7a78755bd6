"""The SVM itself: exact certificates where C is so small that every dual is at its bound, and why not elsewhere."""

from itertools import combinations

import numpy as np
import pytest
from qpsolvers import solve_qp
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from floral_learn import CertifiedKernelClassifier


def svm_duals(K, y, C):
    """argmin_a a'Qa / 2 - 1'a, 0 <= a <= C, Q = diag(y) K diag(y): the SVM without an intercept."""
    n = len(y)
    Q = sparse.csc_matrix(np.outer(y, y) * K + 1e-10 * np.eye(n))
    return solve_qp(Q, -np.ones(n), lb=np.zeros(n), ub=np.full(n, C), solver="clarabel")


@pytest.fixture
def problem():
    rng = np.random.default_rng(3)
    X, X_test = rng.normal(size=(9, 2)), rng.normal(size=(12, 2))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=9) > 0, 1.0, -1.0)
    return X, y, X_test, rbf_kernel(X, gamma=0.5), rbf_kernel(X_test, X, gamma=0.5)


def test_below_one_over_the_largest_row_sum_every_dual_is_at_its_bound_whatever_the_labels(problem):
    _, y, _, K, _ = problem
    C = 0.999 / K.sum(axis=1).max()
    rng = np.random.default_rng(0)
    for labels in [y, *rng.choice([-1.0, 1.0], size=(10, 9))]:
        np.testing.assert_allclose(svm_duals(K, labels, C), C, atol=1e-6)
    assert svm_duals(K, np.ones(9), 20 * C).min() < 19 * C  # not so for a larger one


def test_there_the_certificate_of_a_large_ridge_is_that_of_the_svm(problem):
    X, y, X_test, K, between = problem
    C = 0.999 / K.sum(axis=1).max()
    clf = CertifiedKernelClassifier(gamma=0.5, ridge=1e6, fit_intercept=False).fit(X, y)
    flips = clf.certified_flips(X_test)
    before = np.sign(between @ (y * svm_duals(K, y, C)))
    np.testing.assert_array_equal(clf.predict(X_test), before)
    fewest = np.full(len(X_test), len(y))  # brute force over all sets of flips
    for size in range(len(y), 0, -1):
        for rows in combinations(range(len(y)), size):
            labels = y.copy()
            labels[list(rows)] *= -1
            turned = np.sign(between @ (labels * C)) != before
            fewest[turned] = size - 1
    np.testing.assert_array_equal(flips, fewest)


def test_with_an_intercept_one_flip_ends_it():
    """y'a = 0 with all a = C needs two classes of the same size, which a flip makes uneven."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.repeat([-1, 1], 20)
    for flips, at_bound in ((0, 40), (1, 38), (3, 34)):
        labels = np.where(np.arange(40) < flips, 1, y)
        found = np.zeros(40)
        model = SVC(C=1e-3, gamma=0.5).fit(X, labels)
        found[model.support_] = np.abs(model.dual_coef_[0])
        assert np.isclose(found, 1e-3).sum() == at_bound
