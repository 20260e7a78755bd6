"""KNNRelabel against a plain loop, and what its guards promise."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floral_learn.paper import KNNRelabel


def resample(sanitizer, X, y):
    """What a sanitiser keeps and replaces: rows, labels and masks over the given rows."""
    rows, labels = sanitizer.fit_resample(X, y)
    kept = np.isin(np.arange(len(y)), sanitizer.sample_indices_)
    return SimpleNamespace(X=rows, y=labels, kept=kept, relabeled=sanitizer.relabeled_)


def loop_relabel(X, y, k, threshold):
    """One row at a time: sort all others by distance, count, replace."""
    new = []
    for i in range(len(X)):
        order = sorted((j for j in range(len(X)) if j != i), key=lambda j: np.linalg.norm(X[i] - X[j]))
        labels = [y[j] for j in order[:k]]
        counts = {c: labels.count(c) for c in set(labels)}
        top = max(counts.values())
        modes = sorted(c for c in counts if counts[c] == top)
        keep = y[i] in modes or top / k < threshold - 1e-12
        new.append(y[i] if keep else modes[0])
    return np.array(new)


@pytest.mark.parametrize(("k", "threshold"), [(1, 0.5), (5, 0.6), (20, 0.75), (20, 0.95)])
def test_equals_the_loop_on_moons_and_on_three_classes(noisy_moons, noisy_blobs, k, threshold):
    for X, y, _ in (noisy_moons(), noisy_blobs()):
        result = resample(KNNRelabel(n_neighbors=k, threshold=threshold), X, y)
        expected = loop_relabel(X, y, k, threshold)
        np.testing.assert_array_equal(result.y, expected)
        np.testing.assert_array_equal(result.relabeled, expected != y)
        assert result.kept.all()


def test_some_flips_are_undone(noisy_blobs):
    X, y, flipped = noisy_blobs()
    result = resample(KNNRelabel(n_neighbors=10, threshold=0.7), X, y)
    np.testing.assert_array_equal(result.relabeled, flipped)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(4, 25), st.integers(1, 8), st.sampled_from([0.5, 0.6, 0.8, 1.0]))
def test_property_equals_the_loop_and_never_loses_a_class(seed, n, k, threshold):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = rng.integers(0, 3, size=n)
    y[:2] = 0, 1
    result = resample(KNNRelabel(n_neighbors=k, threshold=threshold), X, y)
    expected = loop_relabel(X, y, min(k, n - 1), threshold)
    emptied = [c for c in np.unique(y) if (expected[y == c] != c).all()]
    same = ~np.isin(y, emptied)
    np.testing.assert_array_equal(result.y[same], expected[same])
    assert set(np.unique(result.y)) == set(np.unique(y))


def test_the_container_and_the_label_type_survive(noisy_moons):
    X, y, _ = noisy_moons()
    frame = pd.DataFrame(X, columns=["a", "b"])
    words = np.array(["no", "yes"])[y]
    result = resample(KNNRelabel(n_neighbors=5, threshold=0.6), frame, pd.Series(words))
    assert isinstance(result.X, pd.DataFrame)
    assert list(result.X.columns) == ["a", "b"]
    assert set(result.y) == {"no", "yes"}
    np.testing.assert_array_equal(result.y == "yes", resample(KNNRelabel(n_neighbors=5, threshold=0.6), X, y).y == 1)


def test_a_class_that_would_vanish_keeps_its_best_member():
    X = np.linspace(0, 1, 12)[:, None]
    y = np.zeros(12, int)
    y[5] = 1
    result = resample(KNNRelabel(n_neighbors=3, threshold=0.5), X, y)
    assert result.y[5] == 1
    assert not result.relabeled.any()
