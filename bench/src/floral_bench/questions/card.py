"""The card of the questions suite: how much of what wrong labels took came back, and what harm was done.

    python -m floral_bench.questions.card docs/results/answers/rows.csv.gz     the tables again, from kept rows

A case is a data set, a split and a kind of flips. Shares are of sums over cases in which wrong labels took more than
0.02 of accuracy; their 95 % intervals are from 2,000 draws of data sets, with all cases of each.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from floral_bench.questions.ask_and_score import OTHER_MODELS, PLAIN
from floral_bench.questions.cells import AUTHOR, CORRECTED, MARKS, NAMES, REVIEW, WHO
from floral_bench.questions.problems import GROUPED, GROUPS, KINDS, ROWS
from floral_bench.reporting.results import cell_frame
from floral_bench.reporting.tables import markdown
from floral_bench.spec import Cell
from floral_bench.store import Store

TOOK = 0.02  # accuracy lost below which a case counts under harm
DRAWS = 2000
CASE = ["data", "kind", "level", "split", "rows"]
KEY = ["group", *CASE, "who", "wrong", "groups", "model"]
NONE = "none"  # groups that a review was told of
HEADS = [f"{mark} answers" for mark in MARKS]
LOST = ((15, np.inf), (5, 15), (2, 5), (-np.inf, 2))  # points that wrong labels took
SECONDS = (10, 30)  # per answer: a row of familiar columns, a text or picture to be looked at
NUMBERS = ("accuracy", "given", "clean", "left", "covered", "width")  # columns that are averaged over splits


def question_frame(cells: Sequence[Cell], store: Store) -> pd.DataFrame:
    """A line per finished case, model and number of answers, with the accuracy on given and on clean labels."""

    def named(cell: Cell) -> dict[str, Any]:
        told = dict(cell.method.params)
        where = {"group": GROUPS[cell.data.name], "data": cell.data.name, "level": cell.level, "split": cell.seed}
        where |= {"kind": cell.attack.name if cell.attack else "clean", "rows": dict(cell.data.params)["rows"]}
        return where | {"who": told["who"], "wrong": told.get("wrong", 0), "groups": told.get("groups", NONE)}

    frame = cell_frame(cells, store, named).rename(columns={"config": "model"})
    frame = frame[frame["metric"] != "left_out"]
    names = [*KEY, "answers", *NUMBERS]
    if not len(frame):
        return pd.DataFrame(columns=names)
    scores = frame[frame["metric"] == "accuracy"].pivot(index=["key", *KEY], columns="statistic", values="value")
    plain = scores[["given", "clean"]].reset_index()
    base = plain[plain["model"] != "unweighted"]
    base = pd.concat([base, base[base["model"] == PLAIN].assign(model="unweighted")])
    asked = frame[~frame["statistic"].isin(["given", "clean"])]
    wide = asked.pivot(index=["key", *KEY, "statistic"], columns="metric", values="value").reset_index()
    found = wide.merge(base[["key", "model", "given", "clean"]], on=["key", "model"])
    return (
        found.assign(answers=found["statistic"].astype(int)).reindex(columns=names).sort_values(names[: -len(NUMBERS)])
    )


def wide_frame(
    frame: pd.DataFrame, who: str = REVIEW, model: str = PLAIN, wrong: int = 0, groups: str = NONE
) -> pd.DataFrame:
    """A line per case: accuracy on given and on clean labels, and after each number of answers."""
    part = frame[(frame["who"] == who) & (frame["model"] == model) & (frame["wrong"] == wrong)]
    part = part[part["groups"] == groups]
    index = ["group", *CASE, "given", "clean"]
    return part.pivot_table(index=index, columns="answers", values="accuracy").reindex(columns=MARKS).reset_index()


def hurt(wide: pd.DataFrame) -> pd.DataFrame:
    """Cases in which wrong labels took more than `TOOK`."""
    return wide[wide["clean"] - wide["given"] > TOOK]


def recovered(wide: pd.DataFrame) -> np.ndarray:
    """Shares that came back after each number of answers, of the sums over cases."""
    lost = (wide["clean"] - wide["given"]).sum()
    return np.array([(wide[mark] - wide["given"]).sum() / lost for mark in MARKS])


def intervals(wide: pd.DataFrame) -> np.ndarray:
    """95 % intervals (2, marks) of `recovered` over data sets; NaN for fewer than three."""
    back = wide[list(MARKS)].sub(wide["given"], axis=0).assign(lost=wide["clean"] - wide["given"])
    sums = back.groupby(wide["data"]).sum().to_numpy()
    if len(sums) < 3:
        return np.full((2, len(MARKS)), np.nan)
    drawn = np.random.default_rng(0).integers(0, len(sums), (DRAWS, len(sums)))
    totals = sums[drawn].sum(axis=1)
    return np.percentile(totals[:, :-1] / totals[:, -1:], [2.5, 97.5], axis=0)


def shares(wide: pd.DataFrame) -> list[str]:
    """Cells of a table: pooled share, its interval, the median case."""
    (low, high), pooled = intervals(wide), recovered(wide)
    median = (wide[list(MARKS)].sub(wide["given"], axis=0)).div(wide["clean"] - wide["given"], axis=0).median()
    between = ["" if np.isnan(a) else f" [{100 * a:.0f}, {100 * b:.0f}]" for a, b in zip(low, high, strict=True)]
    return [f"{100 * p:.0f}{i} ({100 * m:.0f})" for p, i, m in zip(pooled, between, median, strict=True)]


def peers_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Everybody who chooses rows, on the cases at 30 % that all of them have."""
    lines = [[who, len(part), *shares(part)] for who, part in on_the_same(frame, WHO).items() if len(part)]
    return pd.DataFrame(lines, columns=["who chooses the rows", "cases", *HEADS])


