"""The score card of the questions suite: how much of what poison took came back, and what harm was done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from floral_bench.questions.cells import MARKS, REVIEW
from floral_bench.questions.problems import SEVERAL, TABLES, UNEVEN
from floral_bench.spec import Cell
from floral_bench.store import Store
from floral_learn.attacks.deviation import sample_deviation

if TYPE_CHECKING:
    import pandas as pd

ANSWERS = tuple(mark for mark in MARKS if mark >= 10)
SMALL_GAP = 0.02  # cells in which poison took less than this are counted under harm
KEY = ["data", "attack", "level", "split"]
_GROUPS = ("tables", "uneven or overlapping", "small sets", "several classes")


def question_frame(cells: Sequence[Cell], store: Store, metric: str = "accuracy") -> pd.DataFrame:
    """One row per finished cell, reading and number of answers, with SVC's accuracy on given and on clean labels."""
    import pandas as pd

    by_key = {cell.key: cell for cell in cells}
    base: dict[str, dict[str, float]] = {}
    rows = []
    for key, config, statistic, name, value in store.all_rows(set(by_key)):
        if name == metric and config in ("SVC", "SVC on clean labels"):
            base.setdefault(key, {})[config] = value
        elif name == metric:
            rows.append((key, config, int(statistic), value))
    found = []
    place = {key: number for number, key in enumerate(by_key)}  # the suite's order, whatever ran first
    rows.sort(key=lambda row: (_GROUPS.index(group_of(by_key[row[0]].data.name)), place[row[0]]))
    for key, reading, answers, value in rows:
        cell, options = by_key[key], dict(by_key[key].method.params)
        found.append(
            {
                "group": group_of(cell.data.name),
                "data": cell.data.name,
                "attack": cell.attack.name if cell.attack else "clean",
                "level": cell.level,
                "split": cell.seed,
                "order": options["order"],
                "wrong_answers": options["wrong_answers"],
                "reading": reading,
                "answers": answers,
                "accuracy": value,
                "svc": base[key]["SVC"],
                "clean": base[key]["SVC on clean labels"],
            }
        )
    return pd.DataFrame(found)


def group_of(name: str) -> str:
    """Which part of the card a data set belongs to."""
    if name in SEVERAL:
        return "several classes"
    if name in UNEVEN:
        return "uneven or overlapping"
    return "tables" if name in TABLES else "small sets"


def score_card(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per group, order, reading and number of answers.

    ``recovered`` is (mean accuracy - mean of SVC) / (mean on clean labels - mean of SVC) over the poisoned cells;
    ``mean_harm`` and ``worst_harm`` are differences to SVC in cells where poison took less than two points;
    ``worst`` is the lowest difference to SVC in any cell. A cell's value is its mean over the splits.
    """
    import pandas as pd

    rows = []
    keys = ["group", "order", "wrong_answers", "reading", "answers"]
    for key, part in frame.groupby(keys, sort=False):
        cells = part.groupby(["data", "attack", "level"])[["accuracy", "svc", "clean"]].mean()
        over, gap = cells["accuracy"] - cells["svc"], cells["clean"] - cells["svc"]
        poisoned = cells.index.get_level_values("level") > 0
        small = over[gap < SMALL_GAP]
        took = gap[poisoned].sum()
        rows.append(
            {
                **dict(zip(keys, key, strict=True)),
                "cells": int(poisoned.sum()),
                "accuracy": cells.loc[poisoned, "accuracy"].mean(),
                "svc": cells.loc[poisoned, "svc"].mean(),
                "clean": cells.loc[poisoned, "clean"].mean(),
                "recovered": over[poisoned].sum() / took if took > 0 else np.nan,
                "mean_over_svc": over.mean(),
                "worst": over.min(),
                "harm_cells": len(small),
                "mean_harm": small.mean(),
                "worst_harm": small.min(),
            }
        )
    return pd.DataFrame(rows)


def by_attack(frame: pd.DataFrame, group: str, order: str = REVIEW, reading: str = "posterior") -> pd.DataFrame:
    """Recovered share by attack and level (rows) and number of answers (columns)."""
    part = frame[(frame["group"] == group) & (frame["order"] == order) & (frame["reading"] == reading)]
    part = part[(part["wrong_answers"] == 0) & part["answers"].isin(ANSWERS)]
    sums = part.groupby(["attack", "level", "answers"])[["accuracy", "svc", "clean"]].mean()
    share = (sums["accuracy"] - sums["svc"]) / (sums["clean"] - sums["svc"]).where(lambda gap: gap > 1e-6)
    table = share.unstack("answers")
    table.insert(0, "clean", sums["clean"].groupby(level=[0, 1]).mean())
    table.insert(0, "SVC", sums["svc"].groupby(level=[0, 1]).mean())
    return table


def paired(frame: pd.DataFrame, group: str, answers: int) -> pd.DataFrame:
    """Each order and reading against our questions with our posterior: mean difference and its standard error.

    Paired over poisoned cells and splits; the error is over data sets x splits, since cells of one share their rows.
    """
    import pandas as pd

    part = frame[(frame["group"] == group) & (frame["answers"] == answers) & (frame["wrong_answers"] == 0)]
    part = part[part["level"] > 0]
    wide = part.pivot_table(index=KEY, columns=["order", "reading"], values="accuracy")
    if (REVIEW, "posterior") not in wide:
        return pd.DataFrame()
    rows = []
    for name in wide.columns:
        both = wide[[(REVIEW, "posterior"), name]].dropna()
        apart = (both.iloc[:, 0] - both.iloc[:, 1]).groupby(level=["data", "split"]).mean()
        error = sample_deviation(apart) / np.sqrt(len(apart))
        rows.append({"order": name[0], "reading": name[1], "ahead_by": apart.mean(), "standard_error": error})
    return pd.DataFrame(rows)
