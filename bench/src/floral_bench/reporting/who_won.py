"""Who is first and who is next in every cell of a suite, among rows that can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

STATISTICS = ("best", "last", "average", "final")
_WHERE = ["attack", "C", "gamma", "level"]


def winners(table: pd.DataFrame, statistic: str, compared: str | None = None) -> list[tuple[str, str, str]]:
    """(cell, who is first, who is next) of each cell, with their numbers; of one group of rows where one is named."""
    out = []
    attacks, settings = table.attack.nunique() > 1, len(table[["C", "gamma"]].drop_duplicates()) > 1
    part = table[table.statistic == statistic]
    if compared is not None:
        part = part[part.compared == compared]
    for (attack, C, gamma, level), cell in part.groupby(_WHERE, sort=False):
        values = cell.set_index("method")["mean"].round(3).sort_values(ascending=False, kind="stable")
        if len(values) < 2:
            continue
        top = values[values == values.iloc[0]]
        below = values[values < values.iloc[0]]
        place = ", ".join(
            [f"{level:g} %", *([attack] if attacks else []), *([f"C={C:g}, gamma={gamma:g}"] if settings else [])]
        )
        second = f"{below.index[0]} {below.iloc[0]:.3f}" if len(below) else "level"
        out.append((place, f"{', '.join(top.index)} {top.iloc[0]:.3f}", second))
    return out


def who_won(table: pd.DataFrame) -> list[str]:
    """A Markdown table with a row per cell, statistic and group of comparable rows; a cell is named once."""
    by_place: dict[str, list[tuple[str, str, str]]] = {}
    for statistic in STATISTICS:
        for group in dict.fromkeys(table[table.statistic == statistic].compared):
            for place, first, second in winners(table, statistic, group):
                by_place.setdefault(place, []).append((f"*{statistic}*, {group}", first, second))
    lines = ["| poisoned | compared | first | next |", "|---|---|---|---|"]
    for place, rows in by_place.items():
        names = [place, *[""] * (len(rows) - 1)]
        lines += [f"| {shown} | {' | '.join(row)} |" for shown, row in zip(names, rows, strict=True)]
    return lines
