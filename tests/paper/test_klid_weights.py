"""K-LID: the estimator against its formula, the weights against their densities, flips never looked at."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

from floral_learn.paper import KLIDWeights
from floral_learn.paper.klid_weights import (
    cross_lid,
    density_ratio_weights,
    lid_of_nearest,
    nearest_distances,
    plant_flips,
)


def loop_lid(x, others, k, gamma):
    """LID = -k / sum log(t_i / t_k), with t = 1 / kernel - 1, straight from the definition."""
    t = sorted(1.0 / math.exp(-gamma * sum((x - o) ** 2)) - 1.0 for o in others)[:k]
    return -k / sum(math.log(ti / t[-1]) for ti in t)


def test_lid_equals_the_definition():
    rng = np.random.default_rng(0)
    X, others = rng.normal(size=(6, 3)), rng.normal(size=(25, 3))
    squared = ((X[:, None] - others) ** 2).sum(axis=2)
    for gamma in (0.01, 0.5, 3.0):
        expected = [loop_lid(x, others, 10, gamma) for x in X]
        np.testing.assert_allclose(lid_of_nearest(nearest_distances(squared, 10), gamma), expected, rtol=1e-8)


def test_lid_of_a_plane_is_about_its_dimension():
    rng = np.random.default_rng(1)
    for dimension in (1, 2, 4):
        points = rng.uniform(-1, 1, size=(4000, dimension))
        squared = (points**2).sum(axis=1)[None]
        # Kernel distance grows like the square of the distance, so it sees half the dimension.
        assert lid_of_nearest(nearest_distances(squared, 400), 1e-4)[0] == pytest.approx(dimension / 2, rel=0.2)


def test_lid_survives_duplicates_equal_distances_and_huge_distances():
    squared = np.array([[0.0, 0.0, 1.0, 2.0], [1.0, 1.0, 1.0, 1.0], [1e6, 2e6, 3e6, 4e6]])
    lid = lid_of_nearest(nearest_distances(squared, 4), 1.0)
    assert np.isfinite(lid).all()
    assert (lid > 0).all()


def test_cross_lid_of_one_batch_equals_the_loop():
    rng = np.random.default_rng(2)
    X, codes = rng.normal(size=(40, 2)), np.repeat([0, 1], 20)
    s = cross_lid(X, codes, 5, 0.3, batch_size=20, rng=np.random.RandomState(0))
    for i in range(40):
        own = [X[j] for j in range(40) if codes[j] == codes[i] and j != i]
        rest = [X[j] for j in range(40) if codes[j] != codes[i]]
        assert s[i] == pytest.approx(loop_lid(X[i], own, 5, 0.3) / loop_lid(X[i], rest, 5, 0.3), rel=1e-8)


def test_a_row_alone_in_its_class_keeps_weight_one():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(50, 2)), np.repeat([0, 1], 25)
    y[-1] = 2
    result = KLIDWeights(random_state=0).fit(X, y)
    assert result.sample_weight_[-1] == 1.0


def test_weights_fall_where_the_flipped_density_rules_and_lie_in_the_band():
    rng = np.random.default_rng(4)
    benign, flipped = rng.normal(1.0, 0.2, 3000), rng.normal(2.0, 0.2, 3000)
    weights = density_ratio_weights(np.array([0.5, 1.0, 1.5, 2.0, 3.0]), benign, flipped)
    assert (np.diff(weights) <= 0).all()
    assert weights[0] > 0.95
    assert weights[2] == pytest.approx(0.55, abs=0.15)  # equal densities: the middle
    assert weights[3] < 0.15
    assert weights.min() >= 0.1 - 1e-12
    mirrored = density_ratio_weights(np.array([1.0, 2.0]), flipped, benign)
    assert mirrored[0] < 0.15
    assert mirrored[1] > 0.95


def test_equal_densities_give_a_flat_middle_weight():
    rng = np.random.default_rng(5)
    same = rng.normal(1.0, 0.2, 4000)
    weights = density_ratio_weights(np.linspace(0.7, 1.3, 7), same, same.copy())
    np.testing.assert_allclose(weights, 0.55, atol=0.02)


def test_planted_flips_change_exactly_the_mask(noisy_moons):
    _, y, _ = noisy_moons(200)
    labels, planted = plant_flips(y, 2, 0.1, np.random.RandomState(0))
    assert planted.sum() == 20
    np.testing.assert_array_equal(labels != y, planted)
    three, planted = plant_flips(np.arange(300) % 3, 3, 0.3, np.random.RandomState(0))
    np.testing.assert_array_equal(three != np.arange(300) % 3, planted)
    assert set(three) == {0, 1, 2}


def test_flipped_rows_of_separated_classes_weigh_less():
    X, y = make_blobs(400, centers=[[0, 0], [6, 0]], cluster_std=1.0, random_state=0)
    rng = np.random.default_rng(0)
    flipped = np.zeros(400, bool)
    flipped[rng.choice(400, 40, replace=False)] = True
    result = KLIDWeights(random_state=0).fit(X, np.where(flipped, 1 - y, y))
    weight = result.sample_weight_
    assert weight[flipped].mean() < 0.35
    assert weight[~flipped].mean() > 0.75
    assert not hasattr(result, "fit_resample")  # a pipeline would lose the weights without a word


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(4, 60), st.integers(2, 3))
def test_property_weights_stay_in_the_band(seed, n, classes):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)), rng.integers(0, classes, size=n)
    y[:2] = 0, 1
    weight = KLIDWeights(random_state=0).fit(X, y).sample_weight_
    assert ((weight >= 0.1 - 1e-9) & (weight <= 1.0)).all()
