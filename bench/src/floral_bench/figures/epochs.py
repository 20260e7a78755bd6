"""Test accuracy over the epochs of a network, its own and that of heads on its features: one row per attack."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from floral_bench.figures.style import BLACK, BLUE, ORANGE, RED, title_of
from floral_bench.metrics import sample_deviation
from floral_bench.reporting.results import Place, Results

_LOOKS: dict[str, dict[str, Any]] = {
    "nn": {"color": BLUE, "linestyle": "-."},
    "nn+svm": {"color": BLACK, "linestyle": "--"},
    "nn+floral": {"color": ORANGE, "linestyle": ":"},
    "nn+floral (B = level)": {"color": RED, "linewidth": 1.8},
}
_BEGIN = 0.05  # share of the epochs that is left out: the first ones are far below all else


def draw(results: Results) -> Figure:
    """Mean and deviation over replications; the network after every epoch, heads where they were fitted."""
    attacks = list(dict.fromkeys(place.attack for place in results.cells))
    levels = list(dict.fromkeys(place.level for place in results.cells))
    figure = Figure(figsize=(7.2, 0.5 + 1.6 * len(attacks)), layout="constrained")
    if not any(results.cells.values()):
        return figure
    panels = figure.subplots(len(attacks), len(levels), squeeze=False, sharex=True)
    handles: dict[str, Any] = {}
    for row, attack in enumerate(attacks):
        for column, level in enumerate(levels):
            axis = panels[row, column]
            if level == 0 and row:
                axis.set_axis_off()  # clean labels are the same for every attack
                continue
            for place in results.cells:
                if (place.attack, place.level) == (attack, level) and place.method.title in _LOOKS:
                    _curve(axis, results, place, handles)
            axis.set_title(title_of(level) + (f", {attack}" if level else ""))
            axis.tick_params(labelbottom=row == len(attacks) - 1 or level == 0)
            if row == len(attacks) - 1 or level == 0:
                axis.set_xlabel("epoch")
            if column == 0 or (levels[0] == 0 and column == 1 and row):
                axis.set_ylabel("test accuracy")
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=4)
    return figure


def _curve(axis: Any, results: Results, place: Place, handles: dict[str, Any]) -> None:
    traces = results.traces(place, "accuracy", "last")
    if not traces:
        return
    values = np.stack(traces)
    known = results.traces(place, "epochs", "last")  # a head has its own, the network one point an epoch
    x = known[0] if known else np.arange(1, values.shape[1] + 1)
    seen = x >= np.floor(_BEGIN * x[-1])
    x, mean, deviation = x[seen], values.mean(0)[seen], sample_deviation(values, axis=0)[seen]
    look = {"linewidth": 1.2, **_LOOKS[place.method.title]}
    (line,) = axis.plot(x, mean, **look)
    axis.fill_between(x, mean - deviation, mean + deviation, color=look["color"], alpha=0.12, linewidth=0)
    handles[place.method.title] = line
