"""Security curves: test accuracy against the share of poisoned labels, one line a method."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from floral_learn.evaluation.figures.style import line_style
from floral_learn.evaluation.metrics import sample_deviation
from floral_learn.evaluation.reporting.results import Results

_TITLES = {
    "best": "best round\n(chosen on test labels)",
    "last": "last round\n(grid: test labels)",
    "average": "averaged model\n(grid: test labels)",
    "final": "one fit\n(nothing chosen)",
}


def draw(results: Results) -> Figure:
    """A row of panels a setting: best, last, and the fits that choose nothing."""
    groups = list(dict.fromkeys((place.attack, place.setting) for place in results.cells))
    kinds = [kind for kind in _TITLES if any(key[1] == kind for key in results.chosen)]
    figure = Figure(figsize=(7.2, 0.9 + 2.4 * len(groups)), layout="constrained")
    if not kinds:
        return figure
    panels = figure.subplots(len(groups), len(kinds), squeeze=False, sharey="row", sharex=True)
    handles: dict[str, Any] = {}
    for row, group in enumerate(groups):
        for column, kind in enumerate(kinds):
            axis = panels[row, column]
            for order, method in enumerate(results.suite.methods):
                points = [
                    (place.level, results.values(place, kind))
                    for place in results.cells
                    if (place.attack, place.setting) == group and place.method == method
                ]
                points = [(level, values) for level, values in points if len(values)]
                if not points:
                    continue
                x = [level for level, _ in points]
                mean = np.array([values.mean() for _, values in points])
                deviation = np.array([sample_deviation(values) for _, values in points])
                style = line_style(method.title, order)
                (line,) = axis.plot(x, mean, **style)
                axis.fill_between(x, mean - deviation, mean + deviation, color=style["color"], alpha=0.1, linewidth=0)
                handles[method.title] = line
            setting = f"\nC={group[1][0]:g}, γ={group[1][1]:g}" if len(groups) > 1 else ""
            axis.set_title(_TITLES[kind] + setting)
        panels[row, 0].set_ylabel("test accuracy")
    for axis in panels[-1]:
        axis.set_xlabel("poisoned labels (%)")
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=3)
    return figure
