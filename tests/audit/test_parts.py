"""The map, and which flips a game takes back."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from floral_bench.recovery import RecoveryDisplay, recovery
from floral_learn import FloralClassifier, find_label_issues


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


@pytest.mark.parametrize(
    ("rows", "message"), [([500], "names row 500"), (np.zeros(120, bool), "names no row"), (None, "call fit first")]
)
def test_recovery_refuses_rows_that_do_not_exist(fitted, rows, message):
    with pytest.raises(ValueError, match=message):
        recovery(FloralClassifier() if rows is None else fitted[2], [0] if rows is None else rows)


def test_recovery_display_draws_what_was_found(fitted):
    plt = pytest.importorskip("matplotlib.pyplot")
    X, rows, clf = fitted
    found = recovery(clf, rows)
    _, axes = plt.subplots(1, 2)
    RecoveryDisplay(found).plot(axes[0]).plot_points(X, axes[1])
    np.testing.assert_allclose(axes[0].lines[1].get_ydata(), 100 * found.ever)
    np.testing.assert_allclose(axes[1].collections[1].get_array(), 100 * found.per_label)
    plt.close("all")


def test_the_map_of_many_columns_is_their_principal_components():
    X = np.random.default_rng(0).normal(size=(30, 4))
    found = find_label_issues(X, np.repeat([0, 1], 15), random_state=0)
    assert found.map_method.startswith("two principal components")
    assert found.map_position.shape == (30, 2)
