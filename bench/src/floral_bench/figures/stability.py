"""Contraction of real steps against the bound of Lemma 1, one panel per step size."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from floral_bench.figures.style import BLUE, GREY, ORANGE
from floral_bench.reporting.results import Results


def draw(results: Results) -> Figure:
    """The first level's ratios in both norms, mean over replications, with the printed bound."""
    etas = results.suite.grid.etas if results.suite.grid else ()
    place = next((place for place, cells in results.cells.items() if cells and place.method.name == "stability"), None)
    figure = Figure(figsize=(7.2, 2.3), layout="constrained")
    if place is None or not etas:
        return figure
    panels = figure.subplots(1, len(etas), sharey=True, squeeze=False)[0]
    for axis, eta in zip(panels, etas, strict=True):
        config = f"eta={eta:g}"
        for norm, color, dash, label in (("inf", ORANGE, "-", "infinity norm"), ("2", BLUE, "--", "spectral norm")):
            values = np.stack(results.traces(place, f"ratio_{norm}", config=config)).mean(0)
            axis.plot(np.arange(1, len(values) + 1), values, color=color, linestyle=dash, linewidth=1, label=label)
        kappa = results.values(place, "final", "kappa_inf", config).mean()
        axis.axhline(kappa, color=GREY, linestyle=":", label="κ of Lemma 1, infinity norm")
        axis.axhline(1.0, color=GREY, linewidth=0.6)
        axis.set_title(f"η = {eta:g}")
        axis.set_xlabel("round")
    panels[0].set_ylabel("|a - b| after / before the round")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
