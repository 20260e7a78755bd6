"""CurieFilter against a plain loop over DBSCAN clusters, and its two ways to compare."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.cluster import DBSCAN
from sklearn.datasets import make_moons

from floral_learn.paper import CurieFilter
from floral_learn.paper.curie_filter import find_clusters


def resample(sanitizer, X, y, **options):
    """What a sanitiser keeps and replaces: rows, labels and masks over the given rows."""
    rows, labels = sanitizer.fit_resample(X, y, **options)
    kept = np.isin(np.arange(len(y)), sanitizer.sample_indices_)
    return SimpleNamespace(X=rows, y=labels, kept=kept, relabeled=sanitizer.relabeled_)


def loop_scores(X, y, eps, min_samples, gap, k=None):
    """Mean joint distance of each row to its k nearest (or all) cluster mates, standardised a cluster."""
    clusters = DBSCAN(eps=eps, min_samples=min_samples).fit(X).labels_
    scores = np.zeros(len(X))
    for cluster in set(clusters):
        members = [i for i in range(len(X)) if clusters[i] == cluster]
        if len(members) < 2:
            continue
        means = []
        for i in members:
            mates = sorted((j for j in members if j != i), key=lambda j: np.linalg.norm(X[i] - X[j]))[:k]
            joint = [np.sqrt(np.sum((X[i] - X[j]) ** 2) + (gap if y[i] != y[j] else 0.0) ** 2) for j in mates]
            means.append(np.mean(joint))
        if np.std(means) > 1e-12:
            scores[members] = (np.array(means) - np.mean(means)) / np.std(means)
    return scores


def gap_of(X, weight):
    return weight * np.sqrt(np.mean(np.sum((X - X.mean(0)) ** 2, axis=1)))


@pytest.mark.parametrize(("compare", "k"), [("nearest", 6), ("all", None)])
@pytest.mark.parametrize("confidence", [0.75, 0.95])
def test_equals_the_loop(noisy_moons, noisy_blobs, compare, k, confidence):
    for X, y, _ in (noisy_moons(), noisy_blobs()):
        filt = CurieFilter(
            confidence=confidence, n_neighbors=6, compare=compare, eps=0.4, min_samples=4, label_weight=1.5
        )
        result = resample(filt, X, y)
        expected = loop_scores(X, y, 0.4, 4, gap_of(X, 1.5), k)
        np.testing.assert_allclose(filt.scores_, expected, atol=1e-9)
        np.testing.assert_array_equal(result.kept, expected <= norm.ppf(confidence))
        np.testing.assert_array_equal(result.X, X[result.kept])
        np.testing.assert_array_equal(result.y, y[result.kept])
        assert 0 < (~result.kept).sum() < len(y) / 2
        assert not result.relabeled.any()


def test_flips_in_separated_clusters_are_dropped_and_little_else(noisy_blobs):
    X, y, flipped = noisy_blobs()
    for compare in ("nearest", "all"):
        filt = CurieFilter(confidence=0.95, compare=compare, eps=1.5, label_weight=3.0)
        dropped = ~resample(filt, X, y).kept
        assert dropped[flipped].all(), compare
        assert dropped[~flipped].mean() < 0.06, compare


@pytest.mark.parametrize("eps", [0.1, 0.2, 0.35, 1.0])
@pytest.mark.parametrize("n", [60, 600])
def test_clusters_equal_unlimited_dbscan(n, eps):
    X, _ = make_moons(n, noise=0.1, random_state=1)
    X[:3] = X[3]  # duplicates at distance zero
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clusters, radius = find_clusters(X, eps, 5)
    np.testing.assert_array_equal(clusters, DBSCAN(eps=eps, min_samples=5).fit(X).labels_)
    assert radius == eps


def test_auto_radius_makes_nine_in_ten_rows_core(noisy_moons):
    X, _, _ = noisy_moons(200)
    _, radius = find_clusters(X, "auto", 5)
    near = (np.linalg.norm(X[:, None] - X, axis=2) <= radius).sum(axis=1)
    assert 0.88 <= np.mean(near >= 5) <= 0.93


def test_wide_features_are_compressed_and_flips_still_found():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 80)) * 0.05
    X[:, 0] += 4.0 * y
    y[:3] = 1
    result = resample(CurieFilter(confidence=0.95, label_weight=2.0), X, y)
    assert not result.kept[:3].any()
    assert result.kept[3:].mean() > 0.9


def test_a_frame_comes_back_as_a_frame_with_its_own_index(noisy_moons):
    X, y, _ = noisy_moons()
    frame = pd.DataFrame(X, index=np.arange(1000, 1000 + len(X)))
    result = resample(CurieFilter(confidence=0.9), frame, y)
    assert isinstance(result.X, pd.DataFrame)
    np.testing.assert_array_equal(result.X.index, frame.index[result.kept])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(4, 30), st.sampled_from(["nearest", "all"]))
def test_property_no_class_is_lost_and_dropped_rows_score_above_kept_ones(seed, n, compare):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)), rng.integers(0, 3, size=n)
    y[:2] = 0, 1
    filt = CurieFilter(confidence=0.6, n_neighbors=3, compare=compare)
    result = resample(filt, X, y)
    assert set(result.y) == set(y)
    threshold = norm.ppf(0.6)
    assert (filt.scores_[~result.kept] > threshold).all()


def test_more_components_than_features_is_an_error(noisy_moons):
    X, y, _ = noisy_moons()
    with pytest.raises(ValueError, match="n_components=3 is over"):
        resample(CurieFilter(n_components=3), X, y)
