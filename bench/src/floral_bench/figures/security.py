"""Security curves: test accuracy against the share of poisoned labels, one line per method."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from floral_bench.figures.style import in_lines, line_style
from floral_bench.metrics import sample_deviation
from floral_bench.reporting.results import Results

FEW = 6  # methods whose bands can be told apart
Group = tuple[str, tuple[float, float]]

_TITLES = {
    "best": "best round\n(chosen on test labels)",
    "last": "last round\n(grid: test labels)",
    "average": "averaged model\n(grid: test labels)",
    "final": "one fit\n(nothing chosen)",
}


def draw(results: Results) -> Figure:
    """A row of panels per attack and setting: best, last, and the fits that choose nothing."""
    groups, kinds = _groups(results), _kinds(results)
    figure = Figure(layout="constrained")
    if not kinds:
        return figure
    # One kind of number only: attacks stand side by side, two per row.
    columns = len(kinds) if len(kinds) > 1 else min(2, len(groups))
    n_rows = -(-len(groups) * len(kinds) // columns)
    handles: dict[str, Any] = {}
    panels = figure.subplots(n_rows, columns, squeeze=False, sharey="row", sharex=True)
    places = [(group, kind) for group in groups for kind in kinds]
    for axis, (group, kind) in zip(panels.flat, places, strict=False):
        handles |= _panel(axis, results, group, kind)
        axis.set_title(_title(results, group, kind, len(kinds)))
    for axis in panels.flat[len(places) :]:
        axis.set_visible(False)
    for axis in panels[:, 0]:
        axis.set_ylabel("test accuracy")
    for axis in panels[-1]:
        axis.set_xlabel("poisoned labels (%)")
    figure.set_size_inches(7.2, 0.5 + 2.4 * n_rows + 0.17 * -(-len(handles) // 3))
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=3)
    return figure


def panels(results: Results) -> list[tuple[str, Figure]]:
    """One small figure per attack, setting and kind of number, each with its title: for pages that may be narrow."""
    out = []
    groups, kinds = _groups(results), _kinds(results)
    heights = {kind: _height(results, kind) for kind in kinds}  # attacks can be compared by eye
    for group in groups:
        for kind in kinds:
            figure = Figure(layout="constrained")
            axis = figure.subplots()
            handles = _panel(axis, results, group, kind)
            axis.set(xlabel="poisoned labels (%)", ylabel="test accuracy", ylim=heights[kind])
            figure.set_size_inches(4.2, 2.8 + 0.18 * -(-len(handles) // 2))
            figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=2)
            out.append((_title(results, group, kind, len(kinds)).replace("\n", " "), figure))
    return out


def _groups(results: Results) -> list[Group]:
    return list(dict.fromkeys((place.attack, place.setting) for place in results.cells))


def _kinds(results: Results) -> list[str]:
    return [kind for kind in _TITLES if any(key[1] == kind for key in results.chosen)]


def _height(results: Results, kind: str) -> tuple[float, float]:
    means = [values.mean() for place in results.cells if len(values := results.values(place, kind))]
    margin = 0.05 * (max(means) - min(means)) + 0.005
    return min(means) - margin, max(means) + margin


def _title(results: Results, group: Group, kind: str, n_kinds: int) -> str:
    attack, (C, gamma) = in_lines(group[0]), group[1]
    name = f"{attack} attack" if n_kinds == 1 else f"{attack}:\n{_TITLES[kind]}"
    return name if len(results.suite.settings) < 2 else f"{name}\nC={C:g}, γ={gamma:g}"


def _panel(axis: Any, results: Results, group: Group, kind: str) -> dict[str, Any]:
    """Draw the lines of one attack and kind; returns them by method."""
    handles: dict[str, Any] = {}
    for order, method in enumerate(results.suite.methods):
        found = [
            (place.level, results.values(place, kind))
            for place in results.cells
            if (place.attack, place.setting) == group and place.method == method
        ]
        points = [(level, values) for level, values in found if len(values)]
        if not points:
            continue
        x = [level for level, _ in points]
        mean = np.array([values.mean() for _, values in points])
        style = line_style(method.title, order)
        (handles[method.title],) = axis.plot(x, mean, **style)
        if len(results.suite.methods) <= FEW:  # bands of more methods cover each other
            deviation = np.array([sample_deviation(values) for _, values in points])
            axis.fill_between(x, mean - deviation, mean + deviation, color=style["color"], alpha=0.1, linewidth=0)
    axis.set_xticks(list(results.suite.levels), [f"{level:g}" for level in results.suite.levels])
    return handles
