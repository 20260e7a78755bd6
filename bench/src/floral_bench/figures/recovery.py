"""Poisoned labels that the attacker inside the game flips back: per round, on average, and point by point."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from floral_bench.cell_data import load
from floral_bench.figures import budget_of_level
from floral_bench.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, RED
from floral_bench.reporting.details import WINDOW, floral_places, per_budget, recovery_over_rounds
from floral_bench.reporting.results import Place, Results

_LOOKS = ((BLUE, "-"), (GREEN, "--"), (RED, "-."), (ORANGE, ":"), (BLACK, "-"))


def draw(results: Results) -> Figure:
    """Average rate for every k, traces over the rounds, and which points are recovered."""
    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    places = [place for place in floral_places(results) if place.level > 0]
    if not places:
        return figure
    pair: Any = figure.subfigures(2, 1)
    top, bottom = pair
    average, over_rounds = top.subplots(1, 2)
    budgets = per_budget(results)
    for number, place in enumerate(places):
        color, dash = _LOOKS[number % len(_LOOKS)]
        rows = budgets[(budgets.level == place.level) & budgets.recovery.notna()]
        flips = rows.k.tolist()
        spread = rows["recovery ±"]
        average.errorbar(range(len(flips)), rows.recovery, spread, color=color, linestyle=dash, marker="o", capsize=2)
        average.set_xticks(range(len(flips)), [str(k) for k in flips])
        rounds, shares = recovery_over_rounds(results, place, budget_of_level(results, place))
        over_rounds.plot(rounds, shares, color=color, linestyle=dash, label=f"{place.level:g} %")
    average.set_xlabel("flips per round, k (budget B = 2k)")
    average.set_ylabel("share of poisoned labels\nflipped back, mean of a round")
    over_rounds.set_xlabel(f"round (mean of {WINDOW})")
    over_rounds.set_title("B nearest to the number of poisoned labels")
    over_rounds.legend(title="poisoned labels")
    panels = bottom.subplots(1, len(places), squeeze=False, sharey=True)[0]
    dots = None
    for axis, place in zip(panels, places, strict=True):
        dots = _points(axis, results, place)
    if dots is not None:
        bottom.colorbar(dots, ax=list(panels), label="share of rounds\nflipped back", shrink=0.9)
    return figure


def _points(axis: Any, results: Results, place: Place) -> Any:
    dataset = load(results.suite.data[0])
    rates = results.traces(place, "flip_rate", config=budget_of_level(results, place))
    rate = rates[0]
    labels = results.store.trace(_attack_cell(results, place), "labels")
    poisoned = labels != dataset.y_train_clean
    X = dataset.X_train
    axis.scatter(X[~poisoned, 0], X[~poisoned, 1], s=3, c=GREY, linewidths=0, alpha=0.5)
    dots = axis.scatter(
        X[poisoned, 0], X[poisoned, 1], s=16, c=rate[poisoned], cmap="viridis", vmin=0, vmax=0.6, edgecolors=BLACK,
        linewidths=0.3,
    )  # fmt: skip
    axis.set_title(f"{place.level:g} %: mean rate {rate[poisoned].mean():.2f}")
    axis.grid(False)
    return dots


def _attack_cell(results: Results, place: Place) -> Any:
    from floral_bench.spec import attack_cell

    cell = results.cells[place][0]
    assert cell.attack is not None
    return attack_cell(cell.data, cell.attack, cell.level, cell.seed)
