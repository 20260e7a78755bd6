"""How FLORAL's accuracy depends on the attacker's budget B, one line per poisoning level."""

from __future__ import annotations

from matplotlib.figure import Figure

from floral_bench.figures.style import BLACK, BLUE, GREEN, ORANGE, RED
from floral_bench.reporting.details import floral_places, per_budget
from floral_bench.reporting.results import Results

_TITLES = {"best": "best round", "last": "last round", "average": "averaged model"}
_LOOKS = ((BLUE, "o", "-"), (GREEN, "s", "--"), (ORANGE, "^", "-."), (RED, "D", ":"), (BLACK, "v", "-"))


def draw(results: Results) -> Figure:
    """For each B the step and decay with the highest mean, as the paper chooses; B = 0 is the plain SVM."""
    figure = Figure(figsize=(7.2, 2.7), layout="constrained")
    places = floral_places(results)
    if not places:
        return figure
    panels, budgets = figure.subplots(1, len(_TITLES), sharey=True), per_budget(results)
    for number, place in enumerate(places):
        rows = budgets[budgets.level == place.level]
        color, marker, dash = _LOOKS[number % len(_LOOKS)]
        label = "clean" if place.level == 0 else f"{place.level:g} %"
        for axis, statistic in zip(panels, _TITLES, strict=True):
            mean, deviation, x = rows[statistic], rows[f"{statistic} ±"], range(len(rows))
            axis.errorbar(x, mean, deviation, color=color, marker=marker, linestyle=dash, capsize=2, label=label)
            axis.set_xticks(x, [str(B) for B in rows.B])
    for axis, title in zip(panels, _TITLES.values(), strict=True):
        axis.set_title(title)
        axis.set_xlabel("attacker's budget B")
    panels[0].set_ylabel("test accuracy")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, title="poisoned labels")
    return figure
