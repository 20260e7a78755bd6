"""What a game says of its own labels: margins without a row's own term, and reasons."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import average_precision_score
from sklearn.preprocessing import StandardScaler

from floral_learn import FloralClassifier
from floral_learn.game.model import REASONS, margins, predicted, reason_texts


def test_margins_of_two_and_of_more_classes():
    np.testing.assert_allclose(margins(np.array([[2.0], [2.0]]), np.array([1, 0])), [2.0, -2.0])
    scores = np.array([[3.0, 1.0, 0.0], [0.0, 1.0, 5.0]])
    np.testing.assert_allclose(margins(scores, np.array([0, 1])), [1.0, -2.0])
    np.testing.assert_array_equal(predicted(scores), [0, 2])


def test_reasons_are_named():
    scores = np.array([[-3.0], [3.0], [0.0], [3.0]])
    texts = reason_texts(scores, np.ones(4, int), np.array([0.4, 0.0, 0.1, 0.4]), np.array([1.0, 0.2, 0.0, 0.0]))
    assert texts == [", ".join(REASONS), "", "", REASONS[1]]


def test_the_score_ranks_planted_flips_first():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    flipped = np.random.default_rng(1).random(len(y)) < 0.1
    clf = FloralClassifier(budget=0.1, random_state=0).fit(X, np.where(flipped, 1 - y, y))
    for rows, least in ((None, 0.9), (X, 0.96)):  # the evidence of find_label_issues ranks better than the game does
        issues = clf.label_issues(rows)
        assert average_precision_score(flipped[issues["row"]], issues["score"]) > least
        assert issues["score"].nunique() > 500  # a fine scale, no plateau


def test_own_terms_are_those_of_the_kernel_that_was_trained():
    # A low-rank kernel has (FF')_ii in place of k(x, x): subtracting 1 would turn margins round.
    X = np.random.default_rng(0).normal(size=(600, 12))
    y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
    clf = FloralClassifier(gamma=0.2, gram=60, random_state=0).fit(X, y)
    weights = np.zeros(600)
    weights[clf.support_] = clf.dual_coef_[0]
    # f without row i, from the expansion in landmarks: F F' is k(., landmarks) k(landmarks)^-1 k(landmarks, .)
    marks = clf.model_.basis
    k = lambda A, B: np.exp(-0.2 * ((A[:, None] - B[None]) ** 2).sum(-1))  # noqa: E731
    approximate = k(X, marks) @ np.linalg.solve(k(marks, marks) + 1e-9 * np.eye(len(marks)), k(marks, X))
    assert np.diag(approximate).mean() < 0.8
    expected = clf.decision_function(X) - weights * np.diag(approximate)
    np.testing.assert_allclose(clf.record_.scores[:, 0], expected, atol=2e-3)
