"""The arena in one picture: who is ahead of SVC at which level, and on which data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from floral_learn.evaluation.arena_card import BASE, GROUPS, ORACLE, cell_means, score_card, shown_methods, title
from floral_learn.evaluation.arena_methods import AUTO
from floral_learn.evaluation.figures.style import BLACK, RED, line_style

if TYPE_CHECKING:
    import pandas as pd

LOWEST = 8.0  # points below SVC at which the curves are cut off


def draw_arena(frame: pd.DataFrame) -> Figure:
    """Accuracy against SVC by level for both groups, and a map of methods x data sets, in points of accuracy."""
    means, card = cell_means(frame), score_card(frame)
    methods = [name for name in shown_methods(card) if name != BASE]
    over = 100 * means.sub(means[BASE], axis=0)
    groups = [g for g in GROUPS if g in means.index.get_level_values("group")]
    figure = Figure(figsize=(9.5, 7.4), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=[1.0, 0.95])
    top, bottom = parts
    panels = top.subplots(1, len(groups), squeeze=False, sharey=True)[0]
    for axis, group in zip(panels, groups, strict=True):
        part = over.xs(group, level="group").groupby(level="level").mean()
        for number, name in enumerate(methods):
            axis.plot(part.index, part[name], label=title(name), **_style(name, number))
        axis.axhline(0, color=BLACK, linewidth=1, label=BASE)
        axis.set(title=f"{group} data sets", xlabel="poisoned labels (%)", xticks=list(part.index))
    panels[0].set_ylabel("mean accuracy over SVC (points)")
    low, high = panels[0].get_ylim()
    panels[0].set_ylim(max(low, -LOWEST), high)  # a linear model on circles would flatten all other lines
    top.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper")
    _map(bottom.subplots(), over[over.index.get_level_values("level") > 0], methods)
    return figure


def _style(name: str, number: int) -> dict[str, Any]:
    if name == AUTO.title:
        return line_style("floral")
    if name == ORACLE:
        return {"color": RED, "linestyle": ":", "linewidth": 1.3, "marker": "d"}
    style = line_style(name, number)
    return style if number < 8 else {**style, "linestyle": "-", "marker": "s"}  # the colours repeat from there on


def _map(axis: Any, over: pd.DataFrame, methods: list[str]) -> None:
    order = sorted(dict.fromkeys(over.index.droplevel(["attack", "level"])), key=lambda pair: GROUPS.index(pair[0]))
    table = over.groupby(level=["group", "data"])[methods].mean().loc[order].T
    most = max(1.0, float(np.nanquantile(np.abs(table.to_numpy()), 0.9)))
    image = axis.imshow(table.to_numpy(), cmap="RdBu", vmin=-most, vmax=most, aspect="auto")
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            value = table.to_numpy()[row, column]
            colour = "white" if abs(value) > 0.7 * most else "black"
            axis.text(column, row, f"{value:+.1f}", ha="center", va="center", color=colour, fontsize=7)
    axis.set_xticks(
        range(table.shape[1]), [f"{data}\n({group.replace('development', 'dev.')})" for group, data in order]
    )
    axis.set_yticks(range(table.shape[0]), [title(name) for name in table.index])
    axis.grid(False)
    axis.set_title("mean over attacks and levels of the poisoned cells, accuracy over SVC (points)")
    axis.figure.colorbar(image, ax=axis, shrink=0.8)
