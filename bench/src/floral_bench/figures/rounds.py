"""Test accuracy over the rounds of training, one panel a poisoning level, mean and deviation over replications."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from floral_bench.figures.style import in_lines, line_style, title_of, without_marker
from floral_bench.metrics import sample_deviation
from floral_bench.reporting.results import Place, Results

Group = tuple[str, tuple[float, float]]  # attack, (C, gamma)


def draw(results: Results) -> Figure:
    """Curves of the configuration behind the "last" column; epochs of networks are stretched to the same length."""
    groups = list(dict.fromkeys((place.attack, place.setting) for place in results.cells))
    levels = list(dict.fromkeys(place.level for place in results.cells))
    wide = len(levels) if len(levels) <= 4 else 3
    tall = -(-len(levels) // wide)
    figure = Figure(figsize=(7.2, 0.5 + 2.0 * tall * len(groups)), layout="constrained")
    if not any(results.cells.values()):
        return figure
    panels = figure.subplots(tall * len(groups), wide, squeeze=False, sharex=True)
    handles: dict[str, Any] = {}
    for number, group in enumerate(groups):
        for position, level in enumerate(levels):
            axis = panels[number * tall + position // wide, position % wide]
            places = [p for p in results.cells if (p.attack, p.setting) == group and p.level == level]
            for order, place in enumerate(places):
                _curve(axis, results, place, order, handles)
            axis.set_title("\n".join([title_of(level), *_told_apart(group, groups)]))
            axis.set_ylim(bottom=max(0.4, axis.get_ylim()[0]))  # the first rounds are far below all else
        for axis in panels[number * tall : (number + 1) * tall].flat[len(levels) :]:
            axis.set_axis_off()
    for axis in panels[-1]:
        axis.set_xlabel("round")
    for axis in panels[:, 0]:
        axis.set_ylabel("test accuracy")
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=5)
    return figure


def _told_apart(group: Group, groups: list[Group]) -> list[str]:
    """Lines of a heading: the attack where there are several, the kernel where there are several."""
    attack, (C, gamma) = group
    attacks, settings = (len({values[part] for values in groups}) > 1 for part in (0, 1))
    return [*([in_lines(attack)] if attacks else []), *([f"C={C:g}, γ={gamma:g}"] if settings else [])]


def _curve(axis: Any, results: Results, place: Place, order: int, handles: dict[str, Any]) -> None:
    traces = results.traces(place, "accuracy", "last")
    if not traces or place.method.name == "largest-loss":
        return
    values = np.stack(traces)
    rounds = results.suite.grid.rounds if results.suite.grid else values.shape[1]
    x = np.linspace(rounds / values.shape[1], rounds, values.shape[1])
    mean, deviation = values.mean(0), sample_deviation(values, axis=0)
    style = without_marker(line_style(place.method.title, order))
    (line,) = axis.plot(x, mean, **style)
    axis.fill_between(x, mean - deviation, mean + deviation, color=style["color"], alpha=0.12, linewidth=0)
    handles[place.method.title] = line
