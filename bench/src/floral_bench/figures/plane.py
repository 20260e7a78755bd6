"""The pictures of suites in the plane: training sets, decision boundaries, and which labels are flipped back."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from floral_bench.cell_data import load
from floral_bench.families.single_fits import map_grid
from floral_bench.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, RED, title_of
from floral_bench.reporting.details import WINDOW, floral_places, nearest_config, per_budget, recovery_over_rounds
from floral_bench.reporting.results import Place, Results, attack_title
from floral_bench.spec import attack_cell


def scatter(axis: Any, X: np.ndarray, labels: np.ndarray, flipped: np.ndarray, size: float = 5) -> None:
    """Rows by given label (colour and marker); flipped ones ringed in black."""
    classes = np.unique(labels)
    for label, color, marker in zip(classes, (BLUE, ORANGE), ("o", "^"), strict=False):
        rows = labels == label
        axis.scatter(X[rows, 0], X[rows, 1], s=size, c=color, marker=marker, linewidths=0, alpha=0.8, rasterized=True)
    axis.scatter(X[flipped, 0], X[flipped, 1], s=3 * size, facecolors="none", edgecolors=BLACK, linewidths=0.6)
    axis.grid(False)
    axis.tick_params(length=2)


def datasets(results: Results) -> Figure:
    """Training sets of the first replication before and after each attack; flipped labels are ringed."""
    suite = results.suite
    data, seed = suite.data[0], suite.seeds[0]
    dataset = load(data)
    figure = Figure(figsize=(7.2, 0.4 + 1.9 * len(suite.attacks)), layout="constrained")
    if dataset.X_train.shape[1] != 2:
        return figure
    panels = figure.subplots(len(suite.attacks), len(suite.levels), squeeze=False, sharex=True, sharey=True)
    for row, attack in enumerate(suite.attacks):
        for column, level in enumerate(suite.levels):
            axis = panels[row, column]
            at = suite.attack_at(attack, level, suite.settings[0])
            labels: Any = dataset.y_train_clean
            if at is not None:
                labels = results.store.trace(attack_cell(data, at, level, seed), "labels")
            if labels is None:
                axis.set_axis_off()
                continue
            scatter(axis, dataset.X_train, labels, labels != dataset.y_train_clean)
            axis.set_title(title_of(level) + (f", {attack_title(attack)}" if level else ""))
    return figure


def boundaries(results: Results) -> Figure:
    """Filled by sign and size of f; the boundary is the black line, flipped training labels are ringed."""
    suite = results.suite
    data, seed = suite.data[0], suite.seeds[0]
    dataset = load(data)
    methods = [method for method in suite.methods if any(p.method == method and c for p, c in results.cells.items())]
    figure = Figure(figsize=(1.35 * len(suite.levels) + 0.6, 1.25 * len(methods) + 0.4), layout="constrained")
    if not methods:
        return figure
    panels = figure.subplots(len(methods), len(suite.levels), squeeze=False, sharex=True, sharey=True)
    first, second = map_grid(dataset)
    for place, cells in results.cells.items():
        if not cells:
            continue
        axis = panels[methods.index(place.method), suite.levels.index(place.level)]
        attack = suite.attack_at(suite.attacks[0], place.level, place.setting)
        labels = dataset.y_train_clean
        if attack is not None:
            stored = results.store.trace(attack_cell(data, attack, place.level, seed), "labels")
            labels = labels if stored is None else stored
        values = results.traces(place, "map", config="")
        if values:
            field = np.clip(values[0], -2, 2)
            filled = axis.contourf(first, second, field, levels=np.linspace(-2, 2, 9), cmap="PuOr_r", alpha=0.7)
            filled.set_rasterized(True)  # as paths, the SVG would have ten megabytes
            axis.contour(first, second, field, levels=[0], colors=BLACK, linewidths=1.1)
        scatter(axis, dataset.X_train, labels, labels != dataset.y_train_clean, size=1.6)
        statistic = "final" if (place, "final") in results.chosen else "last"
        accuracy = results.values(place, statistic)
        axis.text(0.97, 0.03, f"{accuracy[0]:.3f}", transform=axis.transAxes, ha="right", va="bottom", fontsize=7,
                  bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1})  # fmt: skip
        axis.set_xticks([])
        axis.set_yticks([])
    for column, level in enumerate(suite.levels):
        panels[0, column].set_title(title_of(level))
    for row, method in enumerate(methods):
        panels[row, 0].set_ylabel(method.title.replace(" (", "\n("), fontsize=7)
    return figure


_RATE_LOOKS = ((BLUE, "-"), (GREEN, "--"), (RED, "-."), (ORANGE, ":"), (BLACK, "-"))


def recovery(results: Results) -> Figure:
    """Poisoned labels that are flipped back: average rate for every k, over the rounds, and point by point."""
    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    places = [place for place in floral_places(results) if place.level > 0]
    if not places:
        return figure
    pair: Any = figure.subfigures(2, 1)
    top, bottom = pair
    average, over_rounds = top.subplots(1, 2)
    budgets = per_budget(results)
    for number, place in enumerate(places):
        color, dash = _RATE_LOOKS[number % len(_RATE_LOOKS)]
        rows = budgets[(budgets.level == place.level) & budgets.recovery.notna()]
        flips = rows.k.tolist()
        spread = rows["recovery ±"]
        average.errorbar(range(len(flips)), rows.recovery, spread, color=color, linestyle=dash, marker="o", capsize=2)
        average.set_xticks(range(len(flips)), [str(k) for k in flips])
        at, shares = recovery_over_rounds(results, place, _budget_of_level(results, place))
        over_rounds.plot(at, shares, color=color, linestyle=dash, label=f"{place.level:g} %")
    average.set_xlabel("flips per round, k (budget B = 2k)")
    average.set_ylabel("share of poisoned labels\nflipped back, mean of a round")
    over_rounds.set_xlabel(f"round (mean of {WINDOW})")
    over_rounds.set_title("B nearest to the number of poisoned labels")
    over_rounds.legend(title="poisoned labels")
    panels = bottom.subplots(1, len(places), squeeze=False, sharey=True)[0]
    for axis, place in zip(panels, places, strict=True):
        dots = _rates(axis, results, place)
    bottom.colorbar(dots, ax=list(panels), label="share of rounds\nflipped back", shrink=0.9)
    return figure


def _budget_of_level(results: Results, place: Place) -> str:
    """The configuration whose B is nearest to the number of poisoned labels."""
    return nearest_config(results, place, place.level / 100 * len(load(results.suite.data[0]).y_train))


def _rates(axis: Any, results: Results, place: Place) -> Any:
    dataset, cell = load(results.suite.data[0]), results.cells[place][0]
    rate = results.traces(place, "flip_rate", config=_budget_of_level(results, place))[0]
    assert cell.attack is not None
    labels = results.store.trace(attack_cell(cell.data, cell.attack, cell.level, cell.seed), "labels")
    poisoned = labels != dataset.y_train_clean
    X = dataset.X_train
    axis.scatter(X[~poisoned, 0], X[~poisoned, 1], s=3, c=GREY, linewidths=0, alpha=0.5)
    dots = axis.scatter(
        X[poisoned, 0], X[poisoned, 1], s=16, c=rate[poisoned], cmap="viridis", vmin=0, vmax=0.6, edgecolors=BLACK,
        linewidths=0.3,
    )  # fmt: skip
    axis.set_title(f"{place.level:g} %: mean rate {rate[poisoned].mean():.2f}")
    axis.grid(False)
    return dots
