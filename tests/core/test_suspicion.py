"""Suspicion scores: their parts, their range and their order."""

import numpy as np

from floral_learn.core.suspicion import REASONS, margins, suspicion


def test_margins_of_two_and_of_more_classes():
    np.testing.assert_allclose(margins(np.array([[2.0], [2.0]]), np.array([1, 0])), [2.0, -2.0])
    scores = np.array([[3.0, 1.0, 0.0], [0.0, 1.0, 5.0]])
    np.testing.assert_allclose(margins(scores, np.array([0, 1])), [1.0, -2.0])


def test_disagreement_and_flips_raise_the_score_and_are_named():
    scores = np.array([[-3.0], [3.0], [0.0], [3.0]])
    labels = np.ones(4, dtype=int)
    score, reasons = suspicion(scores, labels, np.array([0.4, 0.0, 0.1, 0.4]), np.array([1.0, 0.2, 0.0, 0.0]))
    assert list(np.argsort(-score)) == [0, 3, 2, 1]
    assert (score >= 0).all()
    assert (score <= 1).all()
    np.testing.assert_array_equal(reasons[0], [True, True, True])
    np.testing.assert_array_equal(reasons[1], [False, False, False])
    np.testing.assert_array_equal(reasons[3], [False, True, False])
    assert len(REASONS) == reasons.shape[1]


def test_no_flips_at_all_leave_the_disagreement():
    score, _ = suspicion(np.array([[0.0]]), np.array([1]), np.zeros(1), np.zeros(1))
    assert score[0] == 0.25
