"""The tables of docs/results/crowd.md from the rows of benchmarks/crowd.py."""

from __future__ import annotations

import json
import re
from datetime import date
from itertools import product
from pathlib import Path

import pandas as pd
from scipy.stats import wilcoxon

from floral_learn.files.atomic_files import write_atomically

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "results" / "crowd.md"
METHODS = ["majority", "dawid-skene", "glad", "mace", "crowdlab", "ours", "ours, features"]


def frame(rows, part, names):
    """The rows of a part, its cells as columns, the last one where a cell was computed twice."""
    last = {tuple(row["cell"]): row for row in rows if row["part"] == part and "error" not in row}
    found = pd.DataFrame(list(last.values()))
    found[names] = pd.DataFrame(found["cell"].tolist(), index=found.index)
    return found.dropna(axis=1, how="all").drop(columns=["cell", "part"])


def markdown(table, digits=3):
    """A table of numbers, its index as first columns; nothing where there is no number."""
    flat = table.reset_index()
    lines = [[str(name) for name in flat.columns], ["---"] * len(flat.columns)]
    for row in flat.itertuples(index=False):
        cells = ["" if v != v else f"{v:.{digits}f}" if isinstance(v, float) else str(v) for v in row]
        lines.append(cells)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def percent(table, name="level"):
    """Levels as words."""
    flat = table.reset_index()
    flat[name] = [f"{round(100 * float(v))} %" for v in flat[name]]
    return flat.set_index(list(table.index.names))


def of_real(rows):
    """Tables of the real crowds."""
    real = frame(rows, "real", ["crowd", "attack", "level", "draw", "method"])
    real = real[real["draw"].isin(real["draw"][real["method"] == "ours"])]  # peers on the same draws
    cells = real.groupby(["crowd", "level", "attack", "method"])["accuracy"].mean().unstack()[METHODS]
    crowds = cells.groupby(["crowd", "level"]).mean()
    means = percent(crowds.groupby("level").mean().drop(columns=["crowdlab", "ours, features"]))
    featured = crowds.loc[["labelme", "music", "product"]].groupby("level").mean()
    peers = METHODS[:5]
    low = cells[cells.index.get_level_values("level") < 0.3]
    votes_only = (low["ours"] - low[peers[:4]].max(axis=1)).rename("votes alone")
    with_features = (low["ours, features"] - low[peers].max(axis=1)).rename("features")
    worst = pd.concat([votes_only, with_features], axis=1)
    worst = worst.assign(least=worst.min(axis=1)).sort_values("least").drop(columns="least").head(8)
    high = cells[cells.index.get_level_values("level") > 0.3]
    against = (high[["ours", "ours, features"]].sub(high["dawid-skene"], axis=0)).assign(
        least=lambda d: d.min(axis=1)
    ).sort_values("least").drop(columns="least").head(8)  # fmt: skip
    ours = real[real["method"].str.startswith("ours")]
    shown = ["accuracy", "expected", "decided", "right_decided", "said_decided", "covered"]
    sure = ours.groupby(["method", "crowd", "level"])[shown].mean()
    broken = ours[(ours["right_decided"] < 0.85) | (ours["right_decided"] < ours["said_decided"] - 0.03)]
    broken = broken.set_index(["method", "crowd", "level", "attack"])[shown[:-1]].sort_index()
    return (
        real,
        {
            "crowds": markdown(percent(crowds)),
            "means": markdown(means),
            "featured": markdown(percent(featured)),
            "worst": markdown(percent(worst)),
            "forty": markdown(percent(against)),
            "sure": markdown(percent(sure)),
            "pairs": markdown(pairs(cells)),
            "broken": f"{len(broken)} of {len(ours)} cells of ours do not keep this:\n\n{markdown(percent(broken))}",
            "cells": markdown(percent(cells)),
        },
    )


def pairs(cells):
    """Per peer: the mean difference over cells, in how many ours is right more often or less, Wilcoxon's p-value."""
    found = {}
    for ours, peer in [*product(["ours"], METHODS[:4]), *product(["ours, features"], METHODS[:5])]:
        gain = (cells[ours] - cells[peer]).dropna()
        found[ours, peer] = {
            "mean difference": float(gain.mean()),
            "median": float(gain.median()),
            "cells ahead": int((gain > 0.0005).sum()),
            "behind": int((gain < -0.0005).sum()),
            "p": f"{wilcoxon(gain).pvalue:.1g}",
        }
    return pd.DataFrame(found).T.infer_objects().rename_axis(["", "against"])


