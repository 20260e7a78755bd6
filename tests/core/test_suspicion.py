"""Suspicion scores: their parts, their range, their order, and what they claim about planted flips."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.metrics import average_precision_score
from sklearn.preprocessing import StandardScaler

from floral_learn import FloralClassifier
from floral_learn.core.suspicion import (
    REASONS,
    best_other,
    disagreement,
    margins,
    predicted,
    reason_texts,
    suspicion,
    without_own,
)


def test_margins_of_two_and_of_more_classes():
    np.testing.assert_allclose(margins(np.array([[2.0], [2.0]]), np.array([1, 0])), [2.0, -2.0])
    scores = np.array([[3.0, 1.0, 0.0], [0.0, 1.0, 5.0]])
    np.testing.assert_allclose(margins(scores, np.array([0, 1])), [1.0, -2.0])
    np.testing.assert_allclose(disagreement(np.array([[0.0]]), np.array([1])), [0.5])


def test_the_suggestion_is_never_the_given_label():
    scores = np.array([[3.0, 1.0, 0.0], [0.0, 1.0, 5.0]])
    np.testing.assert_array_equal(best_other(scores, np.array([0, 1])), [1, 2])
    np.testing.assert_array_equal(best_other(np.array([[4.0], [-4.0]]), np.array([1, 1])), [0, 0])
    np.testing.assert_array_equal(predicted(scores), [0, 2])


def test_disagreement_and_flips_raise_the_score_and_are_named():
    scores = np.array([[-3.0], [3.0], [0.0], [3.0]])
    labels = np.ones(4, dtype=int)
    score, reasons = suspicion(scores, labels, np.array([0.4, 0.0, 0.1, 0.4]), np.array([1.0, 0.2, 0.0, 0.0]))
    assert score[0] > score[2] > score[1]
    assert score[3] > score[1]
    assert (score >= 0).all()
    assert (score <= 1).all()
    assert reason_texts(reasons)[0] == "; ".join(REASONS[:3])
    assert reason_texts(reasons)[1] == ""
    assert reason_texts(reasons)[3] == REASONS[1]


def test_without_own_leaves_out_exactly_one_term():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(6, 2)), rng.normal(size=(6, 3))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
    expected = np.array([np.delete(K[i], i) @ np.delete(weights, i, axis=0) for i in range(6)])
    np.testing.assert_allclose(without_own(K @ weights, weights, np.diag(K)), expected)


@pytest.fixture(scope="module")
def held_out():
    """Data on which the fixed coefficients were not fitted, with a tenth of the labels flipped."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    flipped = np.random.default_rng(1).random(len(y)) < 0.1
    clf = FloralClassifier(budget=0.1, n_rounds=200, random_state=0).fit(X, np.where(flipped, 1 - y, y))
    return clf.label_issues(), flipped


def test_suspicion_is_near_the_observed_frequency_of_planted_flips(held_out):
    issues, flipped = held_out
    wrong = flipped[issues["row"]]
    high = issues["suspicion"] > 0.5
    assert high.sum() >= 30
    assert abs(issues["suspicion"][high].mean() - wrong[high].mean()) < 0.15
    assert wrong[~high].mean() < 0.05


def test_leaving_out_the_own_term_finds_more_than_margins_in_sample():
    gains = []
    for seed in range(3):
        X, y = make_moons(400, noise=0.2, random_state=seed)
        flipped = np.random.default_rng(seed).random(400) < 0.2
        clf = FloralClassifier(gamma=10.0, budget=0.05, n_rounds=200, random_state=0).fit(
            X, np.where(flipped, 1 - y, y)
        )
        issues = clf.label_issues()
        inside = -margins(clf._train_scores, clf._train_labels)
        found = average_precision_score(flipped[issues["row"]], issues["suspicion"])
        gains.append(found - average_precision_score(flipped, inside))
    assert np.mean(gains) > 0.01
