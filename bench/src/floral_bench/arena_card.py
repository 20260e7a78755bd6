"""The arena's score card: every method on every cell, held against the plain model behind it on the same splits.

A cell is a data set, an attack and a level; its value is the mean over the splits, and so is a difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from floral_bench.arena_data import ARENA_FOLDS
from floral_bench.arena_methods import BASES
from floral_bench.data_kinds import arena_kind
from floral_bench.metrics import sample_deviation
from floral_bench.reporting.results import attack_title
from floral_bench.spec import Suite
from floral_bench.store import Store

if TYPE_CHECKING:
    import pandas as pd

CELL = ["fold", "data", "attack", "level"]
FAR_BELOW = 0.02
#: Data sets by the share of their rarest class in an even share: 1 is even.
PREVALENCE = {"rare class": (0.0, 0.35), "uneven": (0.35, 0.8), "even": (0.8, 1.01)}


def arena_frame(suites: Sequence[Suite], store: Store) -> pd.DataFrame:
    """One row per fit: fold, data, evenness, attack, level, split, method, scores, seconds; finished cells only."""
    import pandas as pd

    cells = {cell.key: (suite, cell) for suite in suites for cell in suite.cells() if cell.method.name != "attack"}
    costs = store.costs(cells)
    values: dict[str, dict[str, float]] = {}
    for key, _, _, metric, value in store.all_rows(set(cells)):
        values.setdefault(key, {})[metric] = value
    rows = []
    for key, found in values.items():
        suite, cell = cells[key]
        name = suite.data[0].name.removeprefix("arena-")
        rows.append(
            {
                "fold": ARENA_FOLDS[name],
                "data": name,
                "attack": "clean" if cell.attack is None else attack_title(cell.attack),
                "level": cell.level,
                "split": cell.seed,
                "method": cell.method.title,
                "accuracy": found["accuracy"],
                "balanced_accuracy": found["balanced_accuracy"],
                "seconds": costs[key][0],
            }
        )
    return pd.DataFrame(rows)


def differences(frame: pd.DataFrame, metric: str = "accuracy") -> pd.DataFrame:
    """Each method minus the plain model behind it, (cells, methods): paired by split, then averaged."""
    import pandas as pd

    wide = frame.pivot_table(index=[*CELL, "split"], columns="method", values=metric)
    paired = {name: wide[name] - wide[BASES[name]] for name in wide if BASES.get(name) in wide and BASES[name] != name}
    return pd.DataFrame(paired).groupby(level=CELL).mean()


def score_card(frame: pd.DataFrame) -> pd.DataFrame:
    """A row per group of data sets and method.

    ``clean`` and ``poisoned`` are mean accuracies over cells. Against the plain model behind: ``clean_gain`` and
    ``gain`` are mean differences on clean labels and on poisoned ones, ``worst`` the lowest of a cell, ``below`` the
    share of cells more than 0.02 under it, ``balanced_clean`` and ``balanced`` mean differences of balanced accuracy.
    ``deviation`` is that of ``gain`` over the splits; ``seconds`` a median per fit.
    """
    import pandas as pd

    accuracy = frame.pivot_table(index=CELL, columns="method", values="accuracy")
    plain, even = differences(frame), differences(frame, "balanced_accuracy")
    by_split = {split: differences(part) for split, part in frame.groupby("split")}
    seconds = frame.groupby("method")["seconds"].median()
    rows = []
    for group, names in groups(frame):
        for name in accuracy.columns:
            here = accuracy.loc[accuracy.index.get_level_values("data").isin(names), name].dropna()
            level = here.index.get_level_values("level")
            row = {
                "group": group,
                "method": name,
                "cells": len(here),
                "clean": here[level == 0].mean(),
                "poisoned": here[level > 0].mean(),
                "seconds": seconds.get(name, np.nan),
            }
            if name in plain:
                row |= _against_plain(plain[name].loc[here.index].dropna(), even[name].loc[here.index].dropna())
                gains = [_poisoned(part[name].dropna(), names).mean() for part in by_split.values() if name in part]
                row["deviation"] = float(sample_deviation(gains))
            rows.append(row)
    return pd.DataFrame(rows)


def groups(frame: pd.DataFrame) -> Iterator[tuple[str, list[str]]]:
    """All data sets, each fold, and each class of prevalence, where there is more than one."""
    names = list(dict.fromkeys(frame["data"]))
    yield "all", names
    for fold in sorted(set(frame["fold"])):
        yield f"fold {fold}", [name for name in names if ARENA_FOLDS[name] == fold]
    for title, (low, high) in PREVALENCE.items():
        found = [name for name in names if low <= arena_kind(name).evenness < high]
        if found:
            yield title, found


def _poisoned(values: pd.Series, names: list[str]) -> pd.Series:
    index = values.index
    return values[index.get_level_values("data").isin(names) & (index.get_level_values("level") > 0)]


def _against_plain(plain: pd.Series, even: pd.Series) -> dict[str, float]:
    poisoned = plain.index.get_level_values("level") > 0
    return {
        "clean_gain": plain[~poisoned].mean(),
        "gain": plain[poisoned].mean(),
        "worst": plain.min(),
        "below": (plain < -FAR_BELOW).mean(),
        "balanced_clean": even[~poisoned].mean(),
        "balanced": even[poisoned].mean(),
    }


COLUMNS = {
    "clean": ".4f", "poisoned": ".4f", "clean_gain": "+.4f", "gain": "+.4f", "deviation": ".4f", "worst": "+.3f",
    "below": ".1%", "balanced_clean": "+.4f", "balanced": "+.4f", "seconds": ".2f",
}  # fmt: skip
TITLES = {
    "clean_gain": "clean, against plain", "gain": "poisoned, against plain", "deviation": "± splits",
    "worst": "worst cell", "below": "cells > 0.02 below", "balanced_clean": "balanced, clean", "balanced": "balanced",
}  # fmt: skip


def shown(row: pd.Series) -> list[str]:
    """The numbers of a row of the card as people read them; empty where there is nothing to compare."""
    return ["" if row[name] != row[name] else f"{row[name]:{form}}" for name, form in COLUMNS.items()]


def to_markdown(card: pd.DataFrame) -> str:
    """A table per group."""
    names = ["method", *(TITLES.get(name, name) for name in COLUMNS)]
    out = []
    card = card.reindex(columns=[*card.columns, *(name for name in COLUMNS if name not in card)])
    for group in dict.fromkeys(card.group):
        part = card[card.group == group]
        out += [f"**{group}** ({int(part['cells'].max())} cells)", ""]
        out += ["| " + " | ".join(names) + " |", "|---|" + "---:|" * (len(names) - 1)]
        out += ["| " + " | ".join([row["method"], *shown(row)]) + " |" for _, row in part.iterrows()]
        out.append("")
    return "\n".join(out)
