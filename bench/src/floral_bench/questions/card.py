"""The card of the questions suite: how much of what poison took came back, and what harm was done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from floral_bench.displays import sample_deviation
from floral_bench.questions.cells import MARKS, REVIEW
from floral_bench.questions.problems import SEVERAL, TABLES, UNEVEN
from floral_bench.reporting.results import cell_frame
from floral_bench.reporting.tables import markdown
from floral_bench.spec import Cell
from floral_bench.store import Store

ANSWERS = tuple(mark for mark in MARKS if mark >= 10)
SMALL_GAP = 0.02  # cells in which poison took less than this are counted under harm
KEY = ["data", "attack", "level", "split"]
GROUPS = ("tables", "uneven or overlapping", "small sets", "several classes")
PLAIN = {"SVC": "svc", "SVC on clean labels": "clean"}  # readings without answers, and their columns


def question_frame(cells: Sequence[Cell], store: Store) -> pd.DataFrame:
    """One row per finished cell, reading and number of answers, with SVC's accuracy on given and on clean labels."""

    def named(cell: Cell) -> dict[str, Any]:
        where: dict[str, Any] = {"group": group_of(cell.data.name), "data": cell.data.name}
        where |= {"attack": cell.attack.name if cell.attack else "clean", "level": cell.level, "split": cell.seed}
        return where | {name: dict(cell.method.params)[name] for name in ("order", "wrong_answers")}

    cells = sorted(cells, key=lambda cell: GROUPS.index(group_of(cell.data.name)))
    frame = cell_frame(cells, store, named)
    frame = frame[frame["metric"] == "accuracy"].rename(columns={"config": "reading", "value": "accuracy"})
    plain = frame["reading"].isin(PLAIN)
    asked = frame[~plain].assign(answers=frame["statistic"].astype(int))
    base = frame[plain].pivot(index="key", columns="reading", values="accuracy").rename(columns=PLAIN)
    names = ["group", *KEY, "order", "wrong_answers", "reading", "answers", "accuracy", *PLAIN.values()]
    return complete(asked.join(base, on="key").reindex(columns=names))


def complete(frame: pd.DataFrame) -> pd.DataFrame:
    """Only problems that every order of their group has finished, so that rivals have as many splits as ours."""
    if not len(frame):
        return frame
    asked = frame.assign(who=frame["order"] + frame["wrong_answers"].astype(str))
    orders = asked.groupby(KEY)["who"].transform("nunique")
    return frame[orders == asked.groupby("group")["who"].transform("nunique")]


def group_of(name: str) -> str:
    """Which part of the card a data set belongs to."""
    if name in SEVERAL:
        return "several classes"
    if name in UNEVEN:
        return "uneven or overlapping"
    return "tables" if name in TABLES else "small sets"


def score_card(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per group, order, reading and number of answers.

    ``recovered`` is (mean accuracy - mean of SVC) / (mean on clean labels - mean of SVC) over the poisoned cells,
    ``median`` the median of the cells' own shares and ``half`` how many of them have at least half of it back, where
    poison took two points or more;
    ``mean_harm`` and ``worst_harm`` are differences to SVC in cells where poison took less than two points;
    ``worst`` is the lowest difference to SVC in any cell. A cell's value is its mean over the splits.
    """
    rows = []
    keys = ["group", "order", "wrong_answers", "reading", "answers"]
    for key, part in frame.groupby(keys, sort=False):
        cells = part.groupby(["data", "attack", "level"])[["accuracy", "svc", "clean"]].mean()
        over, gap = cells["accuracy"] - cells["svc"], cells["clean"] - cells["svc"]
        poisoned = cells.index.get_level_values("level") > 0
        small = over[gap < SMALL_GAP]
        took, share = gap[poisoned].sum(), (over / gap)[poisoned & (gap >= SMALL_GAP)]
        rows.append(
            {
                **dict(zip(keys, key, strict=True)),
                "cells": int(poisoned.sum()),
                "accuracy": cells.loc[poisoned, "accuracy"].mean(),
                "svc": cells.loc[poisoned, "svc"].mean(),
                "clean": cells.loc[poisoned, "clean"].mean(),
                "splits": part["split"].nunique(),
                "recovered": over[poisoned].sum() / took if took > 0 else np.nan,
                "median": share.median(),
                "half": (share >= 0.5).mean() if len(share) else np.nan,
                "mean_over_svc": over.mean(),
                "worst": over.min(),
                "harm_cells": len(small),
                "mean_harm": small.mean(),
                "worst_harm": small.min(),
            }
        )
    return pd.DataFrame(rows)


def by_attack(frame: pd.DataFrame, group: str) -> pd.DataFrame:
    """Our questions with our reading: recovered share by attack and level (rows) and number of answers (columns)."""
    part = frame[(frame["group"] == group) & (frame["order"] == REVIEW) & (frame["reading"] == "posterior")]
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


def card_text(frame: pd.DataFrame) -> str:
    """The card as Markdown: per group the shares that came back, by attack, and paired differences."""
    card, out = score_card(frame), []
    for group in dict.fromkeys(card["group"]):
        part, lines = card[card["group"] == group], []
        first = part.iloc[0]
        out.append(f"### {group}: {first['cells']} poisoned cells, SVC {first['svc']:.3f}, clean {first['clean']:.3f}")
        for (order, wrong, reading), rows in part.groupby(["order", "wrong_answers", "reading"], sort=False):
            by_number, late = rows.set_index("answers"), rows[rows["answers"] >= 20]
            shares = {
                f"{n} answers": f"{by_number['recovered'].get(n, np.nan):.0%} ({by_number['median'].get(n, np.nan):.0%}"
                f", {by_number['half'].get(n, np.nan):.0%})"
                for n in ANSWERS
            }
            lines.append(
                {"who chooses, how answers are read": f"{order}, {reading}" + (f" ({wrong} % wrong)" if wrong else "")}
                | {"splits": int(rows["splits"].max())}
                | shares
                | {"mean harm": f"{rows['mean_harm'].min():+.4f}", "worst harm": f"{late['worst_harm'].min():+.3f}"}
                | {"worst cell": f"{late['worst'].min():+.3f}"}
            )
        out.append(markdown(pd.DataFrame(lines)))
        table = by_attack(frame, group)
        if len(table):
            shown = table[["SVC", "clean"]].map("{:.3f}".format)
            shown[list(ANSWERS)] = table[list(ANSWERS)].map(lambda v: "" if v != v else f"{v:.0%}")
            level = [f"{v:g} %" for v in table.index.get_level_values("level")]
            out.append(markdown(shown.assign(level=level).reset_index("attack")[["attack", "level", *shown]], left=2))
        found = {n: paired(frame, group, n) for n in ANSWERS}
        if all(map(len, found.values())):  # else our own questions were not run
            both = pd.DataFrame({"ours ahead of": found[ANSWERS[0]].agg("{0[order]}, {0[reading]}".format, axis=1)})
            for n, apart in found.items():
                pairs = zip(apart["ahead_by"], apart["standard_error"], strict=True)
                both[str(n)] = [f"{a:+.3f} ± {e:.3f}" for a, e in pairs]
            out.append(markdown(both[both["ours ahead of"] != f"{REVIEW}, posterior"]))
    return "\n\n".join(text.strip() for text in out) + "\n"
