"""Tables from results: mean and deviation over replications, the paper's number beside them, the best marked.

`comparison` computes; `tidy` is the frame that is kept as CSV, `by_level` the small tables (a row per method, a column
per level) that the terminal, the page and the Markdown show.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from floral_bench.metrics import sample_deviation
from floral_bench.reporting.paper import paper_value
from floral_bench.reporting.results import COLUMNS, STATISTICS, WIDER, Place, Results
from floral_bench.spec import Method, Suite

if TYPE_CHECKING:
    import pandas as pd

METRICS = (
    "accuracy", "balanced_accuracy", "hinge_loss", "recovery_rate", "overlap", "poisoned_share_floral",
    "poisoned_share_network",
)  # fmt: skip
LOWER_IS_BETTER = ("hinge_loss",)
NEITHER_IS_BETTER = METRICS[-3:]
# What each statistic is, said only where a table has it.
READING = {
    "best": "The best round of each fit; round and grid are chosen by test accuracy, as in the paper.",
    "last": "The last round; the grid is chosen by test accuracy, as in the paper.",
    "average": "The averaged model of the last half of the rounds; the grid is chosen by test accuracy.",
    "final": "One fit each, nothing chosen with clean labels: this is what a user can expect.",
}
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Entry:
    """One number of a table: ours over the replications, the paper's, and whether it is the best of its group."""

    mean: float
    deviation: float  # sample standard deviation; nan for one replication
    count: int
    paper: float | None = None
    config: str = ""
    compared: str = ""  # the rows of its column that it can be compared with, see `comparable`
    best: bool = False

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.paper is None else self.mean - self.paper

    def text(self) -> str:
        """``0.924 ± 0.011``, which does not break."""
        spread = "" if np.isnan(self.deviation) else f"\u00a0±\u00a0{self.deviation:.3f}"
        return f"{self.mean:.3f}{spread}"


@dataclass(frozen=True)
class Row:
    """A method at one level, with one entry per statistic."""

    place: Place
    entries: dict[str, Entry]


@dataclass(frozen=True)
class Table:
    """Rows grouped by attack, setting and level."""

    title: str
    metric: str
    rows: tuple[Row, ...]
    statistics: tuple[str, ...]
    wider: str = "wider grid"  # what the grid of the `WIDER` statistics has that the paper's has not


def comparison(results: Results, metric: str = "accuracy") -> Table:
    """One row per method and level, one column per statistic, with the paper's number where it has one."""
    rows: list[Row] = []
    grid = results.suite.grid
    for place in results.cells:
        entries = {}
        for statistic in COLUMNS:
            wider = statistic not in STATISTICS
            # More decays are an extension of FLORAL's grid alone; a smaller step is every head's.
            if wider and ((place, statistic) not in results.chosen or not _widened(place.method, grid)):
                continue
            config = results.chosen.get((place, statistic), "")
            values = results.values(place, statistic, metric, config)
            if len(values):
                entries[statistic] = _entry(results, place, metric, statistic, values, config)
        if entries:
            rows.append(Row(place, entries))
    statistics = tuple(s for s in COLUMNS if any(s in row.entries for row in rows))
    words = "also without decay" if grid is not None and grid.more_decays else "wider grid"
    return Table(results.suite.title, metric, tuple(_mark(rows, metric)), statistics, words)


def _widened(method: Method, grid: Any) -> bool:
    return method.name == "floral" or bool(grid.more_etas)


def _entry(results: Results, place: Place, metric: str, statistic: str, values: np.ndarray, config: str) -> Entry:
    paper = paper_value(results.suite.paper_table, place.level, place.setting, place.method.title, metric, statistic)
    if paper is None and statistic == "final":  # the paper lists its single fits under "last"
        paper = paper_value(results.suite.paper_table, place.level, place.setting, place.method.title, metric, "last")
    compared = comparable(results.suite, place.method, statistic)
    return Entry(float(np.mean(values)), float(sample_deviation(values)), len(values), paper, config, compared)


def comparable(suite: Suite, method: Method, statistic: str) -> str:
    """What a number was allowed to know, in words: numbers of one statistic with the same words can be compared.

    A peak over rounds and a setting of the grid are chosen on test labels; of the others, some are told how many labels
    are poisoned. Single fits have the suite's C and gamma, or settings of their own, such as the defaults of `SVC`.
    Heads on a text encoder are compared with heads on the same one.
    """
    encoder = [f"{name} encoder" for key, name in method.params if key == "encoder"]
    told = method.told
    if method.needs_grid or statistic.removesuffix(WIDER) == "best" or told == "test labels":
        return ", ".join(["chosen on test labels", *encoder])
    shared = method.per_setting and not suite.default_setting
    words = ["told the level" if told else "told nothing", "C of the suite" if shared else "own settings"]
    return ", ".join([*words, *encoder])


def best_of(values: Mapping[Key, float], groups: Mapping[Key, Hashable]) -> set[Key]:
    """The keys with the highest value of their group; none of a group of one, and none where all are level.

    >>> best_of({"a": 0.7, "b": 0.9, "c": 0.8}, {"a": "told", "b": "told", "c": "untold"})
    {'b'}
    """
    members: dict[Hashable, list[float]] = {}
    for key, value in values.items():
        members.setdefault(groups[key], []).append(value)
    return {
        key for key, value in values.items()
        if min(members[groups[key]]) < value and value >= max(members[groups[key]])
    }  # fmt: skip


