"""Pictures of experiments with a card: what answers buy, and aggregators of votes."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from floral_bench.crowds.card import OURS, complete, groups
from floral_bench.figures.drawing import Curve, Panel, heat, lines
from floral_bench.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED
from floral_bench.questions.card import MARKS, hurt, recovered, wide_frame
from floral_bench.questions.cells import RANDOM, REVIEW

_LOOKS = {
    OURS: (RED, "o", "-"),
    "ours without features": (ORANGE, "d", "-"),
    "dawid-skene": (BLUE, "^", "--"),
    "crowdlab": (GREEN, "s", "-."),
    "glad": (PURPLE, "v", ":"),
    "mace": (BLACK, "x", ":"),
    "majority": (GREY, ".", "--"),
}


_CHOOSERS = {
    REVIEW: ("LabelReview", RED, "-"),
    RANDOM: ("random rows, corrected by its rule", ORANGE, "-"),
    "uncertainty": ("uncertainty sampling, labels fixed", GREEN, ":"),
    "doubtful": ("most doubtful labels fixed", BLUE, ":"),
    "random-weight-10": ("random rows fixed, weight 10", PURPLE, ":"),
    "random": ("random rows fixed", GREY, ":"),
}


def draw_questions(frame: pd.DataFrame) -> Figure:
    """Shares of the lost accuracy that came back, by the number of answers, at 30 % and on the same cases."""
    cases = {who: hurt(wide_frame(frame[frame["level"] == 30], who)) for who in _CHOOSERS}
    cases = {who: wide for who, wide in cases.items() if len(wide)}
    where, curves = ["data", "kind", "split"], []
    both = set.intersection(*(set(map(tuple, wide[where].to_numpy())) for wide in cases.values())) if cases else set()
    for who, wide in cases.items():
        name, color, dash = _CHOOSERS[who]
        part = wide[[tuple(case) in both for case in wide[where].to_numpy()]]
        look = {"color": color, "linestyle": dash, "marker": "o", "markersize": 4}
        curves.append(Curve(name, range(len(MARKS) + 1), [0.0, *(100 * recovered(part))], look))
    ticks = {"xticks": range(len(MARKS) + 1), "xticklabels": [0, *MARKS]}
    words = {"xlabel": "answers", "ylabel": "lost accuracy that came back, %"}
    return lines([[Panel("", curves, ticks)]], (6.4, 4.2), columns=2, **words)  # type: ignore[arg-type]


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
