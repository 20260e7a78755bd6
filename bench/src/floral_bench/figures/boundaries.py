"""Decision boundaries in the plane, one row per method, one column per poisoning level."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from floral_bench.cell_data import load
from floral_bench.families.single_fits import map_grid
from floral_bench.figures.datasets import scatter
from floral_bench.figures.style import BLACK, title_of
from floral_bench.reporting.results import Results
from floral_bench.spec import attack_cell


def draw(results: Results) -> Figure:
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
