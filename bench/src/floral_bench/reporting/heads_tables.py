"""A network and its heads: one row per attack and level with a column per method, and what turns change.

The tables of `reporting.tables` have a row per method; here methods of the same network stand side by side, and
differences are taken split by split, since all of them share first weights and batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from floral_bench.metrics import sample_deviation
from floral_bench.reporting.comparable import best_of, comparable
from floral_bench.reporting.results import Results

if TYPE_CHECKING:
    import pandas as pd

HEAD, NETWORK = "nn+floral (B = level)", "nn"
PAIRS = (
    ("head after 1 turn - head", "nn+floral (B = level), 1 turn", HEAD),
    ("head after 3 turns - head", "nn+floral (B = level), 3 turns", HEAD),
    ("network after 3 turns - network", "nn of 3 turns", NETWORK),
    ("head - network", HEAD, NETWORK),
    ("SVM head - network", "nn+svm", NETWORK),
)


def accuracies(results: Results) -> pd.DataFrame:
    """Accuracy after training: rows (attack, level, seed), a column per method; clean labels have one attack."""
    frame = results.frame[results.frame.metric == "accuracy"]
    titles = [method.title for method in results.suite.methods]
    chosen = {
        (place.attack, place.level, place.method.title): config
        for (place, statistic), config in results.chosen.items()
        if statistic in ("last", "final")
    }
    kept = [
        row.statistic in ("last", "final") and chosen.get((row.attack, row.level, row.method)) == row.config
        for row in frame.itertuples()
    ]
    frame = frame[kept].copy()
    frame.loc[frame.level == 0, "attack"] = "none"
    frame = frame.drop_duplicates(["attack", "level", "seed", "method"])
    wide = frame.pivot_table(index=["attack", "level", "seed"], columns="method", values="value", sort=False)
    return wide[[title for title in titles if title in wide.columns]]


def by_method(results: Results) -> str:
    """Means over the splits as Markdown, in each row the best of comparable columns in bold.

    The last epoch of a network and a single fit are both the model that training ends with, so they are compared.
    """
    means = accuracies(results).groupby(["attack", "level"], sort=False).mean()
    groups = {method.title: comparable(results.suite, method, "last") for method in results.suite.methods}
    lines = ["| attack | poisoned | " + " | ".join(means.columns) + " |", "|---|---|" + "---:|" * len(means.columns)]
    for (attack, level), row in means.iterrows():
        rounded = row.round(3)
        best = best_of(rounded.to_dict(), groups)
        cells = [f"**{value:.3f}**" if name in best else f"{value:.3f}" for name, value in rounded.items()]
        lines.append(f"| {attack} | {level:g} % | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def turns(results: Results) -> str:
    """Differences on the same splits, mean and sample deviation, and their mean over all rows, as Markdown."""
    wide = accuracies(results)
    pairs = [(title, a, b) for title, a, b in PAIRS if {a, b} <= set(wide.columns)]
    header = "| attack | poisoned | " + " | ".join(title for title, *_ in pairs) + " |"
    lines = [header, "|---|---|" + "---:|" * len(pairs)]
    totals: dict[str, list[float]] = {title: [] for title, *_ in pairs}
    for (attack, level), part in wide.groupby(["attack", "level"], sort=False):
        if level < 10:
            continue
        cells = []
        for title, a, b in pairs:
            apart = (part[a] - part[b]).to_numpy()
            totals[title].append(float(apart.mean()))
            cells.append(f"{apart.mean():+.3f} ± {sample_deviation(apart):.3f}")
        lines.append(f"| {attack} | {level:g} % | " + " | ".join(cells) + " |")
    means = " | ".join(f"**{np.mean(values):+.3f}**" for values in totals.values() if values)
    return "\n".join([*lines, f"| mean | | {means} |"]) + "\n"
