"""Displays hold what was computed and draw it on the axis they are given."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_iris, make_moons
from sklearn.decomposition import PCA
from sklearn.svm import SVC

from floral_bench.displays import SecurityCurveDisplay
from floral_bench.transfer import TransferDisplay, transfer_table
from floral_learn import CertifiedKernelClassifier, load_moon
from floral_learn.attacks import Farthest, PoisonDisplay, RandomFlips, poison

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
    result = poison(X, y, attack="farthest", budget=9)
    display = PoisonDisplay.from_result(X, result)
    assert display.title == "9 of 60 labels flipped"
    assert display.plot(ax) is display
    assert display.ax_ is ax
    drawn = [len(points.get_offsets()) for points in ax.collections]
    assert sum(drawn[:-1]) == 60
    np.testing.assert_allclose(np.sort(ax.collections[-1].get_offsets(), axis=0), np.sort(X[result.indices], axis=0))


def test_the_scatter_refuses_rows_that_are_not_those_of_the_result(moons):
    X, y = moons
    with pytest.raises(ValueError, match="X has 59 rows"):
        PoisonDisplay.from_result(X[1:], poison(X, y, attack="farthest", budget=9))


@pytest.mark.parametrize("sparse", [False, True])
def test_many_features_are_drawn_as_their_first_two_components(sparse):
    X, y = load_iris(return_X_y=True)
    expected = np.abs(PCA(2).fit_transform(X))
    result = poison(X, y, attack="random", budget=9, random_state=0)
    display = PoisonDisplay.from_result(csr_matrix(X) if sparse else X, result)
    np.testing.assert_allclose(np.abs(display.X), expected, atol=1e-8)
    assert display.axis_labels[0] == "component 1 (92 % of the variance)"


def test_one_feature_is_drawn_against_the_row_number():
    result = poison(None, [0, 1] * 5, attack="random", budget=2, random_state=0)
    display = PoisonDisplay.from_result(np.ones((10, 1)), result)
    assert display.X.shape == (10, 2)
    assert display.axis_labels == ("feature 0", "row")


def test_attacks_are_taken_by_name_as_they_are_as_objects(moons):
    X, y = moons
    by_name, by_object = (
        SecurityCurveDisplay.from_estimator(SVC(), X, y, X, y, attacks=attacks, budgets=(0.1, 0.2), random_state=0)
        for attacks in (["random", "farthest"], {"random": RandomFlips(), "farthest": Farthest()})
    )
    for name, values in by_object.accuracies.items():
        np.testing.assert_array_equal(by_name.accuracies[name], values)


def test_an_unknown_attack_is_named_before_any_work(moons):
    X, y = moons
    with pytest.raises(ValueError, match="attack='fartest' is unknown; choose one of random, "):
        SecurityCurveDisplay.from_estimator(None, X, y, X, y, attacks=["fartest"])


def test_a_transfer_table_is_a_frame_and_a_picture(moons, ax):
    X, y = moons
    table = transfer_table(X, y, X, y, attacks=["farthest"], victims={"svc": SVC()}, budget=12, random_state=0)
    expected = SVC().fit(X, poison(X, y, attack="farthest", budget=12).y).score(X, y)
    assert table.loc["farthest", "svc"] == expected
    assert table.loc["(clean)", "svc"] == SVC().fit(X, y).score(X, y)
    TransferDisplay(table).plot(ax)
    assert ax.texts[0].get_text() == f"{table.loc['(clean)', 'svc'] - expected:.3f}"


def test_the_security_curve_is_the_victims_accuracy_on_clean_rows(moons, ax):
    X, y = moons
    X_test, y_test = make_moons(100, noise=0.2, random_state=1)
    attacks = {"random": RandomFlips(), "farthest": Farthest()}
    display = SecurityCurveDisplay.from_estimator(
        SVC(), X, y, X_test, y_test, attacks=attacks, budgets=(0.0, 0.2), n_repeats=2, random_state=0
    )
    assert set(display.accuracies) == {"random", "farthest"}
    assert display.accuracies["farthest"].shape == (2, 2)
    expected = [SVC().fit(X, poison(X, y, attack="farthest", budget=b).y).score(X_test, y_test) for b in (0.0, 0.2)]
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
    axis = display.plot().ax_
    assert axis.get_xlabel() == "flipped labels"
    np.testing.assert_allclose(axis.lines[0].get_xdata(), [0, 6])
    plt.close(axis.figure)


def test_a_certified_victim_has_a_line_that_no_attack_goes_below():
    moon = load_moon(n_train=100, n_val=1, n_test=200)
    data = moon.X_train, moon.y_train, moon.X_test, moon.y_test
    curves = SecurityCurveDisplay.from_estimator(
        CertifiedKernelClassifier(),
        *data,
        attacks=["random", "farthest", "pointwise"],
        budgets=(0.0, 0.05, 0.1),
        random_state=0,
    )
    assert curves.certified[0] > 0.8
    for values in curves.accuracies.values():
        assert (values >= curves.certified).all()
    labels = [line.get_label() for line in curves.plot().ax_.get_lines()]
    assert "certified: no attack goes below" in labels
