"""The parts of an audit: neighbours, calibration, encoding, the map, recovery."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_moons

from floral_bench.recovery import RecoveryDisplay, recovery
from floral_learn import FloralClassifier
from floral_learn.audit.neighbours import find_neighbours
from floral_learn.audit.run import place_on_map


def test_neighbours_match_a_plain_loop_and_leave_the_row_itself_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[7] = X[3]  # equal rows: each is the other's neighbour, not its own
    near = find_neighbours(X, rng)
    distance = np.linalg.norm(X[:, None] - X[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    for i in range(60):
        np.testing.assert_allclose(distance[i, near.rows[i]], np.sort(distance[i])[: near.rows.shape[1]])
    labels = rng.integers(0, 3, 60)
    votes = near.votes(labels, 3)
    np.testing.assert_allclose(votes.sum(axis=1), 1)
    np.testing.assert_allclose(near.disagreement(labels), 1 - votes[np.arange(60), labels])


@pytest.fixture(scope="module")
def fitted():
    X, y = make_moons(120, noise=0.2, random_state=0)
    rows = np.arange(0, 120, 10)
    given = y.copy()
    given[rows] = 1 - given[rows]
    return X, rows, FloralClassifier(gamma=1.0, budget=20, n_rounds=60, random_state=0).fit(X, given)


def test_recovery_counts_flips_as_a_plain_loop_does(fitted):
    _, rows, clf = fitted
    found = recovery(clf, rows)
    flips = clf.history_["flips"].reshape(60, -1)
    expected = [len(set(f[f >= 0]) & set(rows)) / len(rows) for f in flips]
    np.testing.assert_allclose(found.per_round, expected)
    np.testing.assert_allclose(found.per_label, clf.flip_rate_[rows])
    assert found.per_round[0] == 0  # the warm-up
    assert np.isnan(found.precision[0])
    assert (np.diff(found.ever) >= 0).all()
    assert 0 < found.mean < 1
    assert "12 poisoned labels over 60 rounds" in repr(found)
    assert len(repr(found)) < 120
    mask = np.isin(np.arange(120), rows)
    np.testing.assert_array_equal(recovery(clf, mask).per_round, found.per_round)


def test_recovery_refuses_rows_that_do_not_exist(fitted):
    _, _, clf = fitted
    with pytest.raises(ValueError, match="names row 500"):
        recovery(clf, [500])
    with pytest.raises(ValueError, match="names no row"):
        recovery(clf, np.zeros(120, bool))
    with pytest.raises(ValueError, match="call fit first"):
        recovery(FloralClassifier(), [0])


def test_recovery_display_draws_what_was_found(fitted):
    plt = pytest.importorskip("matplotlib.pyplot")
    X, rows, clf = fitted
    found = recovery(clf, rows)
    _, axes = plt.subplots(1, 2)
    RecoveryDisplay(found).plot(axes[0]).plot_points(X, axes[1])
    np.testing.assert_allclose(axes[0].lines[1].get_ydata(), 100 * found.ever)
    np.testing.assert_allclose(axes[1].collections[1].get_array(), 100 * found.per_label)
    plt.close("all")


def test_umap_draws_the_map_where_it_is_installed(monkeypatch):
    class UMAP:
        def __init__(self, random_state):
            self.random_state = random_state

        def fit_transform(self, X):
            return X[:, 1:3]

    X = np.random.default_rng(0).normal(size=(30, 4))
    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=UMAP))
    place, name = place_on_map(X, np.random.default_rng(0))
    assert name == "UMAP"
    np.testing.assert_array_equal(place, X[:, 1:3])
    monkeypatch.setitem(sys.modules, "umap", None)  # as if it were not installed
    place, name = place_on_map(X, np.random.default_rng(0))
    assert name.startswith("two principal components")
    assert place.shape == (30, 2)
