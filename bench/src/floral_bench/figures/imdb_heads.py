"""IMDB against the share of poisoned labels: every head on embeddings of both encoders, beside the transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from floral_bench.figures.style import BLUE, RED, line_style
from floral_bench.reporting.results import Results

_ENCODERS = ("own", "clean")
_STATISTICS = ("last", "final")
_OWN: dict[str, dict[str, Any]] = {
    "minilm": {"color": BLUE, "marker": "^", "linewidth": 1.8},
    "floral-fixed": {"color": RED, "marker": "s", "linestyle": "--", "linewidth": 1.6},
    "floral-default": {"color": RED, "marker": "x", "linestyle": "-.", "linewidth": 1.6},
}


def draw(results: Results) -> Figure:
    """Last round (configuration chosen on test labels, as in the paper); FLORAL's fixed configuration as one fit."""
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    if not any(results.cells.values()):
        return figure
    panels = figure.subplots(1, len(_ENCODERS), sharey=True)
    handles: dict[str, Any] = {}
    for axis, encoder in zip(panels, _ENCODERS, strict=True):
        for order, method in enumerate(results.suite.methods):
            suffix = f", {encoder} encoder"
            if method.title.endswith(" encoder") and not method.title.endswith(suffix):
                continue
            name = method.title.removesuffix(suffix)
            style = _OWN.get(method.name) or line_style(name, order)
            _line(axis, results, method, name, style, handles)
        axis.set_title(f"{encoder} encoder")
        axis.set_xlabel("poisoned labels (%)")
    panels[0].set_ylabel("test accuracy")
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=4)
    return figure


def _line(axis: Any, results: Results, method: Any, name: str, style: dict[str, Any], handles: dict[str, Any]) -> None:
    for statistic in _STATISTICS:
        points = [(p.level, results.values(p, statistic)) for p in results.cells if p.method == method]
        points = [(level, values) for level, values in points if len(values)]
        if not points:
            continue
        # no bands: with a dozen lines they would hide each other; the table has the deviations
        mean = [float(np.mean(values)) for _, values in points]
        (handles[name],) = axis.plot([level for level, _ in points], mean, **style)
