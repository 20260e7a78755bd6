"""What the "last" column rests on: which setting of the grid is read, and how, for every method played in rounds.

The paper does not say how a setting was picked. Chosen on the mean over replications it is one setting per cell, which
is what our tables show; chosen in each replication it is the highest number of each; and the lowest of the grid says
how much there is to choose. The spread over the last rounds is how much of it is the round at which one stops.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from floral_bench.metrics import sample_deviation
from floral_bench.reporting.paper import paper_value
from floral_bench.reporting.results import Place, Results

if TYPE_CHECKING:
    import pandas as pd

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
    start, leading = _leading([row.place for row in found])
    names = [*start, "poisoned", "method", "paper", "one setting", "which", "best of each"]
    names += ["lowest of the grid", f"spread over {ROUNDS} rounds"]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for row in found:
        numbers = ("" if row.paper is None else f"{row.paper:.3f}", f"{row.chosen:.3f}", row.setting)
        rest = (f"{row.each:.3f}", f"{row.lowest:.3f}", "" if np.isnan(row.spread) else f"{row.spread:.3f}")
        cells = [*leading(row.place), f"{row.place.level:g} %", row.place.method.title, *numbers, *rest]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def to_csv(results: Results) -> str:
    """All of them as CSV, a line per place."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = ["attack", "level", "C", "gamma", "method", "paper", "one_setting", "which", "best_of_each", "lowest"]
    writer.writerow([*names, "spread"])
    for row in last_rounds(results):
        start = [row.place.attack, *(f"{value:g}" for value in (row.place.level, *row.place.setting))]
        paper = "" if row.paper is None else f"{row.paper:.4f}"
        numbers = [f"{row.each:.7f}", f"{row.lowest:.7f}", "" if np.isnan(row.spread) else f"{row.spread:.5f}"]
        writer.writerow([*start, row.place.method.title, paper, f"{row.chosen:.7f}", row.setting, *numbers])
    return stream.getvalue()


def plain_svm(results: Results) -> pd.DataFrame:
    """The last round of the plain SVM at every step and decay of its grid: one line each, means over replications."""
    frame = results.frame
    frame = frame[(frame.method == "svm") & (frame.statistic == "last") & (frame.metric == "accuracy")]
    frame = frame[frame.eta.notna()]
    where = ["attack", "C", "gamma", "config", "level"]
    return frame.groupby(where, sort=False)["value"].mean().rename("accuracy").reset_index()


def plain_svm_markdown(found: pd.DataFrame) -> str:
    """`plain_svm` with a row per setting and a column per level."""
    several = [name for name in ("attack", "C", "gamma") if found[name].nunique() > 1]
    wide = found.pivot_table(index=[*several, "config"], columns="level", values="accuracy", sort=False)
    names = [*several, "step and decay", *("clean" if level == 0 else f"{level:g} %" for level in wide.columns)]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * (1 + len(several)) + "---:|" * wide.shape[1]]
    for place, row in wide.iterrows():
        start = [
            f"{part:g}" if isinstance(part, int | float) else part for part in np.atleast_1d(np.array(place, object))
        ]
        lines.append("| " + " | ".join([*start, *(f"{value:.3f}" for value in row)]) + " |")
    return "\n".join(lines) + "\n"


def _leading(places: Sequence[Place]) -> tuple[list[str], Callable[[Place], list[str]]]:
    """Columns that tell places apart besides level and method: attack and setting, where there are several."""
    attacks, settings = len({place.attack for place in places}) > 1, len({place.setting for place in places}) > 1
    names = [*(["attack"] if attacks else []), *(["C, gamma"] if settings else [])]

    def cells(place: Place) -> list[str]:
        setting = f"{place.setting[0]:g}, {place.setting[1]:g}"
        return [*([place.attack] if attacks else []), *([setting] if settings else [])]

    return names, cells
