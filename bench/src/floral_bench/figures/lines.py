"""The pictures of suites that are lines: over rounds and epochs, over levels of poison, over budgets; and bars.

Each function reads `Results` and returns a figure, without axes where there is nothing to draw.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from floral_bench.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    in_lines,
    line_style,
    title_of,
    without_marker,
)
from floral_bench.metrics import sample_deviation
from floral_bench.reporting.details import floral_places, per_budget
from floral_bench.reporting.results import Place, Results

Handles = dict[str, Any]
Group = tuple[str, tuple[float, float]]  # attack, (C, gamma)
FEW = 6  # methods whose bands can be told apart


def _legend(figure: Any, handles: Handles, columns: int) -> None:
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=columns)


def _band(axis: Any, x: Any, mean: Any, deviation: Any, look: dict[str, Any], alpha: float = 0.12) -> Any:
    """A line of means with a band of one deviation around it."""
    (line,) = axis.plot(x, mean, **look)
    axis.fill_between(x, mean - deviation, mean + deviation, color=look["color"], alpha=alpha, linewidth=0)
    return line


def _by_level(results: Results, places: Iterable[Place], kind: str, metric: str = "accuracy") -> Any:
    """Levels of `places` that have numbers, and these."""
    found = [(place.level, results.values(place, kind, metric)) for place in places]
    found = [(level, values) for level, values in found if len(values)]
    return [level for level, _ in found], [values for _, values in found]


def _only(results: Results, part: str) -> list[Any]:
    return list(dict.fromkeys(getattr(place, part) for place in results.cells))


# Curves over rounds and epochs


def rounds(results: Results) -> Figure:
    """Curves of the configuration behind the "last" column; epochs of networks are stretched to the same length."""
    groups, levels = _groups(results), _only(results, "level")
    wide = len(levels) if len(levels) <= 4 else 3
    tall = -(-len(levels) // wide)
    figure = Figure(figsize=(7.2, 0.5 + 2.0 * tall * len(groups)), layout="constrained")
    if not any(results.cells.values()):
        return figure
    panels = figure.subplots(tall * len(groups), wide, squeeze=False, sharex=True)
    handles: Handles = {}
    several = [len({values[part] for values in groups}) > 1 for part in (0, 1)]
    for number, group in enumerate(groups):
        for position, level in enumerate(levels):
            axis = panels[number * tall + position // wide, position % wide]
            places = [p for p in results.cells if (p.attack, p.setting) == group and p.level == level]
            for order, place in enumerate(places):
                traces = results.traces(place, "accuracy", "last")
                if traces and place.method.name != "largest-loss":
                    look = without_marker(line_style(place.method.title, order))
                    handles[place.method.title] = _stretched(axis, results, np.stack(traces), look)
            attack, (C, gamma) = group
            parts = [in_lines(attack), f"C={C:g}, γ={gamma:g}"]
            apart = [text for text, differs in zip(parts, several, strict=True) if differs]
            axis.set_title("\n".join([title_of(level), *apart]))
            axis.set_ylim(bottom=max(0.4, axis.get_ylim()[0]))  # the first rounds are far below all else
        for axis in panels[number * tall : (number + 1) * tall].flat[len(levels) :]:
            axis.set_axis_off()
    for axis in panels[-1]:
        axis.set_xlabel("round")
    for axis in panels[:, 0]:
        axis.set_ylabel("test accuracy")
    _legend(figure, handles, 5)
    return figure


def _stretched(axis: Any, results: Results, values: np.ndarray, look: dict[str, Any]) -> Any:
    last = results.suite.grid.rounds if results.suite.grid else values.shape[1]
    x = np.linspace(last / values.shape[1], last, values.shape[1])
    return _band(axis, x, values.mean(0), sample_deviation(values, axis=0), look)


_HEADS: dict[str, dict[str, Any]] = {
    "nn": {"color": BLUE, "linestyle": "-.", "marker": "^"},
    "nn+svm": {"color": BLACK, "linestyle": "--", "marker": "s"},
    "nn+floral": {"color": ORANGE, "linestyle": ":", "marker": "o"},
    "nn+floral (B = level)": {"color": RED, "linewidth": 1.8, "marker": "o"},
    "nn+floral (B on test labels)": {"color": RED, "linestyle": ":", "marker": "d"},
    "nn+floral (B = level), 3 turns": {"color": GREEN, "linestyle": "--", "marker": "v"},
    "nn of 3 turns": {"color": GREY, "linestyle": "-.", "marker": "x"},
}
_BEGIN = 0.05  # share of the epochs that is left out: the first ones are far below all else


def epochs(results: Results) -> Figure:
    """A network after every epoch, heads where they were fitted; a row per attack."""
    attacks, levels = _only(results, "attack"), _only(results, "level")
    figure = Figure(figsize=(7.2, 0.5 + 1.6 * len(attacks)), layout="constrained")
    if not any(results.cells.values()):
        return figure
    panels = figure.subplots(len(attacks), len(levels), squeeze=False, sharex=True)
    handles: Handles = {}
    for row, attack in enumerate(attacks):
        for column, level in enumerate(levels):
            axis = panels[row, column]
            if level == 0 and row:
                axis.set_axis_off()  # clean labels are the same for every attack
                continue
            for place in results.cells:
                if (place.attack, place.level) == (attack, level) and place.method.title in list(_HEADS)[:4]:
                    _epoch_curve(axis, results, place, handles)
            axis.set_title(title_of(level) + (f", {attack}" if level else ""))
            axis.tick_params(labelbottom=row == len(attacks) - 1 or level == 0)
            if row == len(attacks) - 1 or level == 0:
                axis.set_xlabel("epoch")
            if column == 0 or (levels[0] == 0 and column == 1 and row):
                axis.set_ylabel("test accuracy")
    _legend(figure, handles, 4)
    return figure


def _epoch_curve(axis: Any, results: Results, place: Place, handles: Handles) -> None:
    traces = results.traces(place, "accuracy", "last")
    if not traces:
        return
    values = np.stack(traces)
    known = results.traces(place, "epochs", "last")  # a head has its own, the network one point an epoch
    x = known[0] if known else np.arange(1, values.shape[1] + 1)
    seen = x >= np.floor(_BEGIN * x[-1])
    look = {"linewidth": 1.2, **without_marker(_HEADS[place.method.title])}
    means, spread = values.mean(0)[seen], sample_deviation(values, axis=0)[seen]
    handles[place.method.title] = _band(axis, x[seen], means, spread, look)


_TEXT_LOOKS = ((BLACK, "-"), (BLUE, "--"), (GREEN, "-."), (ORANGE, ":"), (PURPLE, "--"), (RED, "-"))
_TEXT_PANELS = {
    "minilm, fine-tuned": "MiniLM, fine-tuned",
    "floral, own encoder": "FLORAL, own encoder",
    "floral, clean encoder": "FLORAL, clean encoder",
}


def imdb(results: Results) -> Figure:
    """The transformer by epoch, FLORAL's heads by round; of the grid, the game that is highest over its last half.

    The "last" column may have picked a game that swings and happened to end high: its curve would say nothing.
    """
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    titles = [title for title in _TEXT_PANELS if any(p.method.title == title and c for p, c in results.cells.items())]
    if not titles:
        return figure
    panels = figure.subplots(2, len(titles), squeeze=False, sharey="row", sharex="col")
    for row, metric in enumerate(("accuracy", "hinge_loss")):
        for axis, title in zip(panels[row], titles, strict=True):
            places = [place for place in results.cells if place.method.title == title]
            for number, place in enumerate(places):
                traces = results.traces(place, metric, config=_steadiest(results, place))
                if traces:
                    values = np.stack(traces)
                    grid = results.suite.grid if place.method.needs_grid else None
                    last = grid.rounds if grid else values.shape[1]
                    x = np.linspace(last / values.shape[1], last, values.shape[1])
                    color, dash = _TEXT_LOOKS[number % len(_TEXT_LOOKS)]
                    label = "clean" if place.level == 0 else f"{place.level:g} %"
                    look = {"color": color, "linestyle": dash, "linewidth": 1.2, "label": label}
                    look["marker"] = "o" if len(x) < 10 else ""
                    _band(axis, x, values.mean(0), sample_deviation(values, axis=0), look, 0.1)
        panels[row, 0].set_ylabel("test " + metric.replace("_", " "))
    for axis, title in zip(panels[0], titles, strict=True):
        axis.set_title(_TEXT_PANELS[title])
    for axis, title in zip(panels[-1], titles, strict=True):
        axis.set_xlabel("epoch" if title.startswith("minilm") else "round")
    lines, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=6, title="poisoned labels")
    return figure


def _steadiest(results: Results, place: Place) -> str:
    """The configuration with the highest mean accuracy over the last half of its rounds."""
    frame = results.frame
    mine = frame[(frame.method == place.method.title) & (frame.level == place.level) & (frame.metric == "accuracy")]

    def height(config: str) -> float:
        traces = results.traces(place, "accuracy", config=config)
        return float(np.mean([trace[len(trace) // 2 :].mean() for trace in traces])) if traces else -1.0

    return max(sorted(set(mine.config)), key=height, default="")


def stability(results: Results) -> Figure:
    """The first level's ratios in both norms, mean over replications, with the printed bound; a panel per step."""
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


