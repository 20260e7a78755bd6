"""The two tables of docs/results/crowd.md: public crowds beside peers and published figures, and liars by level."""

from __future__ import annotations

from typing import Any

import pandas as pd

from floral_bench.reporting.tables import markdown

PUBLISHED = {  # accuracy, as printed in the notebooks of Li et al. (2019), yuan-li/truth-inference-at-scale
    "bwa": {"zc_us": 0.911, "cf_amt": 0.860, "web": 0.823, "trec": 0.604, "sp_amt": 0.946, "adult": 0.742,
            "bluebird": 0.759},
    "ibcc": {"zc_us": 0.827, "cf_amt": 0.857, "web": 0.751, "trec": 0.706, "sp_amt": 0.944, "adult": 0.745,
             "bluebird": 0.889},
    "ebcc": {"zc_us": 0.912, "cf_amt": 0.857, "web": 0.769, "trec": 0.704, "sp_amt": 0.944, "adult": 0.748,
             "bluebird": 0.861},
}  # fmt: skip
PEERS = ("majority", "dawid-skene", "one-coin", "mace", "glad")


def real_table(rows: Any) -> Any:
    """Accuracy per public crowd as it is, and means over people drawn anew; ours beside the better simple one."""
    real = rows[rows["part"] == "real"]
    as_is = real[real["draw"] < 0].pivot_table(index="crowd", columns="method", values="accuracy", sort=False)
    drawn = real[real["draw"] >= 0].pivot_table(index=["crowd", "draw"], columns="method", values="accuracy")
    drawn = drawn.dropna(subset=["ours", "majority", "dawid-skene"])
    means = drawn.groupby("crowd").mean()
    table = as_is[[name for name in (*PEERS, "ours") if name in as_is]].copy()
    for name, figures in PUBLISHED.items():
        table[name] = pd.Series(figures)
    table["drawn: best of two"] = means[["majority", "dawid-skene"]].max(axis=1)
    table["drawn: ours"] = means["ours"]
    table["draws"] = drawn.groupby("crowd").size()
    return table


def liar_table(rows: Any) -> Any:
    """Per level of liars: labels right of everybody, and of ours how many are decided and right."""
    liars = rows[rows["part"] == "liars"]
    table = liars.pivot_table(index="level", columns="method", values="accuracy")
    ours = liars[liars["method"] == "ours"].groupby("level")
    for name in ("decided", "right_decided", "said_decided"):
        table[name] = ours[name].mean()
    kept = liars["right_decided"].isna() | (
        (liars["right_decided"] >= 0.85) & (liars["right_decided"] >= liars["said_decided"] - 0.03)
    )
    table["cells"] = ours.size()
    table["cells that break it"] = (~kept[liars["method"] == "ours"]).groupby(liars["level"]).sum()
    return table


def shown(table: Any) -> str:
    """A table of numbers with three digits, its index as the first column."""
    flat = table.reset_index()
    return markdown(flat.map(_shown), left=flat.shape[1])


def _shown(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return "" if value != value else f"{value:.3f}" if value % 1 else f"{value:g}"
