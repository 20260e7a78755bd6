"""Training sets before and after an attack, one row per attack, one panel per level."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from floral_bench.cell_data import load
from floral_bench.figures.style import BLACK, BLUE, ORANGE, title_of
from floral_bench.reporting.results import Results, attack_title
from floral_bench.spec import attack_cell


def draw(results: Results) -> Figure:
    """The first replication; flipped labels are ringed."""
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


def scatter(axis: Any, X: np.ndarray, labels: np.ndarray, flipped: np.ndarray, size: float = 5) -> None:
    """Rows by given label (colour and marker); flipped ones ringed in black."""
    classes = np.unique(labels)
    for label, color, marker in zip(classes, (BLUE, ORANGE), ("o", "^"), strict=False):
        rows = labels == label
        axis.scatter(X[rows, 0], X[rows, 1], s=size, c=color, marker=marker, linewidths=0, alpha=0.8, rasterized=True)
    axis.scatter(X[flipped, 0], X[flipped, 1], s=3 * size, facecolors="none", edgecolors=BLACK, linewidths=0.6)
    axis.grid(False)
    axis.tick_params(length=2)
