"""What is shown of a projected step, and what is not: docs/theory.md, "The step"."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from floral_learn.game import project
from floral_learn.paper import PaperFloralClassifier


def step(dual, y, K, eta, C):
    """One round of the defender under labels y."""
    return project(dual - eta * (y * (K @ (y * dual)) - 1), y, C).dual


def top(matrix):
    return float(np.linalg.eigvalsh(matrix)[-1])


def centred(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


@st.composite
def rounds(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(4, 30))
    K = rbf_kernel(rng.normal(size=(n, 3)), gamma=draw(st.sampled_from([0.01, 0.3, 3.0])))
    labels = np.concatenate([[1, -1], rng.choice([-1, 1], n - 2)])
    flipped = np.where(rng.random(n) < 0.2, -labels, labels)
    C = draw(st.sampled_from([0.1, 1.0, 100.0]))
    return K, labels, flipped, C, rng.random((2, n)) * C


@settings(max_examples=80, deadline=None)
@given(rounds())
def test_below_two_over_the_largest_eigenvalue_no_flips_move_two_games_apart(problem):
    K, labels, flipped, C, starts = problem
    a, b = (project(start, labels, C).dual for start in starts)
    eta = 1.99 / top(K)
    moved = step(a, flipped, K, eta, C) - step(b, flipped, K, eta, C)
    assert np.linalg.norm(moved) <= np.linalg.norm(a - b) * (1 + 1e-9) + 1e-12


@settings(max_examples=80, deadline=None)
@given(rounds())
def test_with_labels_that_stay_the_centred_matrix_is_enough(problem):
    K, labels, _, C, starts = problem
    a, b = (project(start, labels, C).dual for start in starts)
    eta = 1.99 / max(top(centred(K)), 1e-9)
    moved = step(a, labels, K, eta, C) - step(b, labels, K, eta, C)
    assert np.linalg.norm(moved) <= np.linalg.norm(a - b) * (1 + 1e-9) + 1e-9


def test_after_new_flips_the_default_step_can_move_two_games_apart_and_the_box_holds():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = StandardScaler().fit_transform(X[:200]), 2.0 * y[:200] - 1
    K = rbf_kernel(X, gamma=1 / (X.shape[1] * X.var()))
    eta = 1.5 / top(centred(K))
    H = np.eye(200) - 1 / 200
    constant = np.linalg.norm(H @ (np.eye(200) - eta * K), 2)
    assert constant > 1.3
    # Two games in which no dual is at a bound, under labels that have just changed: they differ in the direction that
    # H(I - eta K) stretches most, in signed duals under the new labels.
    direction = np.linalg.svd(H @ (np.eye(200) - eta * K))[2][0]
    flipped = np.random.default_rng(0).permutation(np.repeat([-1.0, 1.0], 100))
    a = np.full(200, 50.0)
    b = a + 1e-3 * flipped * direction
    apart = np.linalg.norm(step(a, flipped, K, eta, 100.0) - step(b, flipped, K, eta, 100.0)) / np.linalg.norm(a - b)
    assert apart > 1.3
    clf = PaperFloralClassifier(C=1.0, budget=40, learning_rate=eta, n_rounds=60, random_state=0).fit(X, y)
    assert np.abs(clf.dual_coef_).max() <= 1.0 + 1e-12
