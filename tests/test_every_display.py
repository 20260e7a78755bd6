"""What holds for every Display: `plot()` takes an axis, returns the display, and keeps where it was drawn."""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import floral_learn
from floral_learn import FloralClassifier, load_moon, poison
from floral_learn.attacks import PoisonDisplay
from floral_learn.floral import HistoryDisplay

plt = pytest.importorskip("matplotlib.pyplot")


def found():
    names = {}
    for module in pkgutil.walk_packages(floral_learn.__path__, "floral_learn."):
        if ".cli" in module.name or ".text" in module.name:
            continue
        try:
            members = vars(importlib.import_module(module.name))
        except ImportError:  # of an extra that is not installed
            continue
        names |= {n: c for n, c in members.items() if inspect.isclass(c) and n.endswith("Display") and n[0] != "_"}
    return {n: c for n, c in names.items() if c.__module__.startswith("floral_learn")}


@pytest.fixture(scope="module")
def drawn():
    """One display of each kind, not yet drawn."""
    moon = load_moon(n_train=60, n_val=1, n_test=30)
    bad = poison(moon.X_train, moon.y_train, budget=0.2, random_state=0)
    clf = FloralClassifier(budget=0.2, n_rounds=20, tol=None, random_state=0).fit(moon.X_train, bad.y)
    made = [PoisonDisplay.from_result(moon.X_train, bad), HistoryDisplay.from_estimator(clf)]
    return {type(display).__name__: display for display in made}


@pytest.mark.parametrize("name", sorted(found()))
def test_plot_returns_the_display_and_keeps_the_axis(name, drawn):
    display = drawn[name]  # a new Display must be added above
    figure, ax = plt.subplots()
    try:
        assert display.plot(ax=ax) is display
        assert display.ax_ is ax
        assert display.figure_ is figure
        assert ax.has_data()
        own = display.plot()
        assert np.size(own.ax_) == 1
    finally:
        plt.close("all")
