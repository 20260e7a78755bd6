"""Flags from held-out probabilities: a heap of contradicted labels is found; overlap and chance are none."""

import numpy as np
import pytest
from scipy.special import expit

from floral_learn.labels.flagging import (
    contradiction,
    error_among_surest,
    flag,
    gain_over_shares,
    second_heap,
    temper,
    undo_direction,
    unrecognised,
)


def two(p):
    return np.column_stack([1 - p, p])


@pytest.mark.parametrize("share", [0.05, 0.15, 0.3])
def test_random_errors_in_separate_classes_are_flagged_and_counted(share):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1000)
    wrong = rng.random(1000) < share
    scores = (2 * y - 1) * rng.gamma(8, 0.2, 1000)
    given = np.where(wrong, 1 - y, y)
    found = flag(temper(np.column_stack([-scores, scores]), given), given)
    assert found.informative
    assert found.apart
    assert 0.9 < found.mask.sum() / wrong.sum() < 1.1
    assert wrong[found.mask].mean() > 0.95


@pytest.mark.parametrize("distance", [0.5, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("n", [1000, 20_000])
def test_right_labels_of_overlapping_gaussians_do_not_stand_apart(distance, n):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, n)
    log_odds = distance * (rng.normal(size=n) + distance * (y - 0.5))
    found = flag(two(expit(log_odds)), y)
    assert not found.apart
    assert found.mask.mean() < 0.12


def test_predictions_that_know_nothing_flag_nothing():
    rng = np.random.default_rng(2)
    labels = (rng.random(500) < 0.02).astype(int)
    found = flag(temper(rng.normal(size=(500, 2)), labels), labels)
    assert not found.informative
    assert found.gain < 0.02
    assert not found.mask.any()
    assert (found.suspicion == 0).all()


def test_trusted_labels_are_never_flagged():
    labels = np.r_[np.zeros(100, int), np.ones(100, int)]
    p = np.where(np.arange(200) < 100, 0.05, 0.95)
    labels[:10] = 1
    trusted = np.arange(200) < 5
    found = flag(two(p), labels, trusted=trusted)
    assert not found.mask[:5].any()
    assert found.mask[5:10].all()


def test_tempered_scores_are_calibrated_and_useless_ones_become_the_class_shares():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 3000)
    scores = 5 * (np.eye(3)[y] + 0.7 * rng.normal(size=(3000, 3)))
    p = temper(scores, y)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(p.mean(axis=0), np.bincount(y) / 3000, atol=1e-3)
    named = p.max(axis=1)
    sure = named > 0.8
    assert abs(named[sure].mean() - (p.argmax(axis=1) == y)[sure].mean()) < 0.04
    noise = temper(rng.normal(size=(3000, 3)), y)
    assert np.abs(noise - np.bincount(y) / 3000).max() < 0.06


def test_the_gain_is_that_of_log_loss():
    labels = np.array([0] * 6 + [1] * 4)
    p = np.where(labels == 1, 0.9, 0.2)
    base = -(6 * np.log(0.6) + 4 * np.log(0.4))
    saved = base + 4 * np.log(0.9) + 6 * np.log(0.8)
    np.testing.assert_allclose(gain_over_shares(two(p), labels)[0], saved / base)


def test_errors_in_one_direction_are_undone():
    # Three in ten of class 0 are called 1: a row that is surely 0 shows (0.7, 0.3), the border shows (0.35, 0.65).
    p = np.r_[np.full(200, 0.3), np.full(200, 0.99), 0.65]
    undone = undo_direction(two(p))
    assert abs(undone[-1, 1] - 0.5) < 0.06
    np.testing.assert_allclose(undone.sum(axis=1), 1)


def test_a_heap_is_a_second_one_and_a_slope_is_none():
    rng = np.random.default_rng(4)
    main = -1 + rng.gamma(1.0, 0.15, 900)
    cut, clear = second_heap(np.r_[main, rng.normal(0.7, 0.08, 60)])
    assert clear > 2.5
    assert 0 < cut < 0.7
    assert second_heap(main)[1] < 1
    assert second_heap(rng.normal(0, 0.1, 900))[1] == 0


def test_random_errors_stay_among_the_surest_rows_and_overlap_does_not():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 5000)
    log_odds = 2 * (rng.normal(size=5000) + 2 * (y - 0.5))
    assert error_among_surest(two(expit(log_odds)), y) < 0.02
    given = np.where(rng.random(5000) < 0.15, 1 - y, y)
    assert 0.1 < error_among_surest(two(expit(log_odds)), given) < 0.2


def test_a_class_that_is_never_named_is_not_judged():
    rng = np.random.default_rng(6)
    labels = np.r_[np.zeros(200, int), np.ones(200, int), np.full(60, 2)]
    p = np.tile([0.85, 0.05, 0.1], (460, 1))
    p[200:400] = [0.05, 0.85, 0.1]
    p[400:] = p[rng.integers(0, 400, 60)]
    assert unrecognised(p).tolist() == [2]
    assert contradiction(p, labels)[400:].min() > 0.6


def test_scores_of_ten_classes_work():
    rng = np.random.default_rng(7)
    y = rng.integers(0, 10, 1500)
    wrong = rng.random(1500) < 0.1
    given = np.where(wrong, (y + rng.integers(1, 10, 1500)) % 10, y)
    found = flag(temper(4 * np.eye(10)[y] + rng.normal(size=(1500, 10)), given), given)
    assert found.apart
    assert wrong[found.mask].mean() > 0.9
    assert (found.suggested[wrong] == y[wrong]).mean() > 0.9
