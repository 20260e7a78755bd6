"""How much of their most influential quarter of the training rows FLORAL and the network share, a bar a level."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from floral_bench.figures.style import BLUE, GREY
from floral_bench.metrics import sample_deviation
from floral_bench.reporting.results import Results


def draw(results: Results) -> Figure:
    """One panel a network to compare with; whiskers are deviations over replications; chance is a quarter."""
    figure = Figure(figsize=(6.0, 2.4), layout="constrained")
    methods = [m for m in results.suite.methods if any(p.method == m and c for p, c in results.cells.items())]
    if not methods:
        return figure
    panels = figure.subplots(1, len(methods), squeeze=False, sharey=True)[0]
    for axis, method in zip(panels, methods, strict=True):
        found = {p.level: results.values(p, "final", "overlap") for p in results.cells if p.method == method}
        found = {level: values for level, values in found.items() if len(values)}
        names = ["clean" if level == 0 else f"{level:g} %" for level in found]
        heights = [100 * np.mean(values) for values in found.values()]
        whiskers = [100 * sample_deviation(values) for values in found.values()]
        axis.bar(names, heights, yerr=whiskers, color=BLUE, capsize=2, width=0.6)
        axis.axhline(25, color=GREY, linestyle=":", linewidth=1)
        axis.set_title(method.title)
        axis.set_xlabel("poisoned labels")
    panels[0].set_ylabel("shared rows (%)")
    return figure
