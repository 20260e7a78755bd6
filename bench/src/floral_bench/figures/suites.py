"""The pictures of suites: each function reads `Results` and says what the drawing functions are to draw."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from floral_bench.cell_data import load
from floral_bench.families.single_fits import map_grid
from floral_bench.figures.drawing import Curve, Panel, Points, columns, lines, plane
from floral_bench.figures.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, line_style, title_of
from floral_bench.metrics import sample_deviation
from floral_bench.reporting.details import WINDOW, floral_places, nearest_config, per_budget, recovery_over_rounds
from floral_bench.reporting.results import Place, Results, attack_title
from floral_bench.spec import Attack, Method, attack_cell

Group = tuple[str, tuple[float, float]]  # attack, (C, gamma)
FEW = 6  # methods whose bands can be told apart
HEADS = (
    "nn", "nn+svm", "nn+floral", "nn+floral (B = level)", "nn+floral (B on test labels)",
    "nn+floral (B = level), 3 turns", "nn of 3 turns",
)  # fmt: skip
_LEVEL_LOOKS = ((BLUE, "o", "-"), (GREEN, "s", "--"), (ORANGE, "^", "-."), (RED, "D", ":"), (BLACK, "v", "-"))
_KINDS = {
    "best": "best round\n(chosen on test labels)",
    "last": "last round\n(grid: test labels)",
    "average": "averaged model\n(grid: test labels)",
    "final": "one fit\n(nothing chosen)",
}
POISONED = "poisoned labels (%)"


def _dense(name: str, number: int = 0, **changes: Any) -> dict[str, Any]:
    """The look of a curve of many points."""
    return {**line_style(name, number), "marker": "", **changes}


def _named(level: float) -> str:
    return "clean" if level == 0 else f"{level:g} %"


def _only(results: Results, part: str) -> list[Any]:
    return list(dict.fromkeys(getattr(place, part) for place in results.cells))


def _groups(results: Results) -> list[Group]:
    return list(dict.fromkeys((place.attack, place.setting) for place in results.cells))


def _in_lines(attack: str) -> str:
    return attack.replace(" (", "\n(")


def _by_level(results: Results, places: Iterable[Place], kind: str, metric: str = "accuracy") -> Any:
    """Levels of `places` that have numbers, their means and their deviations."""
    found = [(place.level, results.values(place, kind, metric)) for place in places]
    found = [(level, values) for level, values in found if len(values)]
    return (
        np.array([level for level, _ in found]),
        np.array([values.mean() for _, values in found]),
        np.array([sample_deviation(values) for _, values in found]),
    )


def _course(name: str, traces: list[np.ndarray], last: int | None, look: dict[str, Any]) -> Curve:
    """Means over replications; epochs of networks are stretched to the rounds of games."""
    values = np.stack(traces)
    last = values.shape[1] if last is None else last
    x = np.linspace(last / values.shape[1], last, values.shape[1])
    return Curve(name, x, values.mean(0), look, sample_deviation(values, axis=0))


def rounds(results: Results) -> Figure:
    """Curves of the configuration behind the "last" column; epochs of networks are stretched to the same length."""
    groups, levels, grid = _groups(results), _only(results, "level"), results.suite.grid
    wide = len(levels) if len(levels) <= 4 else 3
    several = [len({values[part] for values in groups}) > 1 for part in (0, 1)]
    rows: list[list[Panel | None]] = []
    for group in groups:
        attack, (C, gamma) = group
        names = [_in_lines(attack), f"C={C:g}, γ={gamma:g}"]
        apart = [text for text, differs in zip(names, several, strict=True) if differs]
        panels: list[Panel | None] = []
        for level in levels:
            curves = []
            places = [p for p in results.cells if (p.attack, p.setting) == group and p.level == level]
            for order, place in enumerate(places):
                traces = results.traces(place, "accuracy", "last")
                if traces and place.method.name != "largest-loss":
                    look = _dense(place.method.title, order)
                    curves.append(_course(place.method.title, traces, grid.rounds if grid else None, look))
            panels.append(Panel("\n".join([title_of(level), *apart]), curves, floor=0.4))
        panels += [None] * (-len(panels) % wide)
        rows += [panels[start : start + wide] for start in range(0, len(panels), wide)]
    size = (7.2, 0.5 + 2.0 * len(rows))
    return lines(rows, size, columns=5, xlabel="round", ylabel="test accuracy", sharex=True)


def imdb(results: Results) -> Figure:
    """The transformer by epoch, FLORAL's heads by round; of the grid, the game that is highest over its last half.

    The "last" column may have picked a game that swings and happened to end high: its curve would say nothing.
    """
    shown = {
        "minilm, fine-tuned": "MiniLM, fine-tuned",
        "floral, own encoder": "FLORAL, own encoder",
        "floral, clean encoder": "FLORAL, clean encoder",
    }
    looks = ((BLACK, "-"), (BLUE, "--"), (GREEN, "-."), (ORANGE, ":"), (PURPLE, "--"), (RED, "-"))
    titles = [title for title in shown if any(p.method.title == title and c for p, c in results.cells.items())]
    rows = []
    for metric in ("accuracy", "hinge_loss"):
        row = []
        for title in titles:
            curves = []
            for number, place in enumerate(p for p in results.cells if p.method.title == title):
                if traces := results.traces(place, metric, config=_steadiest(results, place)):
                    grid = results.suite.grid if place.method.needs_grid else None
                    color, dash = looks[number % len(looks)]
                    look = {"color": color, "linestyle": dash, "linewidth": 1.2}
                    look["marker"] = "o" if len(traces[0]) < 10 else ""
                    curves.append(_course(_named(place.level), traces, grid.rounds if grid else None, look))
            axes = {"ylabel": "test " + metric.replace("_", " ")} if title == titles[0] else {}
            if metric == "hinge_loss":
                axes["xlabel"] = "epoch" if title.startswith("minilm") else "round"
            row.append(Panel(shown[title] if metric == "accuracy" else "", curves, axes))
        rows.append(row)
    return lines(rows, (7.2, 4.4), columns=6, heading="poisoned labels", sharey="row", sharex="col")


def _steadiest(results: Results, place: Place) -> str:
    """The configuration with the highest mean accuracy over the last half of its rounds."""
    frame = results.frame
    mine = frame[(frame.method == place.method.title) & (frame.level == place.level) & (frame.metric == "accuracy")]

    def height(config: str) -> float:
        traces = results.traces(place, "accuracy", config=config)
        return float(np.mean([trace[len(trace) // 2 :].mean() for trace in traces])) if traces else -1.0

    return max(sorted(set(mine.config)), key=height, default="")


def security(results: Results) -> Figure:
    """A row of panels per attack and setting: best, last, and the fits that choose nothing."""
    kinds = [kind for kind in _KINDS if any(key[1] == kind for key in results.chosen)]
    panels: list[Panel | None] = [_security(results, group, kind) for group in _groups(results) for kind in kinds]
    if not kinds:
        return Figure()
    # One kind of number only: attacks stand side by side, two per row.
    wide = len(kinds) if len(kinds) > 1 else min(2, len(panels))
    panels += [None] * (-len(panels) % wide)
    rows = [panels[start : start + wide] for start in range(0, len(panels), wide)]
    names = {curve.name for panel in panels if panel for curve in panel.curves}
    size = (7.2, 0.5 + 2.4 * len(rows) + 0.17 * -(-len(names) // 3))
    return lines(rows, size, columns=3, xlabel=POISONED, ylabel="test accuracy", sharey="row", sharex=True)


def security_panels(results: Results) -> list[tuple[str, Any]]:
    """A title and how to draw it, per attack, setting and kind of number: small pictures, for pages that are narrow."""
    out = []
    for kind in (kind for kind in _KINDS if any(key[1] == kind for key in results.chosen)):
        panels = [_security(results, group, kind) for group in _groups(results)]
        means = np.concatenate([curve.mean for panel in panels for curve in panel.curves])
        margin = 0.05 * (means.max() - means.min()) + 0.005
        limits = {"ylim": (means.min() - margin, means.max() + margin)}  # attacks can be compared by eye
        for panel in panels:
            size = (4.2, 2.8 + 0.18 * -(-len(panel.curves) // 2))
            bare = Panel("", panel.curves, panel.axes | limits)
            make = partial(lines, [[bare]], size, columns=2, xlabel=POISONED, ylabel="test accuracy")
            out.append((panel.title.replace("\n", " "), make))
    groups = len(_groups(results))
    return [entry for start in range(groups) for entry in out[start::groups]]


def _security(results: Results, group: Group, kind: str) -> Panel:
    attack, (C, gamma), suite = _in_lines(group[0]), group[1], results.suite
    alone = len({key[1] for key in results.chosen if key[1] in _KINDS}) == 1
    title = f"{attack} attack" if alone else f"{attack}:\n{_KINDS[kind]}"
    title = title if len(suite.settings) < 2 else f"{title}\nC={C:g}, γ={gamma:g}"
    few, curves = len(suite.methods) <= FEW, []  # bands of more methods cover each other
    for order, method in enumerate(suite.methods):
        places = [p for p in results.cells if (p.attack, p.setting) == group and p.method == method]
        x, mean, spread = _by_level(results, places, kind)
        if len(x):
            curves.append(Curve(method.title, x, mean, line_style(method.title, order), spread if few else None))
    ticks = {"xticks": list(suite.levels), "xticklabels": [f"{level:g}" for level in suite.levels]}
    return Panel(title, curves, ticks)


def heads(results: Results) -> Figure:
    """A trained network, heads on its features and turns: means at the end of training; a panel an attack."""
    panels = []
    for attack in _only(results, "attack"):
        curves = []
        for order, title in enumerate(HEADS):
            places = [p for p in results.cells if p.attack == attack and p.method.title == title]
            x, mean, spread = _by_level(results, places, "last")
            if len(x):  # side by side, so that bars do not hide each other
                curves.append(Curve(title, x + 0.25 * (order - len(HEADS) / 2), mean, line_style(title), spread))
        panels.append(Panel(attack, curves))
    return lines([panels], (7.2, 3.0), xlabel=POISONED, ylabel="test accuracy", bars=True, sharey=True)


def imdb_heads(results: Results) -> Figure:
    """Last round (configuration chosen on test labels, as in the paper), and single fits; a panel an encoder."""
    panels = []
    for encoder in ("own", "clean"):
        curves = []
        for order, method in enumerate(results.suite.methods):
            name = method.title.removesuffix(f", {encoder} encoder")
            if name.endswith(" encoder"):
                continue
            for kind in ("last", "final"):
                x, mean, _ = _by_level(results, [p for p in results.cells if p.method == method], kind)
                if len(x):  # no bands: a dozen of them would hide each other; the table has the deviations
                    curves.append(Curve(name, x, mean, line_style(name, order)))
        panels.append(Panel(f"{encoder} encoder", curves))
    return lines([panels], (7.2, 3.6), xlabel=POISONED, ylabel="test accuracy", sharey=True)


def sensitivity(results: Results) -> Figure:
    """For each B the step and decay with the highest mean, as the paper chooses; B = 0 is the plain SVM."""
    budgets, panels = per_budget(results), []
    for statistic, title in (("best", "best round"), ("last", "last round"), ("average", "averaged model")):
        curves, ticks = [], {}
        for number, place in enumerate(floral_places(results)):
            rows = budgets[budgets.level == place.level]
            look = dict(zip(("color", "marker", "linestyle"), _LEVEL_LOOKS[number % len(_LEVEL_LOOKS)], strict=True))
            x = np.arange(len(rows))
            curves.append(Curve(_named(place.level), x, rows[statistic], look, rows[f"{statistic} ±"]))
            ticks = {"xticks": x, "xticklabels": [str(B) for B in rows.B]}
        panels.append(Panel(title, curves, ticks))
    words: dict[str, Any] = {"heading": "poisoned labels", "xlabel": "attacker's budget B", "ylabel": "test accuracy"}
    return lines([panels], (7.2, 2.7), columns=5, bars=True, sharey=True, **words)


def overlap(results: Results) -> Figure:
    """Rows that FLORAL and a network both count among their most influential quarter, a bar a level; chance is 25 %."""
    panels = []
    for method in _finished(results):
        places = [p for p in results.cells if p.method == method]
        levels, mean, spread = _by_level(results, places, "final", "overlap")
        panels.append(Curve(method.title, [_named(level) for level in levels], 100 * mean, {}, 100 * spread))
    return columns(panels, (6.0, 2.4), "poisoned labels", "shared rows (%)", 25)


def _finished(results: Results) -> list[Method]:
    return [m for m in results.suite.methods if any(p.method == m and cells for p, cells in results.cells.items())]


def _labels(results: Results, attack: Attack | None, level: float) -> np.ndarray | None:
    """The training labels of the first replication after an attack; None where it has not run."""
    data, seed = results.suite.data[0], results.suite.seeds[0]
    if attack is None:
        return load(data).y_train_clean
    return results.store.trace(attack_cell(data, attack, level, seed), "labels")


def datasets(results: Results) -> Figure:
    """Training sets of the first replication before and after each attack; flipped labels are ringed."""
    suite = results.suite
    data, rows = load(suite.data[0]), []
    if data.X_train.shape[1] != 2:
        return Figure()
    for attack in suite.attacks:
        row: list[Points | None] = []
        for level in suite.levels:
            labels = _labels(results, suite.attack_at(attack, level, suite.settings[0]), level)
            title = title_of(level) + (f", {attack_title(attack)}" if level else "")
            points = None if labels is None else Points(title, data.X_train, labels, labels != data.y_train_clean)
            row.append(points)
        rows.append(row)
    return plane(rows, (7.2, 0.4 + 1.9 * len(suite.attacks)))


def boundaries(results: Results) -> Figure:
    """Filled by sign and size of f; the boundary is the black line, flipped training labels are ringed."""
    suite, methods = results.suite, _finished(results)
    if not methods:
        return Figure()
    data = load(suite.data[0])
    panels: dict[Method, list[Points | None]] = {method: [None] * len(suite.levels) for method in methods}
    for place, cells in results.cells.items():
        if not cells:
            continue
        column = suite.levels.index(place.level)
        stored = _labels(results, suite.attack_at(suite.attacks[0], place.level, place.setting), place.level)
        labels = data.y_train_clean if stored is None else stored
        values = results.traces(place, "map", config="")
        statistic = "final" if (place, "final") in results.chosen else "last"
        panels[place.method][column] = Points(
            title_of(place.level) if place.method == methods[0] else "",
            data.X_train,
            labels,
            labels != data.y_train_clean,
            field=(*map_grid(data), values[0]) if values else None,
            note=f"{results.values(place, statistic)[0]:.3f}",
            side=place.method.title.replace(" (", "\n(") if column == 0 else "",
            size=1.6,
        )
    return plane(list(panels.values()), (1.35 * len(suite.levels) + 0.6, 1.25 * len(methods) + 0.4))


def recovery(results: Results) -> Figure:
    """Poisoned labels that are flipped back: average rate for every k, over the rounds, and point by point."""
    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    places = [place for place in floral_places(results) if place.level > 0]
    if not places:
        return figure
    data, budgets = load(results.suite.data[0]), per_budget(results)
    average, over_rounds, points, ticks = [], [], [], {}
    for number, place in enumerate(places):
        color, _, dash = _LEVEL_LOOKS[number % len(_LEVEL_LOOKS)]
        name, look = f"{place.level:g} %", {"color": color, "linestyle": dash}
        rows = budgets[(budgets.level == place.level) & budgets.recovery.notna()]
        ticks = {"xticks": range(len(rows)), "xticklabels": [str(k) for k in rows.k]}
        average.append(Curve(name, range(len(rows)), rows.recovery, look | {"marker": "o"}, rows["recovery ±"]))
        config = nearest_config(results, place, place.level / 100 * len(data.y_train))
        over_rounds.append(Curve(name, *recovery_over_rounds(results, place, config), look))
        labels: Any = _labels(results, results.cells[place][0].attack, place.level)
        rate, poisoned = results.traces(place, "flip_rate", config=config)[0], labels != data.y_train_clean
        title = f"{place.level:g} %: mean rate {rate[poisoned].mean():.2f}"
        points.append(Points(title, data.X_train, data.y_train_clean, poisoned, rate))
    halves: Any = figure.subfigures(2, 1)
    top, bottom = halves
    share = "share of poisoned labels\nflipped back, mean of a round"
    first = Panel("", average, ticks | {"xlabel": "flips per round, k (budget B = 2k)", "ylabel": share})
    over = {"xlabel": f"round (mean of {WINDOW})"}
    second = Panel("B nearest to the number of poisoned labels", over_rounds, over)
    lines([[first, second]], (0, 0), columns=5, heading="poisoned labels", bars=True, figure=top)
    plane([points], (0, 0), figure=bottom)
    return figure
