"""The picture of the questions: what answers buy."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from floral_bench.figures.drawing import Curve, Panel, lines
from floral_bench.figures.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED
from floral_bench.questions.card import MARKS, hurt, recovered, wide_frame
from floral_bench.questions.cells import RANDOM, REVIEW

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
