"""Tables with a row per method and a column per poisoned level: one per attack, setting and statistic."""

from __future__ import annotations

from dataclasses import dataclass

from floral_bench.reporting.results import WIDER
from floral_bench.reporting.tables import Entry, Table

# What each statistic is, said only where a table has it.
READING = {
    "best": "The best round of each fit; round and grid are chosen by test accuracy, as in the paper.",
    "last": "The last round; the grid is chosen by test accuracy, as in the paper.",
    "average": "The averaged model of the last half of the rounds; the grid is chosen by test accuracy.",
    "final": "One fit each, nothing chosen with clean labels: this is what a user can expect.",
}


@dataclass(frozen=True)
class LevelTable:
    """Entries of methods (rows) at levels (columns); None where one is missing."""

    attack: str
    setting: str  # empty where the suite has one setting
    statistic: str
    levels: tuple[float, ...]
    rows: tuple[tuple[str, tuple[Entry | None, ...]], ...]

    @property
    def title(self) -> str:
        """The attack, with C and gamma where several are compared."""
        return ", ".join(text for text in (self.attack, self.setting) if text)

    @property
    def reading(self) -> str:
        """What its numbers are."""
        extra = " Steps beyond the paper's are in the grid." if self.statistic.endswith(WIDER) else ""
        return READING[self.statistic.removesuffix(WIDER)] + extra

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the columns after the method's."""
        return tuple("clean" if level == 0 else f"{level:g} %" for level in self.levels)

    @property
    def has_paper(self) -> bool:
        """Whether any entry has a number of the paper."""
        return any(entry is not None and entry.paper is not None for _, entries in self.rows for entry in entries)


def by_level(table: Table) -> list[LevelTable]:
    """`table` as one small table per attack, setting and statistic; the clean column is in each of them."""
    settings = dict.fromkeys(row.place.setting for row in table.rows)
    groups = dict.fromkeys((row.place.attack, row.place.setting) for row in table.rows)
    out = []
    for attack, setting in groups:
        own = [row for row in table.rows if (row.place.attack, row.place.setting) == (attack, setting)]
        levels = tuple(dict.fromkeys(row.place.level for row in own))
        for statistic in table.statistics:
            found = {(row.place.method.title, row.place.level): row.entries.get(statistic) for row in own}
            titles = dict.fromkeys(row.place.method.title for row in own if statistic in row.entries)
            rows = tuple((title, tuple(found.get((title, level)) for level in levels)) for title in titles)
            name = f"C = {setting[0]:g}, gamma = {setting[1]:g}" if len(settings) > 1 else ""
            if rows:
                out.append(LevelTable(attack, name, statistic, levels, rows))
    return out