def of_people(rows):
    """Tables about people."""
    people = frame(rows, "people", ["kind", "seed"])
    shown = ["somebody", "covered", "accuracy", "expected", "decided"]
    people["somebody"] = people["somebody"].astype(float)
    honest = people.groupby("kind")[shown].mean().assign(crowds=people.groupby("kind").size())
    named = frame(rows, "named", ["crowd", "attack", "draw", "method"])
    sums = named.groupby(["method", "attack", "crowd"])[["liars", "liars_named"]].sum()
    share = (sums["liars_named"] / sums["liars"]).unstack("crowd")
    wrong = named.groupby("method")[["honest_named", "weak_named", "liars_named", "liars"]].sum().astype(int)
    return {"honest": markdown(honest), "named": markdown(share, 2), "named honest": markdown(wrong)}


def of_asking(rows):
    """Further votes."""
    ask = frame(rows, "ask", ["seed", "share", "order"])
    ask["order"] = ask["order"].replace("random", "at random")
    if not {"crowdlab_500", "ours_500"} <= set(ask.columns):
        return {}
    columns = [f"ours_{n}" for n in (0, 100, 200, 500)] + [f"crowdlab_{n}" for n in (100, 200, 500)]
    table = ask.groupby(["share", "order"])[columns].mean()
    table.columns = [name.replace("ours_", "ours, ").replace("crowdlab_", "CROWDLAB, ") for name in table.columns]
    return {"ask": markdown(percent(table, "share"))}


def write_page(rows):
    """Write the tables between the marks of the page, the first line of facts, and cells.csv."""
    real, tables = of_real(rows)
    tables |= of_people(rows) | of_asking(rows)
    big = [row for row in rows if row["part"] == "million"][-1]
    tables["million"] = (
        f"{big['votes']:,} votes: {big['seconds']:.0f} s on one core, {big['gib']:.1f} GiB at most, "
        f"{big['accuracy']:.4f} of the labels right, {big['decided']:.2f} decided (commit {big['commit']})."
    )
    peers = [row for row in rows if row["part"] == "real" and row["cell"][-1] in METHODS[:5]]
    ours = [row for row in rows if row not in peers and row is not big]
    commits = sorted({row["commit"] for row in ours})
    draws = int(real["draw"].nunique())
    of_each = "one draw" if draws == 1 else f"{draws} draws"
    tables["facts"] = (
        f"{date.today()}, commit {', '.join(commits)} ({'; '.join(sorted({row['system'] for row in ours}))}), peers at "
        f"{', '.join(sorted({row['commit'] for row in peers}))}: "
        f"`python benchmarks/crowd.py run real people named ask --rows build/crowd --draws {draws}`, "
        f"`python benchmarks/crowd.py run million --rows build/crowd`, then "
        f"`python benchmarks/crowd.py page --rows build/crowd`. With {of_each} of every attack; "
        f"{len(real):,} cells, every one in [cells.csv](crowd/cells.csv)."
    )
    text = PAGE.read_text(encoding="utf-8")
    for name, table in tables.items():
        pattern = re.compile(rf"(<!-- table: {re.escape(name)} -->\n).*?(<!-- end -->)", re.S)
        text = pattern.sub(lambda m, t=table: m[1] + "\n" + t + "\n\n" + m[2], text)
    write_atomically(PAGE, text)
    real = real.sort_values(["crowd", "attack", "level", "draw", "method"])
    keep = ["crowd", "attack", "level", "draw", "method", "accuracy", "expected", "decided", "right_decided", "covered"]
    note = {"commit": ", ".join(commits), "date": str(date.today()), "command": "python benchmarks/crowd.py run"}
    write_atomically(PAGE.with_suffix("") / "note.json", json.dumps(note, indent=1) + "\n")
    csv = real[keep].to_csv(index=False, float_format="%.4f")
    write_atomically(PAGE.with_suffix("") / "cells.csv", csv)
