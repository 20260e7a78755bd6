"""How FLORAL's accuracy depends on the attacker's budget B, one line a poisoning level."""

from __future__ import annotations

import re

import numpy as np
from matplotlib.figure import Figure

from floral_learn.evaluation.figures.style import BLACK, BLUE, GREEN, ORANGE, RED
from floral_learn.evaluation.reporting.results import Place, Results

_TITLES = {"best": "best round", "last": "last round", "average": "averaged model"}
_LOOKS = ((BLUE, "o", "-"), (GREEN, "s", "--"), (ORANGE, "^", "-."), (RED, "D", ":"), (BLACK, "v", "-"))


def draw(results: Results) -> Figure:
    """For each B the step and decay with the highest mean, as the paper chooses; B = 0 is the plain SVM."""
    figure = Figure(figsize=(7.2, 2.7), layout="constrained")
    places = [place for place, cells in results.cells.items() if place.method.name == "floral" and cells]
    if not places:
        return figure
    panels = figure.subplots(1, len(_TITLES), sharey=True)
    ticks = [0, *budgets(results, places[0])]
    for axis, (statistic, title) in zip(panels, _TITLES.items(), strict=True):
        for number, place in enumerate(places):
            mean, deviation = curve(results, place, statistic)
            color, marker, dash = _LOOKS[number % len(_LOOKS)]
            label = "clean" if place.level == 0 else f"{place.level:g} %"
            x = range(len(ticks))
            axis.errorbar(x, mean, deviation, color=color, marker=marker, linestyle=dash, capsize=2, label=label)
        axis.set_title(title)
        axis.set_xlabel("attacker's budget B")
        axis.set_xticks(range(len(ticks)), [str(tick) for tick in ticks])
    panels[0].set_ylabel("test accuracy")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, title="poisoned labels")
    return figure


def budgets(results: Results, place: Place) -> list[int]:
    """The budgets of a place's configurations."""
    frame = results.frame
    configs = frame[(frame.method == place.method.title) & frame.config.str.startswith("B=")].config.unique()
    return sorted({int(re.match(r"B=(\d+)", config)[1]) for config in configs})  # type: ignore[index]


def curve(results: Results, place: Place, statistic: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation at B = 0 (plain SVM) and at each budget, each with its best step and decay."""
    frame = results.frame
    mine = frame[
        (frame.level == place.level)
        & (frame.attack == place.attack)
        & (frame["C"] == place.setting[0])
        & (frame.gamma == place.setting[1])
        & (frame.statistic == statistic)
        & (frame.metric == "accuracy")
    ]
    means, deviations = [], []
    for budget in [0, *budgets(results, place)]:
        if budget:
            own = mine[(mine.method == place.method.title) & mine.config.str.startswith(f"B={budget} ")]
        else:
            own = mine[mine.method == "svm"]
        groups = own.groupby("config")["value"]
        if not len(own):
            means.append(np.nan)
            deviations.append(np.nan)
            continue
        best = groups.mean().idxmax()
        means.append(groups.mean()[best])
        deviations.append(groups.std(ddof=0)[best])
    return np.array(means), np.array(deviations)
