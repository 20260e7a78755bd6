"""Tables from results: mean and deviation over replications, the paper's number beside them, the best marked.

`comparison` is the frame that is kept as rows.csv, one line per number; `by_level` reads such a frame, of a store or of
a file, as the small tables (a row per method, a column per level) that the terminal, the page and the Markdown show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from floral_bench.metrics import sample_deviation
from floral_bench.reporting.paper import paper_value
from floral_bench.reporting.results import COLUMNS, STATISTICS, WIDER, Results
from floral_bench.spec import Grid, Method, Suite
from floral_learn.base.files import write_atomically

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


def comparison(results: Results, metric: str = "accuracy") -> pd.DataFrame:
    """One line per attack, level, C, gamma, method and statistic: mean, deviation, the paper's number, the best.

    ``best`` is "yes" for the highest mean (lowest loss) of a level and statistic among `comparable` methods, to three
    digits as it is printed.
    """
    lines, suite = [], results.suite
    for place in results.cells:
        for statistic in COLUMNS:
            # More decays are an extension of FLORAL's grid alone; a smaller step is every head's.
            if statistic not in STATISTICS and ((place, statistic) not in results.chosen or not _widened(place, suite)):
                continue
            config = results.chosen.get((place, statistic), "")
            values = results.values(place, statistic, metric, config)
            if not len(values):
                continue
            # the paper lists its single fits under "last"
            kinds = [statistic, *(["last"] if statistic == "final" else [])]
            named = (suite.paper_table, place.level, place.setting, place.method.title, metric)
            paper = next((value for kind in kinds if (value := paper_value(*named, kind)) is not None), np.nan)
            lines.append(
                place.where
                | {"metric": metric, "statistic": statistic, "mean": values.mean()}
                | {"deviation": float(sample_deviation(values)), "replications": len(values), "paper": paper}
                | {"configuration": config, "compared": comparable(suite, place.method, statistic), "best": ""}
            )
    rows = pd.DataFrame(lines)
    if len(rows) and metric not in NEITHER_IS_BETTER:
        sign = -1 if metric in LOWER_IS_BETTER else 1
        where = [rows[name] for name in ("attack", "C", "gamma", "level", "statistic", "compared")]
        rows.loc[best_of(sign * rows["mean"].map(lambda mean: round(float(mean), 3)), where), "best"] = "yes"
    return rows


def _widened(place: Any, suite: Suite) -> bool:
    return place.method.name == "floral" or bool(suite.grid and suite.grid.more_etas)


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


def best_of(values: pd.Series, groups: Sequence[Any]) -> pd.Series:
    """Which values are the highest of their group; none of a group of one, and none where all are level."""
    grouped = values.groupby(groups, sort=False)
    top = grouped.transform("max")
    return (values == top) & (grouped.transform("min") < top)


@dataclass(frozen=True)
class LevelTable:
    """Lines of rows (named tuples) of methods at levels; None where one is missing."""

    attack: str
    setting: str  # empty where the suite has one setting
    statistic: str
    levels: tuple[float, ...]
    rows: tuple[tuple[str, tuple[Any, ...]], ...]

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
        """Whether any line has a number of the paper."""
        return any(line is not None and line.paper == line.paper for _, lines in self.rows for line in lines)


def by_level(rows: pd.DataFrame, grid: Grid | None = None) -> list[LevelTable]:
    """`rows` as one small table per attack, setting and statistic; the clean column is in each of them.

    What was chosen from a wider grid than the paper's is a row that says so, below its method's own.
    """
    out: list[LevelTable] = []
    if not len(rows):
        return out
    wider = "also without decay" if grid is not None and grid.more_decays else "wider grid"
    several = len(rows[["C", "gamma"]].drop_duplicates()) > 1
    for (attack, C, gamma), own in rows.groupby(["attack", "C", "gamma"], sort=False):
        levels = tuple(own.level.unique())
        lines = {(line.method, line.statistic, line.level): line for line in own.itertuples(index=False)}
        for statistic in STATISTICS:
            shown = []
            for title in own.method.unique():
                for name, text in ((statistic, title), (statistic + WIDER, f"{title} ({wider})")):
                    found = tuple(lines.get((title, name, level)) for level in levels)
                    if any(line is not None for line in found):
                        shown.append((text, found))
            setting = f"C = {C:g}, gamma = {gamma:g}" if several else ""
            if shown:
                out.append(LevelTable(attack, setting, statistic, levels, tuple(shown)))
    return out


def with_spread(mean: float, spread: float) -> str:
    """``0.924 ± 0.011``, which does not break; nothing for no number."""
    return "" if mean != mean else f"{mean:.3f}" + ("" if spread != spread else f"\u00a0±\u00a0{spread:.3f}")


def spread(values: Iterable[float], digits: int = 3) -> str:
    """Mean and sample deviation of some replications; of one, it alone."""
    found = np.array(list(values))
    return f"{found.mean():.{digits}f}" + (f" ± {sample_deviation(found):.{digits}f}" if len(found) > 1 else "")


def level_markdown(part: LevelTable) -> str:
    """A small table as Markdown: the best in bold, the paper's numbers in italics in a line below each method."""
    lines = []
    for method, found in part.rows:
        texts = ["" if line is None else with_spread(line.mean, line.deviation) for line in found]
        marked = [line is not None and line.best == "yes" for line in found]
        lines.append([method, *(f"**{text}**" if best else text for text, best in zip(texts, marked, strict=True))])
        papers = [np.nan if line is None else line.paper for line in found]
        if any(value == value for value in papers):
            lines.append(["*the paper's*", *("" if value != value else f"*{value:.3f}*" for value in papers)])
    return markdown(pd.DataFrame(lines, columns=["method", *part.heads]))


def markdown(frame: pd.DataFrame, left: int = 1) -> str:
    """A frame as a Markdown table; numbers after the first `left` columns stand at the right."""
    rows = [["" if value is None or value != value else str(value) for value in row] for row in frame.to_numpy(object)]
    ruler = ["---"] * left + ["---:"] * (frame.shape[1] - left)
    return "\n".join("| " + " | ".join(row) + " |" for row in ([*map(str, frame.columns)], ruler, *rows)) + "\n"


def grid(head: Sequence[str], lines: Iterable[Sequence[Any]], left: int = 1) -> str:
    """Lines of anything below a head as a Markdown table; what comes after the first `left` columns is at the right."""
    rows = ["| " + " | ".join(map(str, line)) + " |" for line in (head, *lines)]
    return "\n".join([rows[0], "|" + "---|" * left + "---:|" * (len(head) - left), *rows[1:]])


def between_marks(page: Path, begin: str, end: str, text: str) -> None:
    """Replace what stands between two marks of a page."""
    before, _, rest = page.read_text("utf-8").partition(begin)
    write_atomically(page, before + begin + text + end + rest.partition(end)[2])


def costs(results: Results) -> list[tuple[str, float, float]]:
    """(method, mean seconds of a cell, largest peak memory in MB) of each method.

    A cell of a batch has its share of the batch's time; the memory is that of the process while the batch ran.
    """
    frame = results.frame[results.frame.statistic == "cost"]
    groups = frame.groupby(["metric", "method"], sort=False).value
    means, most = groups.mean(), groups.max()
    return [(m, float(means["seconds", m]), float(most["peak_memory_mb", m])) for m in dict.fromkeys(frame.method)]
