"""The arena's score card: every method on every cell, held against SVC and against the oracle.

A cell is a data set, an attack and a level; its value is the mean test accuracy over the splits. The oracle is FLORAL
with the budget (and C) of the path that is best on the test labels of that cell: it peeks, and nobody can call it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from floral_learn.datasets.arena import DEVELOPMENT
from floral_learn.evaluation.arena_methods import AUTO, PATH, SVC_DEFAULT
from floral_learn.evaluation.reporting.results import attack_title
from floral_learn.evaluation.spec import Suite
from floral_learn.evaluation.store import Store

if TYPE_CHECKING:
    import pandas as pd

ORACLE = "oracle (peeks)"
BASE = SVC_DEFAULT.title
GROUPS = ("development", "held out")
CELL = ["group", "data", "attack", "level"]
_SHOWN = {"C=10 B=0": "SVM of the game, C = 10", "C=10 B=0.02": "FLORAL 2 %, C = 10", "C=1 B=0.1": "FLORAL 10 %, C = 1"}


def arena_frame(suites: Sequence[Suite], store: Store) -> pd.DataFrame:
    """One row a fit: group, data, attack, level, split, method, accuracy, balanced accuracy, seconds; finished only."""
    import pandas as pd

    cells = {cell.key: (suite, cell) for suite in suites for cell in suite.cells() if cell.method.name != "attack"}
    costs = store.costs(cells)
    values: dict[tuple[str, str], dict[str, float]] = {}
    for key, config, _, metric, value in store.all_rows(set(cells)):
        values.setdefault((key, config), {})[metric] = value
    rows = []
    for (key, config), found in values.items():
        suite, cell = cells[key]
        name = suite.data[0].name.removeprefix("arena-")
        rows.append(
            {
                "group": GROUPS[0] if name in DEVELOPMENT else GROUPS[1],
                "data": name,
                "attack": "clean" if cell.attack is None else attack_title(cell.attack),
                "level": cell.level,
                "split": cell.seed,
                "method": config if cell.method.name == PATH.name else cell.method.title,
                "path": cell.method.name == PATH.name,
                "accuracy": found["accuracy"],
                "balanced_accuracy": found["balanced_accuracy"],
                "seconds": costs[key][0],
            }
        )
    return pd.DataFrame(rows)


def cell_means(frame: pd.DataFrame, metric: str = "accuracy") -> pd.DataFrame:
    """Mean over splits, (cells, methods), with the oracle; only splits and cells that every method has finished."""
    wide = frame.pivot_table(index=[*CELL, "split"], columns="method", values=metric).dropna()
    means = wide.groupby(level=CELL).mean()
    path = [name for name in means.columns if name in set(frame.loc[frame["path"], "method"])]
    if path:
        # The best on average over the splits: one choice a cell, as a user who could peek would make it.
        means[ORACLE] = means[path].max(axis=1)
    return means


def score_card(frame: pd.DataFrame) -> pd.DataFrame:
    """A row a group and method: the numbers of the card.

    ``mean``, ``clean`` and ``poisoned`` are means over cells; ``deviation`` is that of ``mean`` over the splits;
    ``worst`` and ``worst_clean`` the lowest difference to SVC in a cell; ``clean_loss`` the mean one on clean labels;
    ``gap_closed`` the share of the way from SVC to the oracle, on the mean of the poisoned cells; ``seconds`` a fit.
    """
    import pandas as pd

    means = cell_means(frame)
    per_split = frame.pivot_table(index=[*CELL, "split"], columns="method", values="accuracy").dropna()
    seconds = frame.groupby("method")["seconds"].median()
    rows = []
    for group in (*GROUPS, "all"):
        part = means if group == "all" else means[means.index.get_level_values("group") == group]
        if not len(part):
            continue
        splits = per_split if group == "all" else per_split[per_split.index.get_level_values("group") == group]
        by_split = splits.groupby(level="split").mean()
        deviation = by_split.std(ddof=0) if len(by_split) > 1 else by_split.iloc[0] * float("nan")
        level = part.index.get_level_values("level")
        poisoned, clean = part[level > 0], part[level == 0]
        over = poisoned.mean() - poisoned[BASE].mean()
        for name in part.columns:
            rows.append(
                {
                    "group": group,
                    "method": name,
                    "mean": part[name].mean(),
                    "deviation": deviation.get(name, float("nan")),
                    "clean": clean[name].mean(),
                    "poisoned": poisoned[name].mean(),
                    "worst": (poisoned[name] - poisoned[BASE]).min(),
                    "clean_loss": (clean[BASE] - clean[name]).mean(),
                    "worst_clean": (clean[name] - clean[BASE]).min(),
                    "gap_closed": over[name] / over[ORACLE] if ORACLE in over and over[ORACLE] > 0 else float("nan"),
                    "seconds": seconds.get(name, float("nan")),
                    "cells": len(part),
                }
            )
    return pd.DataFrame(rows)


def shown_methods(card: pd.DataFrame) -> list[str]:
    """What the tables list: every method, of the path only a few named settings, best mean first, the oracle last."""
    order = card[card.group == card.group.iloc[-1]].sort_values("mean", ascending=False)["method"]
    return [name for name in order if name != ORACLE and (" B=" not in name or name in _SHOWN)] + [
        name for name in order if name == ORACLE
    ]


def title(method: str) -> str:
    """How people read a method's name."""
    return _SHOWN.get(method, method)


def to_markdown(card: pd.DataFrame) -> str:
    """A table a group."""
    names = ("method", "mean", "± splits", "clean", "poisoned", "worst drop", "clean loss", "gap closed", "seconds")
    out = []
    for group in dict.fromkeys(card.group):
        part = card[card.group == group].set_index("method")
        out += [f"**{group}** ({int(part['cells'].iloc[0])} cells)", ""]
        out += ["| " + " | ".join(names) + " |", "|---|" + "---:|" * (len(names) - 1)]
        for name in shown_methods(card):
            row = part.loc[name]
            bold = "**" if name == AUTO.title else ""
            out.append(
                f"| {bold}{title(name)}{bold} | {row['mean']:.4f} | {_number(row['deviation'], '.4f')} | "
                f"{row['clean']:.4f} | {row['poisoned']:.4f} | {row['worst']:+.3f} | {row['clean_loss']:+.4f} | "
                f"{_number(row['gap_closed'], '.0%')} | {_number(row['seconds'], '.2f')} |"
            )
        out.append("")
    return "\n".join(out)


def _number(value: float, form: str) -> str:
    return "" if value != value else f"{value:{form}}"
