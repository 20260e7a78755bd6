"""The paper's result tables as data, to stand beside ours."""

from __future__ import annotations

import csv
from functools import lru_cache
from importlib.resources import files

LOSS_TABLES = {"comp-imdb-additional": "loss-comp-imdb"}  # where the paper has losses in a table of their own

Key = tuple[str, float, float, float, str, str, str]  # table, level, C, gamma, method, metric, statistic


@lru_cache(maxsize=1)
def paper_values() -> dict[Key, float]:
    """All 816 values, by table, level in percent, C, gamma, method, metric and statistic."""
    text = files("floral_bench").joinpath("paper_tables.csv").read_text(encoding="utf-8")
    values = {}
    for row in csv.DictReader(text.splitlines()):
        C, gamma = (float(row[name] or "nan") for name in ("C", "gamma"))
        key = (row["table"], float(row["poison_percent"]), C, gamma, row["method"], row["metric"], row["statistic"])
        values[key] = float(row["value"])
    return values


def paper_value(
    table: str | None, level: float, setting: tuple[float, float], method: str, metric: str, statistic: str
) -> float | None:
    """One value of the paper, or None where it has none."""
    if table is None:
        return None
    if metric == "hinge_loss":
        table, metric = LOSS_TABLES.get(table, table), "hinge-loss"
    # A head of our IMDB suite is named with the encoder that it stands on; the paper does not say which it had.
    method = method.removesuffix(", own encoder").removesuffix(", clean encoder")
    return paper_values().get((table, float(level), float(setting[0]), float(setting[1]), method, metric, statistic))