# Accuracy against the share of poisoned labels, or the budget

_KINDS = {
    "best": "best round\n(chosen on test labels)",
    "last": "last round\n(grid: test labels)",
    "average": "averaged model\n(grid: test labels)",
    "final": "one fit\n(nothing chosen)",
}


def security(results: Results) -> Figure:
    """A row of panels per attack and setting: best, last, and the fits that choose nothing."""
    groups, kinds = _groups(results), _kinds(results)
    figure = Figure(layout="constrained")
    if not kinds:
        return figure
    # One kind of number only: attacks stand side by side, two per row.
    columns = len(kinds) if len(kinds) > 1 else min(2, len(groups))
    n_rows = -(-len(groups) * len(kinds) // columns)
    handles: Handles = {}
    panels = figure.subplots(n_rows, columns, squeeze=False, sharey="row", sharex=True)
    places = [(group, kind) for group in groups for kind in kinds]
    for axis, (group, kind) in zip(panels.flat, places, strict=False):
        handles |= _panel(axis, results, group, kind)
        axis.set_title(_title(results, group, kind, len(kinds)))
    for axis in panels.flat[len(places) :]:
        axis.set_visible(False)
    for axis in panels[:, 0]:
        axis.set_ylabel("test accuracy")
    for axis in panels[-1]:
        axis.set_xlabel("poisoned labels (%)")
    figure.set_size_inches(7.2, 0.5 + 2.4 * n_rows + 0.17 * -(-len(handles) // 3))
    _legend(figure, handles, 3)
    return figure


def security_panels(results: Results) -> list[tuple[str, Figure]]:
    """One small figure per attack, setting and kind of number, each with its title: for pages that may be narrow."""
    out = []
    groups, kinds = _groups(results), _kinds(results)
    heights = {kind: _height(results, kind) for kind in kinds}  # attacks can be compared by eye
    for group in groups:
        for kind in kinds:
            figure = Figure(layout="constrained")
            axis = figure.subplots()
            handles = _panel(axis, results, group, kind)
            axis.set(xlabel="poisoned labels (%)", ylabel="test accuracy", ylim=heights[kind])
            figure.set_size_inches(4.2, 2.8 + 0.18 * -(-len(handles) // 2))
            _legend(figure, handles, 2)
            out.append((_title(results, group, kind, len(kinds)).replace("\n", " "), figure))
    return out


def _groups(results: Results) -> list[Group]:
    return list(dict.fromkeys((place.attack, place.setting) for place in results.cells))


def _kinds(results: Results) -> list[str]:
    return [kind for kind in _KINDS if any(key[1] == kind for key in results.chosen)]


def _height(results: Results, kind: str) -> tuple[float, float]:
    means = [values.mean() for place in results.cells if len(values := results.values(place, kind))]
    margin = 0.05 * (max(means) - min(means)) + 0.005
    return min(means) - margin, max(means) + margin


def _title(results: Results, group: Group, kind: str, n_kinds: int) -> str:
    attack, (C, gamma) = in_lines(group[0]), group[1]
    name = f"{attack} attack" if n_kinds == 1 else f"{attack}:\n{_KINDS[kind]}"
    return name if len(results.suite.settings) < 2 else f"{name}\nC={C:g}, γ={gamma:g}"


def _panel(axis: Any, results: Results, group: Group, kind: str) -> Handles:
    """Draw the lines of one attack and kind; returns them by method."""
    handles: Handles = {}
    for order, method in enumerate(results.suite.methods):
        places = [p for p in results.cells if (p.attack, p.setting) == group and p.method == method]
        x, found = _by_level(results, places, kind)
        if not found:
            continue
        mean = np.array([values.mean() for values in found])
        look = line_style(method.title, order)
        if len(results.suite.methods) <= FEW:  # bands of more methods cover each other
            spread = np.array([sample_deviation(values) for values in found])
            handles[method.title] = _band(axis, x, mean, spread, look, 0.1)
        else:
            (handles[method.title],) = axis.plot(x, mean, **look)
    axis.set_xticks(list(results.suite.levels), [f"{level:g}" for level in results.suite.levels])
    return handles


def heads(results: Results) -> Figure:
    """A trained network, heads on its features and turns: means at the end of training; a panel an attack."""
    attacks = _only(results, "attack")
    figure = Figure(figsize=(7.2, 3.0), layout="constrained")
    if not any(results.cells.values()):
        return figure
    panels = figure.subplots(1, len(attacks), squeeze=False, sharey=True)[0]
    handles: Handles = {}
    for axis, attack in zip(panels, attacks, strict=True):
        for order, (title, look) in enumerate(_HEADS.items()):
            places = [p for p in results.cells if p.attack == attack and p.method.title == title]
            levels, found = _by_level(results, places, "last")
            if found:
                # side by side, so that bars do not hide each other
                x = np.array(levels) + 0.25 * (order - len(_HEADS) / 2)
                mean, bars = ([f(values) for values in found] for f in (np.mean, sample_deviation))
                handles[title] = axis.errorbar(x, mean, bars, **{"linewidth": 1.1, "elinewidth": 0.6, **look})
        axis.set_title(attack)
        axis.set_xlabel("poisoned labels (%)")
    panels[0].set_ylabel("test accuracy")
    _legend(figure, handles, 4)
    return figure


_TEXT_HEADS: dict[str, dict[str, Any]] = {
    "minilm": {"color": BLUE, "marker": "^", "linewidth": 1.8},
    "floral-fixed": {"color": RED, "marker": "s", "linestyle": "--", "linewidth": 1.6},
    "floral-default": {"color": RED, "marker": "x", "linestyle": "-.", "linewidth": 1.6},
}


def imdb_heads(results: Results) -> Figure:
    """Last round (configuration chosen on test labels, as in the paper), and single fits; a panel an encoder."""
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    if not any(results.cells.values()):
        return figure
    encoders = ("own", "clean")
    panels = figure.subplots(1, len(encoders), sharey=True)
    handles: Handles = {}
    for axis, encoder in zip(panels, encoders, strict=True):
        for order, method in enumerate(results.suite.methods):
            suffix = f", {encoder} encoder"
            if method.title.endswith(" encoder") and not method.title.endswith(suffix):
                continue
            name = method.title.removesuffix(suffix)
            look = _TEXT_HEADS.get(method.name) or line_style(name, order)
            for kind in ("last", "final"):
                x, found = _by_level(results, [p for p in results.cells if p.method == method], kind)
                if found:  # no bands: a dozen of them would hide each other; the table has the deviations
                    (handles[name],) = axis.plot(x, [float(np.mean(values)) for values in found], **look)
        axis.set_title(f"{encoder} encoder")
        axis.set_xlabel("poisoned labels (%)")
    panels[0].set_ylabel("test accuracy")
    _legend(figure, handles, 4)
    return figure


_BUDGET_LOOKS = ((BLUE, "o", "-"), (GREEN, "s", "--"), (ORANGE, "^", "-."), (RED, "D", ":"), (BLACK, "v", "-"))


def sensitivity(results: Results) -> Figure:
    """For each B the step and decay with the highest mean, as the paper chooses; B = 0 is the plain SVM."""
    figure = Figure(figsize=(7.2, 2.7), layout="constrained")
    places = floral_places(results)
    if not places:
        return figure
    titles = {"best": "best round", "last": "last round", "average": "averaged model"}
    panels, budgets = figure.subplots(1, len(titles), sharey=True), per_budget(results)
    for number, place in enumerate(places):
        rows = budgets[budgets.level == place.level]
        color, marker, dash = _BUDGET_LOOKS[number % len(_BUDGET_LOOKS)]
        label = "clean" if place.level == 0 else f"{place.level:g} %"
        for axis, statistic in zip(panels, titles, strict=True):
            mean, deviation, x = rows[statistic], rows[f"{statistic} ±"], range(len(rows))
            axis.errorbar(x, mean, deviation, color=color, marker=marker, linestyle=dash, capsize=2, label=label)
            axis.set_xticks(x, [str(B) for B in rows.B])
    for axis, title in zip(panels, titles.values(), strict=True):
        axis.set_title(title)
        axis.set_xlabel("attacker's budget B")
    panels[0].set_ylabel("test accuracy")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, title="poisoned labels")
    return figure


def overlap(results: Results) -> Figure:
    """Rows that FLORAL and a network both count among their most influential quarter, a bar a level; chance is 25 %."""
    figure = Figure(figsize=(6.0, 2.4), layout="constrained")
    methods = [m for m in results.suite.methods if any(p.method == m and c for p, c in results.cells.items())]
    if not methods:
        return figure
    panels = figure.subplots(1, len(methods), squeeze=False, sharey=True)[0]
    for axis, method in zip(panels, methods, strict=True):
        levels, found = _by_level(results, [p for p in results.cells if p.method == method], "final", "overlap")
        names = ["clean" if level == 0 else f"{level:g} %" for level in levels]
        heights, whiskers = ([100 * f(values) for values in found] for f in (np.mean, sample_deviation))
        axis.bar(names, heights, yerr=whiskers, color=BLUE, capsize=2, width=0.6)
        axis.axhline(25, color=GREY, linestyle=":", linewidth=1)
        axis.set_title(method.title)
        axis.set_xlabel("poisoned labels")
    panels[0].set_ylabel("shared rows (%)")
    return figure
