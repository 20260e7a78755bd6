"""The arena in one picture: every cell against the plain model, and who gains on which data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from floral_bench.arena_card import differences
from floral_bench.figures.style import BLACK, line_style

if TYPE_CHECKING:
    import pandas as pd


def draw_arena(frame: pd.DataFrame) -> Figure:
    """Sorted differences to the plain model in points of accuracy, and a map of methods x data sets."""
    over = 100 * differences(frame)
    methods = [name for name in over if name.startswith(("safe", "cleanlab"))] or list(over)
    figure = Figure(figsize=(9.5, 7.4), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=[1.0, 0.95])
    top, bottom = parts
    axis = top.subplots()
    poisoned = over[over.index.get_level_values("level") > 0]
    for number, name in enumerate(methods):
        values = np.sort(poisoned[name].dropna().to_numpy())
        axis.plot(np.linspace(0, 100, len(values)), values, label=name, **{**line_style(name, number), "marker": ""})
    axis.axhline(0, color=BLACK, linewidth=1)
    axis.set(xlabel="poisoned cells, from the worst to the best (%)", ylabel="accuracy over the plain model (points)")
    axis.set_yscale("symlog", linthresh=2)
    axis.set_yticks([-20, -10, -5, -2, 0, 2, 5, 10, 20, 40])
    axis.yaxis.set_major_formatter("{x:g}")
    axis.legend(fontsize=8)
    _map(bottom.subplots(), poisoned[methods])
    return figure


def _map(axis: Any, over: pd.DataFrame) -> None:
    table = over.groupby(level=["fold", "data"]).mean().sort_index().T
    most = max(1.0, float(np.nanquantile(np.abs(table.to_numpy()), 0.9)))
    image = axis.imshow(table.to_numpy(), cmap="RdBu", vmin=-most, vmax=most, aspect="auto")
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            value = table.to_numpy()[row, column]
            if value != value:  # not run
                continue
            colour = "white" if abs(value) > 0.7 * most else "black"
            axis.text(column, row, f"{value:+.1f}", ha="center", va="center", color=colour, fontsize=6)
    axis.set_xticks(range(table.shape[1]), [data for _, data in table.columns], rotation=60, ha="right")
    axis.set_yticks(range(table.shape[0]), list(table.index))
    axis.grid(False)
    axis.set_title("mean over attacks and levels of the poisoned cells, accuracy over the plain model (points)")
    axis.figure.colorbar(image, ax=axis, shrink=0.8)
