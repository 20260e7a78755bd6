"""The picture of a fit's history."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons

from floral_learn import FloralClassifier
from floral_learn.floral import HistoryDisplay

X, Y = make_moons(120, noise=0.2, random_state=0)


@pytest.mark.parametrize("quantity", ["objective", "residual", "bias", "mu", "step"])
def test_history_display(quantity):
    clf = FloralClassifier(n_rounds=30).fit(X, Y)
    display = HistoryDisplay.from_estimator(clf, quantity).plot()
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), clf.history_[quantity])
    assert display.ax_.get_xlabel() == "round"


def test_history_display_has_a_curve_for_each_class():
    P, labels = make_blobs(90, centers=3, random_state=0)
    display = HistoryDisplay.from_estimator(FloralClassifier(n_rounds=20).fit(P, labels)).plot()
    assert [line.get_label() for line in display.lines_] == ["0", "1", "2"]


def test_history_display_names_what_it_can_draw():
    with pytest.raises(ValueError, match="quantity='flips' must be one of"):
        HistoryDisplay.from_estimator(FloralClassifier(n_rounds=5).fit(X, Y), "flips")
