"""The drawing functions: curves with bands or bars, columns, points in the plane with a boundary.

They know nothing of suites. Each fills a figure (or a part of one) and returns it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from floral_bench.figures.style import BLACK, BLUE, GREY, ORANGE


@dataclass(frozen=True)
class Curve:
    """Means at x, with one deviation above and below where it is known; curves without a name have no legend."""

    name: str
    x: Any
    mean: Any
    look: dict[str, Any]
    spread: Any = None


@dataclass(frozen=True)
class Panel:
    """Curves of one pair of axes; `axes` are limits, labels and ticks."""

    title: str
    curves: Sequence[Curve]
    axes: dict[str, Any] = field(default_factory=dict)
    floor: float | None = None  # what lies below is cut off


@dataclass(frozen=True)
class Points:
    """Rows X (n, 2) of two classes in the plane; `marked` ones are ringed, or coloured by their `rate`."""

    title: str
    X: np.ndarray
    labels: np.ndarray
    marked: np.ndarray
    rate: np.ndarray | None = None
    field: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # two axes and the decision values between them
    note: str = ""
    side: str = ""  # what stands at the left of a row
    size: float = 5.0


def lines(
    panels: Sequence[Sequence[Panel | None]], size: tuple[float, float], *, columns: int = 4, heading: str = "",
    xlabel: str = "", ylabel: str = "", bars: bool = False, letters: float = 7.5, figure: Any = None, **share: Any,
) -> Any:  # fmt: skip
    """A grid of panels with one legend below (`columns`, size of `letters`); spreads as bands, or as `bars`."""
    figure = Figure(figsize=size, layout="constrained") if figure is None else figure
    if not any(panel is not None and panel.curves for panel in chain(*panels)):
        return figure
    axes = figure.subplots(len(panels), len(panels[0]), squeeze=False, **share)
    handles: dict[str, Any] = {}
    for axis, panel in zip(axes.flat, chain(*panels), strict=True):
        if panel is None:
            axis.set_axis_off()
            continue
        for curve in panel.curves:
            line = _curve(axis, curve, bars)
            if curve.name:
                handles[curve.name] = line
        axis.set_title(panel.title)
        axis.set(**panel.axes)
        if panel.floor is not None:
            axis.set_ylim(bottom=max(panel.floor, axis.get_ylim()[0]))
    for axis in axes[-1]:
        axis.set_xlabel(axis.get_xlabel() or xlabel)
    for axis in axes[:, 0]:
        axis.set_ylabel(axis.get_ylabel() or ylabel)
    if columns:
        names = list(handles)
        place = {"loc": "outside lower center", "ncols": columns, "title": heading or None, "fontsize": letters}
        figure.legend([handles[name] for name in names], names, **place)
    return figure


def _curve(axis: Any, curve: Curve, bars: bool) -> Any:
    if curve.spread is not None and bars:
        return axis.errorbar(curve.x, curve.mean, curve.spread, capsize=2, elinewidth=0.6, **curve.look)
    (line,) = axis.plot(curve.x, curve.mean, **curve.look)
    if curve.spread is not None:
        mean, spread = np.asarray(curve.mean), np.asarray(curve.spread)
        axis.fill_between(curve.x, mean - spread, mean + spread, color=curve.look["color"], alpha=0.12, linewidth=0)
    return line


def columns(panels: Sequence[Curve], size: tuple[float, float], xlabel: str, ylabel: str, chance: float) -> Figure:
    """Columns side by side, a panel per curve, with a line where chance would be."""
    figure = Figure(figsize=size, layout="constrained")
    if not panels:
        return figure
    axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axis, curve in zip(axes, panels, strict=True):
        axis.bar(curve.x, curve.mean, yerr=curve.spread, color=BLUE, capsize=2, width=0.6)
        axis.axhline(chance, color=GREY, linestyle=":", linewidth=1)
        axis.set(title=curve.name, xlabel=xlabel)
    axes[0].set_ylabel(ylabel)
    return figure


def plane(panels: Sequence[Sequence[Points | None]], size: tuple[float, float], *, figure: Any = None) -> Any:
    """A grid of points in the plane, with what a model makes of it where `field` is given."""
    figure = Figure(figsize=size, layout="constrained") if figure is None else figure
    axes = figure.subplots(len(panels), len(panels[0]), squeeze=False, sharex=True, sharey=True)
    dots = None
    for axis, points in zip(axes.flat, chain(*panels), strict=True):
        if points is None:
            axis.set_axis_off()
            continue
        if points.field is not None:
            first, second, values = points.field
            values = np.clip(values, -2, 2)
            filled = axis.contourf(first, second, values, levels=np.linspace(-2, 2, 9), cmap="PuOr_r", alpha=0.7)
            filled.set_rasterized(True)
            axis.contour(first, second, values, levels=[0], colors=BLACK, linewidths=1.1)
            axis.set(xticks=[], yticks=[])
        dots = _points(axis, points)
        axis.set(title=points.title, ylabel=points.side)
        if points.note:
            axis.text(0.97, 0.03, points.note, transform=axis.transAxes, ha="right", va="bottom", fontsize=7,
                      bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1})  # fmt: skip
        axis.grid(False)
        axis.tick_params(length=2)
    if any(points is not None and points.rate is not None for points in chain(*panels)):
        figure.colorbar(dots, ax=axes.ravel().tolist(), label="share of rounds\nflipped back", shrink=0.9)
    return figure


def _points(axis: Any, points: Points) -> Any:
    X, marked = points.X, points.marked
    if points.rate is not None:
        axis.scatter(*X[~marked].T, s=3, c=GREY, linewidths=0, alpha=0.5)
        look: dict[str, Any] = {"cmap": "viridis", "vmin": 0, "vmax": 0.6, "edgecolors": BLACK, "linewidths": 0.3}
        return axis.scatter(*X[marked].T, s=16, c=points.rate[marked], **look)
    for label, color, marker in zip(np.unique(points.labels), (BLUE, ORANGE), ("o", "^"), strict=False):
        rows = X[points.labels == label]
        axis.scatter(*rows.T, s=points.size, c=color, marker=marker, linewidths=0, alpha=0.8, rasterized=True)
    return axis.scatter(*X[marked].T, s=3 * points.size, facecolors="none", edgecolors=BLACK, linewidths=0.6)
