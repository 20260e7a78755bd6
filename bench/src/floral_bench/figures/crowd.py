"""Aggregators of votes in one picture: right labels by share of malicious votes, and ours against the best peer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from floral_bench.crowds.card import OURS, complete, groups
from floral_bench.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_LOOKS = {
    OURS: (RED, "o", "-"),
    "ours without features": (ORANGE, "d", "-"),
    "dawid-skene": (BLUE, "^", "--"),
    "crowdlab": (GREEN, "s", "-."),
    "glad": (PURPLE, "v", ":"),
    "mace": (BLACK, "x", ":"),
    "majority": (GREY, ".", "--"),
}
_DEEPEST = 0.25  # lead from which colours no longer deepen


def draw_crowd(frame: pd.DataFrame) -> Figure:
    """Left: mean share of right labels by level. Right: lead of ours over the best peer, by attack and level."""
    frame = complete(frame)
    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
    means = frame.groupby(["method", "level"])["accuracy"].mean()
    for name, (colour, marker, dashes) in _LOOKS.items():
        if name in means.index.get_level_values(0):
            part = means[name].sort_index()
            left.plot(part.index, part.to_numpy(), color=colour, marker=marker, linestyle=dashes, label=name)
    left.set(xlabel="votes in the attacker's hands (%)", ylabel="labels that are right, mean over data and attacks")
    left.legend(loc="lower left")
    table = groups(frame)
    if "lead" in table:
        lead = table["lead"].unstack("level").sort_index(ascending=False)
        _matrix(right, lead)
    else:
        right.set_axis_off()
    return figure


def _matrix(axis: Axes, lead: pd.DataFrame) -> None:
    axis.imshow(lead.to_numpy(dtype=float), cmap="RdBu", vmin=-_DEEPEST, vmax=_DEEPEST, aspect="auto")
    axis.grid(visible=False)
    for row in range(lead.shape[0]):
        for column in range(lead.shape[1]):
            value = float(lead.iloc[row, column])
            if value == value:
                ink = "white" if abs(value) > 0.7 * _DEEPEST else "black"
                axis.text(column, row, f"{value:+.3f}", ha="center", va="center", fontsize=8, color=ink)
    axis.set_xticks(range(lead.shape[1]), [f"{level:g} %" for level in lead.columns])
    axis.set_yticks(range(lead.shape[0]), list(lead.index))
    axis.set_title("ours less the best peer, below the limit of lies told together", fontsize=10)
