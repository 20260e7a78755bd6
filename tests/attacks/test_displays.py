"""Displays hold what was computed and draw it on the axis they are given."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from floral_learn.attacks import Farthest, PoisonDisplay, RandomFlips, SecurityCurveDisplay, poison

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture
def moons():
    return make_moons(60, noise=0.2, random_state=0)


@pytest.fixture
def ax():
    figure, axis = plt.subplots()
    yield axis
    plt.close(figure)


def test_the_scatter_shows_every_row_once_and_rings_the_flips(moons, ax):
    X, y = moons
    result = poison(X, y, "farthest", 9)
    display = PoisonDisplay.from_result(X, result)
    assert display.title == "9 of 60 labels flipped"
    assert display.plot(ax) is ax
    drawn = [len(points.get_offsets()) for points in ax.collections]
    assert sum(drawn[:-1]) == 60
    np.testing.assert_allclose(np.sort(ax.collections[-1].get_offsets(), axis=0), np.sort(X[result.indices], axis=0))


def test_the_scatter_needs_two_features(moons):
    X, y = moons
    result = poison(X, y, "farthest", 9)
    with pytest.raises(ValueError, match="needs two features"):
        PoisonDisplay.from_result(np.ones((60, 3)), result)
    with pytest.raises(ValueError, match="X has 59 rows"):
        PoisonDisplay.from_result(X[1:], result)


def test_the_security_curve_is_the_victims_accuracy_on_clean_rows(moons, ax):
    X, y = moons
    X_test, y_test = make_moons(100, noise=0.2, random_state=1)
    attacks = {"random": RandomFlips(), "farthest": Farthest()}
    display = SecurityCurveDisplay.from_estimator(
        SVC(), X, y, X_test, y_test, attacks=attacks, budgets=(0.0, 0.2), n_repeats=2, random_state=0
    )
    assert set(display.accuracies) == {"random", "farthest"}
    assert display.accuracies["farthest"].shape == (2, 2)
    expected = [SVC().fit(X, poison(X, y, "farthest", b).y).score(X_test, y_test) for b in (0.0, 0.2)]
    np.testing.assert_allclose(display.accuracies["farthest"][0], expected)
    display.plot(ax)
    line = ax.lines[1]
    np.testing.assert_allclose(line.get_xdata(), [0, 20])
    np.testing.assert_allclose(line.get_ydata(), expected)
    assert ax.get_xlabel() == "flipped labels (%)"


def test_counts_are_drawn_as_counts_on_a_new_figure(moons):
    X, y = moons
    display = SecurityCurveDisplay.from_estimator(
        SVC(), X, y, X, y, attacks={"farthest": Farthest()}, budgets=(0, 6), random_state=0
    )
    axis = display.plot()
    assert axis.get_xlabel() == "flipped labels"
    np.testing.assert_allclose(axis.lines[0].get_xdata(), [0, 6])
    plt.close(axis.figure)


def test_importing_the_attacks_pulls_in_neither_torch_nor_matplotlib_nor_typer():
    code = (
        "import sys, floral_learn.attacks, floral_learn.datasets; "
        "print([m for m in ('torch', 'matplotlib', 'typer') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