def _mark(rows: list[Row], metric: str) -> list[Row]:
    """Mark the best mean of each level and statistic among `comparable` rows, to three digits as it is printed."""
    if metric in NEITHER_IS_BETTER:
        return rows
    sign = -1 if metric in LOWER_IS_BETTER else 1
    found = {(number, name): entry for number, row in enumerate(rows) for name, entry in row.entries.items()}
    groups = {
        (number, name): (*_where(rows[number].place), name, entry.compared) for (number, name), entry in found.items()
    }
    best = best_of({key: sign * round(entry.mean, 3) for key, entry in found.items()}, groups)
    return [
        Row(row.place, {name: replace(entry, best=(number, name) in best) for name, entry in row.entries.items()})
        for number, row in enumerate(rows)
    ]


def _where(place: Place) -> tuple[Any, ...]:
    return place.attack, place.setting, place.level


def tidy(table: Table) -> pd.DataFrame:
    """One line per number, with the configuration that was chosen and what it was compared with."""
    import pandas as pd

    lines = []
    for row in table.rows:
        place = row.place
        start = {"attack": place.attack, "level": place.level, "C": place.setting[0], "gamma": place.setting[1]}
        for statistic, entry in row.entries.items():
            lines.append(
                start
                | {"method": place.method.title, "metric": table.metric, "statistic": statistic, "mean": entry.mean}
                | {"deviation": entry.deviation, "replications": entry.count, "paper": entry.paper}
                | {"configuration": entry.config, "compared": entry.compared, "best": "yes" if entry.best else ""}
            )
    return pd.DataFrame(lines)


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
        return READING[self.statistic]

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the columns after the method's."""
        return tuple("clean" if level == 0 else f"{level:g} %" for level in self.levels)

    @property
    def has_paper(self) -> bool:
        """Whether any entry has a number of the paper."""
        return any(entry is not None and entry.paper is not None for _, entries in self.rows for entry in entries)


def by_level(table: Table) -> list[LevelTable]:
    """`table` as one small table per attack, setting and statistic; the clean column is in each of them.

    What was chosen from a wider grid than the paper's is a row that says so, below its method's own.
    """
    settings = dict.fromkeys(row.place.setting for row in table.rows)
    groups = dict.fromkeys((row.place.attack, row.place.setting) for row in table.rows)
    out = []
    for attack, setting in groups:
        own = [row for row in table.rows if (row.place.attack, row.place.setting) == (attack, setting)]
        levels = tuple(dict.fromkeys(row.place.level for row in own))
        titles = dict.fromkeys(row.place.method.title for row in own)
        for statistic in STATISTICS:
            rows = []
            for title in titles:
                for name, shown in ((statistic, title), (statistic + WIDER, f"{title} ({table.wider})")):
                    found = {row.place.level: row.entries.get(name) for row in own if row.place.method.title == title}
                    if any(entry is not None for entry in found.values()):
                        rows.append((shown, tuple(found.get(level) for level in levels)))
            setting_name = f"C = {setting[0]:g}, gamma = {setting[1]:g}" if len(settings) > 1 else ""
            if rows:
                out.append(LevelTable(attack, setting_name, statistic, levels, tuple(rows)))
    return out


def level_markdown(part: LevelTable) -> str:
    """A small table as Markdown: the best in bold, the paper's numbers in italics in a line below each method."""
    import pandas as pd

    lines = []
    for method, entries in part.rows:
        texts = ["" if entry is None else f"**{entry.text()}**" if entry.best else entry.text() for entry in entries]
        lines.append([method, *texts])
        papers = [None if entry is None else entry.paper for entry in entries]
        if any(value is not None for value in papers):
            lines.append(["*the paper's*", *("" if value is None else f"*{value:.3f}*" for value in papers)])
    return markdown(pd.DataFrame(lines, columns=["method", *part.heads]))


def markdown(frame: pd.DataFrame, left: int = 1) -> str:
    """A frame as a Markdown table; numbers after the first `left` columns stand at the right."""
    rows = [["" if value is None or value != value else str(value) for value in row] for row in frame.to_numpy(object)]
    ruler = ["---"] * left + ["---:"] * (frame.shape[1] - left)
    return "\n".join("| " + " | ".join(row) + " |" for row in ([*map(str, frame.columns)], ruler, *rows)) + "\n"


def costs(results: Results) -> list[tuple[str, float, float]]:
    """(method, mean seconds of a cell, largest peak memory in MB) of each method.

    A cell of a batch has its share of the batch's time; the memory is that of the process while the batch ran.
    """
    frame = results.frame[results.frame.statistic == "cost"]
    out = []
    for method in dict.fromkeys(frame.method):
        own = frame[frame.method == method]
        seconds = own[own.metric == "seconds"].value.mean()
        out.append((method, float(seconds), float(own[own.metric == "peak_memory_mb"].value.max())))
    return out
