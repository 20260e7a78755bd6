"""Pictures of experiments with a card: what answers buy, and aggregators of votes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from floral_bench.crowds.card import OURS, complete, groups
from floral_bench.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, YELLOW
from floral_bench.questions.card import GROUPS, score_card

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
    """One panel per group: mean test accuracy over the poisoned cells by number of answers.

    Our questions with every way to read answers; others as they are used, with the answered labels fixed.
    """
    card = score_card(frame[(frame["level"] > 0) & (frame["wrong_answers"] == 0)])
    card = card[(card["order"] == "review") | (card["reading"] == "fixed only")]
    groups = [name for name in GROUPS if name in set(card["group"])]
    figure = Figure(figsize=(2.5 * len(groups) + 1.5, 4.2), layout="constrained")
    panels = figure.subplots(1, len(groups), squeeze=False)[0]
    handles: dict[str, Any] = {}
    for axis, group in zip(panels, groups, strict=True):
        part = card[card["group"] == group]
        for (order, reading), rows in part.groupby(["order", "reading"], sort=False):
            rows = rows.sort_values("answers")
            name = _NAMES[str(reading)] if order == "review" else f"{order}, labels fixed"
            x, y = [0, *rows["answers"]], [rows["svc"].iloc[0], *rows["accuracy"]]
            (handles[name],) = axis.plot(x, y, **_style(str(order), str(reading)))
        for name, column, dashes in (("SVC, given labels", "svc", "--"), ("SVC, clean labels", "clean", "-")):
            handles[name] = axis.axhline(part[column].iloc[0], color=BLACK, linewidth=1, linestyle=dashes)
        low = part["svc"].min() - 0.6 * (part["clean"].max() - part["svc"].min())
        axis.set(title=group, xlabel="answers", ylim=(low, None))
    panels[0].set_ylabel("mean test accuracy, poisoned cells")
    wide = 4 if len(groups) > 2 else 2
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=wide, fontsize=9)
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
        "linewidth": 2.2 if main else 1.4,
        "zorder": 5 if main else 3,
    }


_LOOKS = {
    OURS: (RED, "o", "-"),
    "ours without features": (ORANGE, "d", "-"),
    "dawid-skene": (BLUE, "^", "--"),
    "crowdlab": (GREEN, "s", "-."),
    "glad": (PURPLE, "v", ":"),
    "mace": (BLACK, "x", ":"),
    "majority": (GREY, ".", "--"),
}
_NAMES = {
    "posterior": "LabelReview",
    "fixed only": "LabelReview's rows, labels fixed",
    "answers alone": "LabelReview's rows alone",
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


def _matrix(axis: Any, lead: pd.DataFrame) -> None:
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
