"""Pictures of experiments with a card: what answers buy, and aggregators of votes."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from floral_bench.crowds.card import OURS, complete, groups
from floral_bench.figures.drawing import Curve, Panel, heat, lines
from floral_bench.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, YELLOW
from floral_bench.questions.card import GROUPS, score_card

_COLOURS = {
    "review": RED, "random": GREY, "suspicious": BLUE, "uncertain": GREEN, "duals": ORANGE, "cleanlab": PURPLE,
    "activelab": SKY,
}  # fmt: skip
_NAMES = {
    "posterior": "LabelReview",
    "fixed only": "LabelReview's rows, labels fixed",
    "answers alone": "LabelReview's rows alone",
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


def draw_questions(frame: pd.DataFrame) -> Figure:
    """One panel per group: mean test accuracy over the poisoned cells by number of answers.

    Our questions with every way to read answers; others as they are used, with the answered labels fixed.
    """
    card = score_card(frame[(frame["level"] > 0) & (frame["wrong_answers"] == 0)])
    card = card[(card["order"] == "review") | (card["reading"] == "fixed only")]
    panels = []
    for group in (name for name in GROUPS if name in set(card["group"])):
        part, curves = card[card["group"] == group], []
        for (order, reading), rows in part.groupby(["order", "reading"], sort=False):
            name = _NAMES[str(reading)] if order == "review" else f"{order}, labels fixed"
            curves.append(_answers(name, rows.sort_values("answers"), str(order), str(reading)))
        curves += _plain(part, part["answers"].max())
        low = part["svc"].min() - 0.6 * (part["clean"].max() - part["svc"].min())
        panels.append(Panel(group, curves, {"ylim": (low, None)}))
    wide = 4 if len(panels) > 2 else 2
    words = {"xlabel": "answers", "ylabel": "mean test accuracy, poisoned cells"}
    return lines([panels], (2.5 * len(panels) + 1.5, 4.2), columns=wide, letters=9, **words)  # type: ignore[arg-type]


def draw_by_attack(frame: pd.DataFrame, group: str = "tables") -> Figure:
    """One panel per attack and level: our questions, label fixed only and read by our posterior, and SVC's accuracy."""
    part = frame[(frame["group"] == group) & (frame["order"] == "review") & (frame["wrong_answers"] == 0)]
    part = part[part["reading"].isin(["posterior", "fixed only"]) & (part["level"] > 0)]
    panels: list[Panel | None] = []
    for (attack, level), cells in part.groupby(["attack", "level"]):
        means = cells.groupby(["reading", "answers"])[["accuracy", "svc", "clean"]].mean().reset_index()
        ways = (("posterior", "review"), ("fixed only", "label fixed only"))
        curves = [_answers(label, means[means.reading == way], "review", way) for way, label in ways]
        panels.append(Panel(f"{attack}, {level:g} %", [*curves, *_plain(means, means.answers.max())]))
    panels += [None] * (len(panels) % 2)  # levels of one attack stand one above the other
    size = (1.9 * max(1, len(panels) // 2) + 0.6, 4.4)
    rows = [panels[0::2], panels[1::2]] if panels else [[None]]
    return lines(rows, size, xlabel="answers", ylabel="test accuracy", sharex=True, sharey=True)


def _answers(name: str, rows: pd.DataFrame, order: str, reading: str) -> Curve:
    """Accuracy by the number of answers, from none on."""
    main = order == "review" and reading == "posterior"
    look: dict[str, Any] = {"color": _COLOURS.get(order, GREY), "linestyle": "-" if reading == "posterior" else ":"}
    look |= {"linewidth": 2.2 if main else 1.4, "zorder": 5 if main else 3}
    if reading == "answers alone":
        look = {"color": YELLOW, "linestyle": "-.", "linewidth": 1.2}
    return Curve(name, [0, *rows["answers"]], [rows["svc"].iloc[0], *rows["accuracy"]], look)


def _plain(rows: pd.DataFrame, last: float) -> list[Curve]:
    """What an SVC has on the given labels, and on clean ones."""
    kinds = (("SVC, given labels", "svc", "--"), ("SVC, clean labels", "clean", "-"))
    look: dict[str, Any] = {"color": BLACK, "linewidth": 1}
    return [Curve(n, [0, last], [rows[column].iloc[0]] * 2, look | {"linestyle": dash}) for n, column, dash in kinds]


def draw_crowd(frame: pd.DataFrame) -> Figure:
    """Left: mean share of right labels by level. Right: lead of ours over the best peer, by attack and level."""
    frame = complete(frame)
    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    halves: Any = figure.subfigures(1, 2, width_ratios=(1, 1.15))
    left, right = halves
    means, curves = frame.groupby(["method", "level"])["accuracy"].mean(), []
    for name, (color, marker, dash) in _LOOKS.items():
        if name in means.index.get_level_values(0):
            part, look = means[name].sort_index(), {"color": color, "marker": marker, "linestyle": dash}
            curves.append(Curve(name, part.index, part.to_numpy(), look))
    words = {
        "xlabel": "votes in the attacker's hands (%)",
        "ylabel": "labels that are right, mean over data and attacks",
    }
    lines([[Panel("", curves)]], (0, 0), columns=3, figure=left, **words)  # type: ignore[arg-type]
    table = groups(frame)
    if "lead" in table:
        lead = table["lead"].unstack("level").sort_index(ascending=False)
        heat(lead, 0.25, "ours less the best peer, below the limit of lies told together", figure=right)
    return figure
