"""What a suite's main table does not say: what *last* rests on, every budget by itself, networks beside their heads.

The paper does not say how a setting was picked for *last*. Chosen on the mean over replications it is one setting per
cell, which is what our tables show; chosen in each replication it is the highest number of each; and the lowest of the
grid says how much there is to choose. The spread over the last rounds is how much of it is the round at which one
stops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from floral_bench.metrics import sample_deviation
from floral_bench.reporting.results import Place, Results
from floral_bench.reporting.tables import best_of, comparable

ROUNDS = 50  # at the end of a game, for the spread
WINDOW = 10  # rounds that a curve of recovery averages, since a round flips a few labels only
EACH, LOWEST, SPREAD = "last, best of each split", "last, lowest of the grid", f"last, spread over {ROUNDS} rounds"
SETTINGS = "last, at one setting"


def last_round(results: Results) -> pd.DataFrame:
    """FLORAL and the plain SVM in their last round: lines like those of `tables.tidy`, one per way to read it.

    The plain SVM also has a line per step and decay of its grid, those that the paper does not have included.
    """
    frame = results.frame
    frame = frame[(frame.statistic == "last") & (frame.metric == "accuracy") & frame.eta.notna()]
    lines: list[dict[str, Any]] = []
    for place, cells in results.cells.items():
        if place.method.name not in ("floral", "svm") or not cells:
            continue
        every = _at(frame, place)
        every = every[every.method == place.method.title]
        own = results.papers(every)
        if not len(own):
            continue
        means, traces = own.groupby("config")["value"].mean(), results.traces(place, "accuracy", "last")
        start = place.where | {"metric": "accuracy", "replications": len(own.seed.unique())}
        found = {EACH: float(own.groupby("seed")["value"].max().mean()), LOWEST: float(means.min())}
        if traces:
            found[SPREAD] = float(np.mean([sample_deviation(trace[-ROUNDS:]) for trace in traces]))
        lines += [start | {"statistic": name, "mean": value} for name, value in found.items()]
        if place.method.name == "svm":
            steps = every.groupby("config", sort=False)["value"].mean()
            lines += [
                start | {"statistic": SETTINGS, "mean": v, "configuration": config} for config, v in steps.items()
            ]
    return pd.DataFrame(lines)


def floral_places(results: Results) -> list[Place]:
    """FLORAL's places with finished cells, in the order of the suite."""
    return [place for place, cells in results.cells.items() if place.method.name == "floral" and cells]


def per_budget(results: Results) -> pd.DataFrame:
    """A line per level and budget B: accuracy (best, last, average) and recovery, each with its deviation.

    B = 0 is the plain SVM of the same suite, where it has one. For each B and statistic the step and decay of the
    paper's grid with the highest mean are shown. The recovery rate is the mean over rounds, steps and decays: no choice
    is made for it.
    """
    lines = []
    for place in floral_places(results):
        frame = results.papers(_at(results.frame, place))
        plain = frame[(frame.method == "svm") & (frame.metric == "accuracy")]
        if len(plain):
            lines.append({"level": place.level, "B": 0, "k": 0, **_accuracy(plain)})
        own = frame[(frame.method == place.method.title) & frame.budget.notna()]
        for budget in sorted(own.budget.unique()):
            here = own[own.budget == budget]
            line = {"level": place.level, "B": int(budget), "k": int(here.flips.iloc[0])}
            line |= _accuracy(here[here.metric == "accuracy"])
            rates = here[here.metric == "recovery_rate"].groupby("seed")["value"].mean().to_numpy()
            if len(rates):
                line |= {"recovery": float(rates.mean()), "recovery ±": float(sample_deviation(rates))}
            lines.append(line)
    return pd.DataFrame(lines)


def _accuracy(frame: pd.DataFrame) -> dict[str, float]:
    out: dict[str, float] = {}
    for statistic in ("best", "last", "average"):
        groups = frame[frame.statistic == statistic].groupby("config")["value"]
        if len(groups):
            values = groups.get_group(groups.mean().round(4).idxmax()).to_numpy()
            out |= {statistic: float(values.mean()), f"{statistic} ±": float(sample_deviation(values))}
    return out


def nearest_config(results: Results, place: Place, wanted: float) -> str:
    """The configuration whose B is nearest to `wanted`; of several, the one that is best in the last round."""
    frame = results.papers(_at(results.frame, place))
    last = frame[(frame.method == place.method.title) & (frame.statistic == "last") & (frame.metric == "accuracy")]
    distance = (last.budget.astype(float) - wanted).abs()
    return str(last[distance == distance.min()].groupby("config")["value"].mean().idxmax())


def recovery_over_rounds(results: Results, place: Place, config: str) -> tuple[np.ndarray, np.ndarray]:
    """Rounds, and the share of poisoned labels flipped back around each: mean of `WINDOW` rounds and of replications.

    The warm-up round, in which nothing is flipped, is left out. A window stands at its middle.
    """
    traces = np.stack(results.traces(place, "recovery", config=config))
    means = np.nanmean(traces[:, 1:], axis=0)
    smooth = np.convolve(means, np.ones(WINDOW) / WINDOW, mode="valid")
    return np.arange(len(smooth)) + WINDOW // 2 + 1, smooth


def heads(results: Results) -> pd.DataFrame:
    """Accuracy after training: rows (attack, level, seed), a column per method; clean labels have one attack."""
    frame = results.frame[results.frame.metric == "accuracy"]
    titles = [method.title for method in results.suite.methods]
    ends = {(p.attack, p.level, p.method.title, s, config) for (p, s), config in results.chosen.items()}
    ends = {end for end in ends if end[3] in ("last", "final")}
    found = frame[["attack", "level", "method", "statistic", "config"]].itertuples(index=False, name=None)
    frame = frame[[row in ends for row in found]].copy()
    frame.loc[frame.level == 0, "attack"] = "none"
    frame = frame.drop_duplicates(["attack", "level", "seed", "method"])
    wide = frame.pivot_table(index=["attack", "level", "seed"], columns="method", values="value", sort=False)
    return wide[[title for title in titles if title in wide.columns]]


def by_method(results: Results) -> pd.DataFrame:
    """Means over the splits, in each row the best of comparable columns in bold.

    The last epoch of a network and a single fit are both the model that training ends with, so they are compared.
    """
    means = heads(results).groupby(["attack", "level"], sort=False).mean().round(3)
    groups = {method.title: comparable(results.suite, method, "last") for method in results.suite.methods}
    long = means.stack()
    attack, level, method = (long.index.get_level_values(number) for number in range(3))
    best = best_of(long, [attack, level, method.map(groups)])
    texts = long.map("{:.3f}".format)
    return _named(
        texts.where(~best, "**" + texts + "**").unstack()[list(means)].reset_index().rename_axis(columns=None)
    )


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """Levels as people read them."""
    levels = ["" if level != level else f"{level:g}\u00a0%" for level in frame["level"]]
    return frame.assign(level=levels).rename(columns={"level": "poisoned"})


def _at(frame: pd.DataFrame, place: Place) -> pd.DataFrame:
    """The lines of all methods where `place` is."""
    for name in ("attack", "level", "C", "gamma"):
        frame = frame[frame[name] == place.where[name]]
    return frame
