"""What the attacker's budget B does: FLORAL's accuracy and recovery for each B of the grid, a row per level and B."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from floral_bench.metrics import sample_deviation
from floral_bench.reporting.results import Place, Results

if TYPE_CHECKING:
    import pandas as pd

STATISTICS = ("best", "last", "average")
WINDOW = 10  # rounds that a curve averages, since a round flips a few labels only


@dataclass(frozen=True)
class Budget:
    """FLORAL at one budget; ``None`` where nothing was measured (no labels to recover on clean data)."""

    level: float
    budget: int
    flips: int
    accuracy: dict[str, tuple[float, float]]  # statistic -> mean and sample deviation over the replications
    recovery: tuple[float, float] | None


def floral_places(results: Results) -> list[Place]:
    """FLORAL's places with finished cells, in the order of the suite."""
    return [place for place, cells in results.cells.items() if place.method.name == "floral" and cells]


def budgets_of(results: Results, place: Place) -> list[Budget]:
    """The budgets of a place; B = 0, the plain SVM of the same suite, first where the suite has one.

    For each B and statistic the step and decay with the highest mean are shown, as the paper chooses. The recovery rate
    is the mean over rounds, steps and decays: no choice is made for it.
    """
    frame = _at(results.frame, place)
    out = []
    plain = frame[(frame.method == "svm") & (frame.metric == "accuracy")]
    if len(plain):
        out.append(Budget(place.level, 0, 0, _accuracy(plain), None))
    own = frame[(frame.method == place.method.title) & frame.budget.notna()]
    for budget in sorted(own.budget.unique()):
        here = own[own.budget == budget]
        rates = here[here.metric == "recovery_rate"].groupby("seed")["value"].mean().to_numpy()
        recovery = (float(rates.mean()), float(sample_deviation(rates))) if len(rates) else None
        accuracy = _accuracy(here[here.metric == "accuracy"])
        out.append(Budget(place.level, int(budget), int(here.flips.iloc[0]), accuracy, recovery))
    return out


def nearest_config(results: Results, place: Place, wanted: float) -> str:
    """The configuration whose B is nearest to `wanted`; of several, the one that is best in the last round."""
    frame = _at(results.frame, place)
    last = frame[(frame.method == place.method.title) & (frame.statistic == "last") & (frame.metric == "accuracy")]
    distance = (last.budget.astype(float) - wanted).abs()
    return str(last[distance == distance.min()].groupby("config")["value"].mean().idxmax())


def recovery_over_rounds(results: Results, place: Place, config: str) -> tuple[np.ndarray, np.ndarray]:
    """Rounds, and the share of poisoned labels flipped back around each: mean of `WINDOW` rounds and of replications.

    The warm-up round, in which nothing is flipped, is left out. A window stands at its middle.
    """
    traces = np.stack(results.traces(place, "recovery", config=config))
    means = np.nanmean(traces[:, 1:], axis=0)
    smooth = np.convolve(means, np.ones(WINDOW) / WINDOW, mode="valid")
    return np.arange(len(smooth)) + WINDOW // 2 + 1, smooth


def to_markdown(results: Results) -> str:
    """All places as one Markdown table."""
    names = ["poisoned", "B", "k", *STATISTICS, "flipped back per round"]
    lines = ["| " + " | ".join(names) + " |", "|---|" + "---:|" * (len(names) - 1)]
    for row in _rows(results):
        numbers = [_text(row.accuracy.get(statistic)) for statistic in STATISTICS]
        cells = [f"{row.level:g} %", str(row.budget), str(row.flips), *numbers, _text(row.recovery)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def to_csv(results: Results) -> str:
    """All places as tidy CSV: one line per number."""
    lines = ["level,budget,flips,metric,statistic,mean,deviation"]
    for row in _rows(results):
        start = f"{row.level:g},{row.budget},{row.flips}"
        found = [("accuracy", statistic, value) for statistic, value in row.accuracy.items()]
        if row.recovery is not None:
            found.append(("recovery_rate", "average", row.recovery))
        for metric, statistic, (mean, deviation) in found:
            spread = "" if np.isnan(deviation) else f"{deviation:.5f}"
            lines.append(f"{start},{metric},{statistic},{mean:.7f},{spread}")
    return "\n".join(lines) + "\n"


def _rows(results: Results) -> list[Budget]:
    return [row for place in floral_places(results) for row in budgets_of(results, place)]


def _at(frame: pd.DataFrame, place: Place) -> pd.DataFrame:
    return frame[
        (frame.level == place.level)
        & (frame.attack == place.attack)
        & (frame["C"] == place.setting[0])
        & (frame.gamma == place.setting[1])
    ]


def _accuracy(frame: pd.DataFrame) -> dict[str, tuple[float, float]]:
    out = {}
    for statistic in STATISTICS:
        groups = frame[frame.statistic == statistic].groupby("config")["value"]
        if not len(groups):
            continue
        values = groups.get_group(groups.mean().idxmax()).to_numpy()
        out[statistic] = (float(values.mean()), float(sample_deviation(values)))
    return out


def _text(value: tuple[float, float] | None) -> str:
    if value is None:
        return ""
    mean, deviation = value
    return f"{mean:.3f}" + ("" if np.isnan(deviation) else f" ± {deviation:.3f}")
