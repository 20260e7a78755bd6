"""What answers buy, in one picture: accuracy by number of answers, for each way to choose and to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from floral_learn.evaluation.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, YELLOW
from floral_learn.evaluation.questions.card import score_card

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
