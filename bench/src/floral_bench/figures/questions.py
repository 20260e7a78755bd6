"""What answers buy, in one picture: accuracy by number of answers, for each way to choose and to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from floral_bench.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, YELLOW
from floral_bench.questions.card import score_card

if TYPE_CHECKING:
    import pandas as pd

_COLOURS = {
    "review": RED,
    "random": GREY,
    "suspicious": BLUE,
    "uncertain": GREEN,
    "duals": ORANGE,
    "cleanlab": PURPLE,
    "activelab": SKY,
}


def draw_questions(frame: pd.DataFrame) -> Figure:
    """One panel per group: mean test accuracy over the poisoned cells by number of answers."""
    card = score_card(frame[(frame["level"] > 0) & (frame["wrong_answers"] == 0)])
    groups = list(dict.fromkeys(card["group"]))
    figure = Figure(figsize=(3.4 * len(groups) + 2.2, 3.6), layout="constrained")
    panels = figure.subplots(1, len(groups), squeeze=False)[0]
    for axis, group in zip(panels, groups, strict=True):
        part = card[card["group"] == group]
        for (order, reading), rows in part.groupby(["order", "reading"], sort=False):
            rows = rows.sort_values("answers")
            start = rows["svc"].iloc[0]
            axis.plot(
                [0, *rows["answers"]],
                [start, *rows["accuracy"]],
                label=f"{order}, {reading}",
                **_style(str(order), str(reading)),
            )
        axis.axhline(part["svc"].iloc[0], color=BLACK, linewidth=1, linestyle="--", label="SVC")
        axis.axhline(part["clean"].iloc[0], color=BLACK, linewidth=1, label="SVC on clean labels")
        low = part["svc"].min() - 0.6 * (part["clean"].max() - part["svc"].min())
        axis.set(title=group, xlabel="answers", ylim=(low, None))
    panels[0].set_ylabel("mean test accuracy, poisoned cells")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper")
    return figure


def draw_by_attack(frame: pd.DataFrame, group: str = "tables") -> Figure:
    """One panel per attack and level: our questions, label fixed only and read by our posterior, and SVC's accuracy."""
    part = frame[(frame["group"] == group) & (frame["order"] == "review") & (frame["wrong_answers"] == 0)]
    part = part[part["reading"].isin(["posterior", "fixed only"])]
    kinds = sorted({(a, lv) for a, lv in zip(part["attack"], part["level"], strict=True) if lv > 0})
    columns = max(1, (len(kinds) + 1) // 2)
    figure = Figure(figsize=(1.9 * columns + 0.6, 4.4), layout="constrained")
    panels = figure.subplots(2, columns, sharex=True, sharey=True, squeeze=False)
    for number, (attack, level) in enumerate(kinds):
        axis = panels[number % 2, number // 2]  # levels of one attack stand one above the other
        cells = part[(part["attack"] == attack) & (part["level"] == level)]
        means = cells.groupby(["reading", "answers"])[["accuracy", "svc", "clean"]].mean()
        for reading, label in (("posterior", "review"), ("fixed only", "label fixed only")):
            rows = means.loc[reading]
            axis.plot(
                [0, *rows.index], [rows["svc"].iloc[0], *rows["accuracy"]], label=label, **_style("review", reading)
            )
        axis.axhline(means["svc"].iloc[0], color=BLACK, linewidth=1, linestyle="--", label="SVC")
        axis.axhline(means["clean"].iloc[0], color=BLACK, linewidth=1, label="SVC on clean labels")
        axis.set_title(f"{attack}, {level:g} %", fontsize="medium")
    for axis in panels[-1]:
        axis.set_xlabel("answers")
    for axis in panels[:, 0]:
        axis.set_ylabel("test accuracy")
    if kinds:
        figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _style(order: str, reading: str) -> dict[str, Any]:
    if reading == "answers alone":
        return {"color": YELLOW, "linestyle": "-.", "linewidth": 1.2}
    main = order == "review" and reading == "posterior"
    dashes = "-" if reading == "posterior" else ":"
    return {
        "color": _COLOURS.get(order, GREY),
        "linestyle": dashes,
        "linewidth": 2.2 if main else 1.1,
        "zorder": 5 if main else 3,
    }