def on_the_same(frame: pd.DataFrame, names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """A wide frame for each who chooses rows, of the cases at 30 % that all of them have and that cost something."""
    every = {who: wide_frame(frame[(frame["level"] == 30) & (frame["rows"] == ROWS)], who) for who in names}
    every = {who: wide for who, wide in every.items() if len(wide)}
    both = set.intersection(*(set(map(tuple, wide[CASE].to_numpy())) for wide in every.values())) if every else set()
    return {who: hurt(wide[[tuple(case) in both for case in wide[CASE].to_numpy()]]) for who, wide in every.items()}


def kinds_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Who chooses the rows behind one and the same correction, by kind of flips, and wrong labels left, of 1."""
    kinds = [kind for kind, level in KINDS if level == 30]
    lines = []
    for who, wide in on_the_same(frame, CORRECTED).items():
        parts = [wide[wide["kind"] == kind] for kind in kinds]
        back = [" / ".join(f"{100 * v:.0f}" for v in recovered(part)) if len(part) else "" for part in parts]
        part = frame[(frame["who"] == who) & (frame["model"] == PLAIN) & (frame["wrong"] == 0)]
        part = part.merge(wide[CASE], on=CASE)
        left = part[part["groups"] == NONE].groupby("answers")["left"].mean().reindex(MARKS)
        lines.append([who, len(wide), *back, " / ".join(f"{v:.2f}" for v in left)])
    return pd.DataFrame(lines, columns=["who chooses the rows", "cases", *kinds, "wrong labels left"])


def groups_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Wrong labels left, of 1, in reviews that are told who wrote each label, names that mean nothing, or neither."""
    part = frame[(frame["who"] == REVIEW) & (frame["model"] == PLAIN) & (frame["wrong"] == 0) & (frame["rows"] == ROWS)]
    lines = []
    for kind, level in KINDS:
        cases = part[(part["kind"] == kind) & (part["level"] == level)]
        told = cases[cases["groups"] != NONE]
        if kind in GROUPED and len(told):
            cases = cases.merge(told[CASE].drop_duplicates(), on=CASE)
            left = cases.pivot_table(index="groups", columns="answers", values="left")
            left = left.reindex((NONE, AUTHOR, NAMES)).reindex(columns=MARKS)
            texts = [" / ".join(f"{v:.2f}" for v in line) for line in left.to_numpy()]
            lines.append([f"{kind}, {level:g} %", len(cases[CASE].drop_duplicates()), *texts])
    return pd.DataFrame(
        lines, columns=["wrong labels", "cases", "no groups", "groups: the author", "groups: five names"]
    )


def harm_table(frame: pd.DataFrame) -> pd.DataFrame:
    """What answers bring and cost behind several models: means over the splits of a data set and a kind of flips."""
    lines = []
    for model in (PLAIN, "unweighted", *OTHER_MODELS):
        wide = wide_frame(frame[frame["rows"] == ROWS], model=model)
        if not len(wide):
            continue
        means = wide.groupby(["data", "kind", "level"])[["given", "clean", *MARKS]].mean()
        apart, small = means[list(MARKS)].sub(means["given"], axis=0), means["clean"] - means["given"] <= TOOK
        back = recovered(means[~small]) if (~small).any() else np.full(len(MARKS), np.nan)
        texts = [
            " / ".join(f"{100 * b:.0f}" for b in back),
            str(int(small.sum())),
            " / ".join(f"{v:+.4f}" for v in apart[small].mean()),
            " / ".join(f"{v:+.3f}" for v in apart[small].min()),
            " / ".join(f"{v:+.3f}" for v in apart.min()),
            " / ".join(f"{100 * v:.0f} %" for v in (apart < -0.005).mean()),
        ]
        lines.append([model, *texts])
    heads = ["model", "recovered", "groups that lost at most 0.02", "there: mean difference", "there: worst"]
    return pd.DataFrame(lines, columns=[*heads, "all groups: worst", "all groups: below -0.005"])


def coverage_table(frame: pd.DataFrame) -> pd.DataFrame:
    """How often the 90 % interval of `wrong_share` holds, and its width over that of as many random answers."""
    part = frame[(frame["who"] == REVIEW) & (frame["rows"] == ROWS) & frame["covered"].notna()]
    part = part[part["groups"] == NONE]
    lines = []
    for (wrong, answers), cases in part.groupby(["wrong", "answers"]):
        held = f"{100 * cases['covered'].mean():.0f} %"
        lines.append([f"{wrong} %", answers, len(cases), held, f"{cases['width'].mean():.2f}"])
    return pd.DataFrame(lines, columns=["wrong answers", "answers", "cases", "covered", "width"])


def others_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Wrong answers and more rows, each beside the review on 500 rows with right answers, on the same cases."""
    ours = wide_frame(frame[frame["rows"] == ROWS])
    every = {f"{w} % of the answers wrong": wide_frame(frame[frame["rows"] == ROWS], wrong=w) for w in (5, 10)}
    every |= {f"{n:,} rows": wide_frame(frame[frame["rows"] == n]) for n in sorted(set(frame["rows"]) - {ROWS})}
    lines = []
    for name, wide in every.items():
        both = hurt(wide).merge(ours[CASE[:-1]], on=CASE[:-1])
        if len(both):
            beside = ours.merge(both[CASE[:-1]], on=CASE[:-1])
            lines.append([name, len(both), " / ".join(shares(both)), " / ".join(shares(beside))])
    return pd.DataFrame(lines, columns=["", "cases", "recovered", "the review on 500 rows, right answers"])


def cost_table(frame: pd.DataFrame) -> pd.DataFrame:
    """By the points lost to wrong labels: points that came back, and minutes per point."""
    wide, lines = wide_frame(frame[frame["rows"] == ROWS]), []
    lost = 100 * (wide["clean"] - wide["given"])
    for low, high in LOST:
        inside = wide[(lost >= low) & (lost < high)]
        name = f"more than {low}" if high == np.inf else f"{low} to {high}"
        name = f"less than {high}" if low == -np.inf else name
        for mark in MARKS if len(inside) else ():
            back = 100 * (inside[mark] - inside["given"])
            begin = [f"{name} (mean {lost[inside.index].mean():.1f})", len(inside)] if mark == MARKS[0] else ["", ""]
            price = [f"{mark * s / 60 / back.mean():.1f}" if back.mean() >= 0.5 else "-" for s in SECONDS]
            minutes = " / ".join(f"{mark * s / 60:.0f}" for s in SECONDS)
            lines.append([*begin, mark, f"{back.mean():+.1f} ({back.median():+.1f})", minutes, " / ".join(price)])
    heads = ["points lost", "cases", "answers", "points back (median)", "minutes", "minutes per point"]
    return pd.DataFrame(lines, columns=heads)


def card_text(frame: pd.DataFrame) -> str:
    """The tables as Markdown."""
    parts = {
        "Who chooses the rows, by kind of flips": kinds_table(frame),
        "Beside peers": peers_table(frame),
        "Harm, and other models": harm_table(frame),
        "The interval of the share of wrong labels": coverage_table(frame),
        "Groups": groups_table(frame),
        "Wrong answers, and more rows": others_table(frame),
    }
    shown = [f"## {title}\n\n{markdown(table).strip()}\n" for title, table in parts.items() if len(table)]
    return "\n".join(shown)


if __name__ == "__main__":
    sys.stdout.write(card_text(pd.read_csv(sys.argv[1])))
