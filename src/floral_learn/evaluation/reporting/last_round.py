"""What the "last" column rests on: which setting of the grid is read, and how, for every method played in rounds.

The paper does not say how a setting was picked. Chosen on the mean over replications it is one setting per cell, which
is what our tables show; chosen in each replication it is the highest number of each; and the lowest of the grid says
how much there is to choose. The spread over the last rounds is how much of it is the round at which one stops.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from floral_learn.evaluation.metrics import sample_deviation
from floral_learn.evaluation.reporting.paper import paper_value
from floral_learn.evaluation.reporting.results import Place, Results

ROUNDS = 50  # at the end of a game, for the spread


@dataclass(frozen=True)
class LastRound:
    """The last round of one method at one place; means over the replications."""

    place: Place
    paper: float | None
    chosen: float  # one setting for all replications
    setting: str
    each: float  # the best setting of each replication
    lowest: float  # of one setting for all replications
    spread: float  # sample deviation over the last rounds of the chosen games


def last_rounds(results: Results) -> list[LastRound]:
    """One entry per place whose method has a grid."""
    frame = results.frame
    frame = frame[(frame.statistic == "last") & (frame.metric == "accuracy") & frame.eta.notna()]
    if results.suite.grid is not None:  # the paper's steps alone
        frame = frame[~frame.eta.isin(results.suite.grid.more_etas)]
    out = []
    for place, cells in results.cells.items():
        if not place.method.needs_grid or not cells:
            continue
        own = frame[
            (frame.attack == place.attack)
            & (frame.level == place.level)
            & (frame["C"] == place.setting[0])
            & (frame.gamma == place.setting[1])
            & (frame.method == place.method.title)
        ]
        if not len(own):
            continue
        means = own.groupby("config")["value"].mean()
        each = own.groupby("seed")["value"].max().mean()
        traces = results.traces(place, "accuracy", "last")
        spread = np.mean([sample_deviation(trace[-ROUNDS:]) for trace in traces]) if traces else np.nan
        table, title = results.suite.paper_table, place.method.title
        paper = paper_value(table, place.level, place.setting, title, "accuracy", "last")
        setting = results.chosen[place, "last"]
        out.append(LastRound(place, paper, means[setting], setting, float(each), float(means.min()), float(spread)))
    return out


def to_markdown(results: Results) -> str:
    """All of them as one Markdown table."""
    found = last_rounds(results)
    several = len({row.place.setting for row in found}) > 1
    names = ["poisoned", *(["C, gamma"] if several else []), "method", "paper", "one setting", "which", "best of each"]
    names += ["lowest of the grid", f"spread over {ROUNDS} rounds"]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for row in found:
        numbers = ("" if row.paper is None else f"{row.paper:.3f}", f"{row.chosen:.3f}", row.setting)
        rest = (f"{row.each:.3f}", f"{row.lowest:.3f}", "" if np.isnan(row.spread) else f"{row.spread:.3f}")
        setting = [f"{row.place.setting[0]:g}, {row.place.setting[1]:g}"] if several else []
        cells = [f"{row.place.level:g} %", *setting, row.place.method.title, *numbers, *rest]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
