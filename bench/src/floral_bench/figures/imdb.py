"""IMDB over training: accuracy and hinge loss, the transformer by epoch, FLORAL's heads by round, a line per level."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from floral_bench.figures.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED
from floral_bench.metrics import sample_deviation
from floral_bench.reporting.results import Place, Results

_LOOKS = ((BLACK, "-"), (BLUE, "--"), (GREEN, "-."), (ORANGE, ":"), (PURPLE, "--"), (RED, "-"))
_PANELS = {
    "minilm, fine-tuned": "MiniLM, fine-tuned",
    "floral, own encoder": "FLORAL, own encoder",
    "floral, clean encoder": "FLORAL, clean encoder",
}
_METRICS = {"accuracy": "test accuracy", "hinge_loss": "test hinge loss"}


def draw(results: Results) -> Figure:
    """Of the grid, the game with the highest mean accuracy over its last half; means over draws, bands one deviation.

    The "last" column may have picked a game that swings and happened to end high: its curve would say nothing.
    """
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    titles = [title for title in _PANELS if any(p.method.title == title and c for p, c in results.cells.items())]
    if not titles:
        return figure
    panels = figure.subplots(len(_METRICS), len(titles), squeeze=False, sharey="row", sharex="col")
    for row, (metric, name) in enumerate(_METRICS.items()):
        for axis, title in zip(panels[row], titles, strict=True):
            places = [place for place in results.cells if place.method.title == title]
            for number, place in enumerate(places):
                _curve(axis, results, place, metric, _LOOKS[number % len(_LOOKS)])
        panels[row, 0].set_ylabel(name)
    for axis, title in zip(panels[0], titles, strict=True):
        axis.set_title(_PANELS[title])
    for axis, title in zip(panels[-1], titles, strict=True):
        axis.set_xlabel("epoch" if title.startswith("minilm") else "round")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, title="poisoned labels")
    return figure


def _curve(axis: Any, results: Results, place: Place, metric: str, look: tuple[str, str]) -> None:
    traces = results.traces(place, metric, config=_steadiest(results, place))
    if not traces:
        return
    values = np.stack(traces)
    rounds = values.shape[1]
    if place.method.needs_grid and results.suite.grid:
        rounds = results.suite.grid.rounds
    x = np.linspace(rounds / values.shape[1], rounds, values.shape[1])
    mean, deviation = values.mean(0), sample_deviation(values, axis=0)
    label = "clean" if place.level == 0 else f"{place.level:g} %"
    axis.plot(x, mean, color=look[0], linestyle=look[1], linewidth=1.2, label=label, marker="o" if len(x) < 10 else "")
    axis.fill_between(x, mean - deviation, mean + deviation, color=look[0], alpha=0.1, linewidth=0)


def _steadiest(results: Results, place: Place) -> str:
    """The configuration with the highest mean accuracy over the last half of its rounds."""
    frame = results.frame
    mine = frame[(frame.method == place.method.title) & (frame.level == place.level) & (frame.metric == "accuracy")]

    def height(config: str) -> float:
        traces = results.traces(place, "accuracy", config=config)
        return float(np.mean([trace[len(trace) // 2 :].mean() for trace in traces])) if traces else -1.0

    return max(sorted(set(mine.config)), key=height, default="")
