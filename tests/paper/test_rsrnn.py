"""RSRNN: the objective against a loop, the moves and the pruning it promises, flips left out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floral_learn.paper import RSRNNClassifier
from floral_learn.paper.rsrnn import _majority_labels, _prune


def loop_objective(X, y, centroids, labels, penalty, complexity):
    """The printed objective, one row at a time."""
    variance = sum(np.var(X[:, j]) for j in range(X.shape[1]))
    total = 0.0
    for x, label in zip(X, y, strict=True):
        squares = [np.sum((x - c) ** 2) for c in centroids]
        j = int(np.argmin(squares))
        total += 1.0 if labels[j] != label else penalty * squares[j] / variance
    return total / len(X) + complexity * len(centroids)


@pytest.mark.parametrize(("penalty", "complexity"), [(0.1, 0.01), (1.0, 0.1), (0.0, 0.0)])
def test_objective_prediction_and_judgement_equal_the_loop(noisy_moons, penalty, complexity):
    X, y, _ = noisy_moons()
    model = RSRNNClassifier(n_centroids=8, penalty=penalty, complexity=complexity, random_state=0).fit(X, y)
    expected = loop_objective(X, y, model.centroids_, model.centroid_labels_, penalty, complexity)
    assert model.objective_ == pytest.approx(expected, rel=1e-9)
    assert model.objective_ == min(model.history_)
    nearest = [int(np.argmin([np.sum((x - c) ** 2) for c in model.centroids_])) for x in X]
    np.testing.assert_array_equal(model.predict(X), model.centroid_labels_[nearest])
    np.testing.assert_array_equal(model.flipped_, model.predict(X) != y)


def test_flips_inside_clusters_are_judged_and_left_out_of_the_means(noisy_blobs):
    X, y, flipped = noisy_blobs()
    model = RSRNNClassifier(n_centroids=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.flipped_, flipped)
    for centroid, label in zip(model.centroids_, model.centroid_labels_, strict=True):
        np.testing.assert_allclose(centroid, X[(y == label) & ~flipped].mean(axis=0), atol=1e-9)


def test_dear_centroids_are_dropped_down_to_one_a_class(noisy_moons):
    X, y, _ = noisy_moons()
    cheap = RSRNNClassifier(n_centroids=10, penalty=1.0, complexity=0.0, random_state=0).fit(X, y)
    dear = RSRNNClassifier(n_centroids=10, penalty=1.0, complexity=10.0, random_state=0).fit(X, y)
    assert len(cheap.centroids_) > 4
    assert sorted(dear.centroid_labels_) == [0, 1]


def test_pruning_stops_where_no_single_removal_helps(noisy_moons):
    X, y, _ = noisy_moons()
    rng = np.random.default_rng(0)
    centroids, labels = X[rng.choice(80, 8, replace=False)], np.arange(8) % 2
    squared = ((X[:, None] - centroids) ** 2).sum(axis=2)
    scale = 0.5 / X.var(axis=0).sum()
    keep = _prune(squared, y, labels, scale, 0.02)
    assert 2 <= len(keep) < 8
    score = lambda rows: loop_objective(X, y, centroids[rows], labels[rows], 0.5, 0.02)  # noqa: E731
    assert score(keep) < score(np.arange(8))
    for j in range(len(keep)):
        rest = np.delete(keep, j)
        if set(labels[rest]) == {0, 1}:
            assert score(rest) >= score(keep)


def test_majority_by_hand_ties_and_empty_centroids_keep_their_label():
    nearest = np.array([0, 0, 0, 1, 1, 2, 2])
    codes = np.array([1, 1, 0, 0, 1, 0, 0])
    np.testing.assert_array_equal(_majority_labels(nearest, codes, np.array([0, 1, 1, 1]), 2), [1, 1, 0, 1])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(4, 40), st.integers(1, 8), st.integers(2, 4))
def test_property_every_class_owns_a_centroid(seed, n, k, classes):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)), rng.integers(0, classes, size=n)
    y[:2] = 0, 1
    model = RSRNNClassifier(n_centroids=k, random_state=0).fit(X, y)
    assert set(model.centroid_labels_) == set(y)
    assert np.isfinite(model.decision_function(X)).all()


def test_weights_have_no_meaning_here_and_are_refused(noisy_moons):
    X, y, _ = noisy_moons()
    with pytest.raises(TypeError, match="sample_weight"):
        RSRNNClassifier().fit(X, y, sample_weight=np.ones(len(y)))
