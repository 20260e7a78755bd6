"""Test accuracy of a trained network, of heads on its features and of turns, against poison: a panel an attack."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from floral_bench.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, RED
from floral_bench.metrics import sample_deviation
from floral_bench.reporting.results import Results

_LOOKS: dict[str, dict[str, Any]] = {
    "nn": {"color": BLUE, "linestyle": "-.", "marker": "^"},
    "nn+svm": {"color": BLACK, "linestyle": "--", "marker": "s"},
    "nn+floral": {"color": ORANGE, "linestyle": ":", "marker": "o"},
    "nn+floral (B = level)": {"color": RED, "linewidth": 1.8, "marker": "o"},
    "nn+floral (B on test labels)": {"color": RED, "linestyle": ":", "marker": "d"},
    "nn+floral (B = level), 3 turns": {"color": GREEN, "linestyle": "--", "marker": "v"},
    "nn of 3 turns": {"color": GREY, "linestyle": "-.", "marker": "x"},
}


def draw(results: Results) -> Figure:
    """Means over replications at the end of training, with bars of one deviation."""
    attacks = list(dict.fromkeys(place.attack for place in results.cells))
    figure = Figure(figsize=(7.2, 3.0), layout="constrained")
    if not any(results.cells.values()):
        return figure
    panels = figure.subplots(1, len(attacks), squeeze=False, sharey=True)[0]
    handles: dict[str, Any] = {}
    for axis, attack in zip(panels, attacks, strict=True):
        for order, (title, look) in enumerate(_LOOKS.items()):
            places = [p for p in results.cells if p.attack == attack and p.method.title == title]
            found = [(place.level, results.values(place, "last")) for place in places]
            found = [(level, values) for level, values in found if len(values)]
            if not found:
                continue
            # side by side, so that bars do not hide each other
            x = np.array([level for level, _ in found]) + 0.25 * (order - len(_LOOKS) / 2)
            mean = [values.mean() for _, values in found]
            deviation = [sample_deviation(values) for _, values in found]
            handles[title] = axis.errorbar(x, mean, deviation, **{"linewidth": 1.1, "elinewidth": 0.6, **look})
        axis.set_title(attack)
        axis.set_xlabel("poisoned labels (%)")
    panels[0].set_ylabel("test accuracy")
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=4)
    return figure
