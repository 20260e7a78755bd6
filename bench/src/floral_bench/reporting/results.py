"""Stored rows of a suite as one tidy frame, and the configuration that each cell of a table shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from floral_bench.spec import Attack, Cell, Method, Suite
from floral_bench.store import Store

# Statistics that look at the test set, in the order of the tables; single fits have "final" alone. A statistic chosen
# from steps that the paper does not have is a column of its own.
STATISTICS = ("best", "last", "average", "final")
WIDER = " (wider grid)"
COLUMNS = (*STATISTICS, *(f"{statistic}{WIDER}" for statistic in STATISTICS[:3]))
NUMBERS = ["key", "config", "statistic", "metric", "value"]
GRID_COLUMNS = ["budget", "flips", "eta", "decay"]


@dataclass(frozen=True)
class Place:
    """A cell of a table: everything but the replication."""

    attack: str
    level: float
    setting: tuple[float, float]
    method: Method

    @property
    def where(self) -> dict[str, Any]:
        """Its columns in a frame."""
        C, gamma = self.setting
        return {"attack": self.attack, "level": self.level, "C": C, "gamma": gamma, "method": self.method.title}


class Results:
    """What `store` holds of `suite`."""

    def __init__(self, suite: Suite, store: Store) -> None:
        self.suite, self.store = suite, store

    @cached_property
    def cells(self) -> dict[Place, list[Cell]]:
        """Finished cells of every place, one per replication."""
        known = self.store.status(cell.key for cell in self.suite.cells())
        suite, places = self.suite, {}
        for attack, setting, level, method in product(suite.attacks, suite.settings, suite.levels, suite.methods):
            place = Place(attack_title(attack), level, setting, method)
            cells = [self.cell(place, attack, number) for number in range(len(suite.data))]
            places[place] = [cell for cell in cells if known.get(cell.key) == "done"]
        return places

    def cell(self, place: Place, attack: Attack, number: int) -> Cell:
        """The cell of replication `number` at a place."""
        suite, at = self.suite, self.suite.attack_at(attack, place.level, place.setting)
        where = suite.data[number], suite.seeds[number], at, place.level
        return suite.method_cell(*where, place.setting, place.method)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row per number: attack, level, C, gamma, method, replication, config, statistic, metric, value.

        Games have the point of their grid in columns of its own: budget B, flips k, eta, decay.
        """
        places = [(place, cell) for place, cells in self.cells.items() for cell in cells]
        named = pd.DataFrame(
            [place.where | {"seed": cell.seed, "key": cell.key} for place, cell in places],
            columns=["attack", "level", "C", "gamma", "method", "seed", "key"],
        )
        wanted = set(named["key"])
        rows = self.store.all_rows(wanted)
        for key, (seconds, memory) in self.store.costs(wanted).items():
            rows += [(key, "", "cost", "seconds", seconds), (key, "", "cost", "peak_memory_mb", memory / 1e6)]
        points = [(*place, *astuple(point)) for place, point in self.store.settings(wanted).items()]
        grid = pd.DataFrame(points, columns=["key", "config", *GRID_COLUMNS])
        found = named.merge(pd.DataFrame(rows, columns=NUMBERS), on="key")
        return found.merge(grid, how="left", on=["key", "config"]).drop(columns="key")

    @cached_property
    def chosen(self) -> dict[tuple[Place, str], str]:
        """The configuration shown for each place and column: the highest mean test accuracy, as the paper chooses.

        Best and last are chosen each by itself, on the paper's grid; those of the wider grid among all that were
        played. This peeks at the test set; the rows of single fits, which do not, are beside it for that reason.
        Places with one configuration have no choice.
        """
        accuracy = self.frame[self.frame.metric == "accuracy"]
        own = self.papers(accuracy)
        found = self._best(own, "")
        if len(own) < len(accuracy):
            found |= self._best(accuracy[accuracy.statistic != "final"], WIDER)
        return found

    def papers(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The lines of `frame` that are on the paper's grid, and those of single fits, which have none."""
        grid = self.suite.grid
        if grid is None:
            return frame
        beyond = frame.eta.isin(grid.more_etas)
        for decay in grid.more_decays:
            beyond |= frame.eta.notna() & (frame.decay.isna() if decay is None else frame.decay == decay)
        return frame[~beyond]

    def _best(self, accuracy: pd.DataFrame, suffix: str) -> dict[tuple[Place, str], str]:
        where = ["attack", "level", "C", "gamma", "method", "statistic", "config"]
        # Rounded, so that the first of several that are level is taken, whatever a machine's last digits are.
        means = accuracy.groupby(where, sort=False)["value"].mean().round(4)
        best = means.groupby(where[:-1], sort=False).idxmax()
        by_values = {index[:-1]: index[-1] for index in best}
        found = {}
        for place in self.cells:
            start = tuple(place.where.values())
            if suffix and not place.method.needs_grid:
                continue
            for statistic in STATISTICS:
                if (*start, statistic) in by_values:
                    found[place, statistic + suffix] = by_values[(*start, statistic)]
        return found

    @cached_property
    def _lookup(self) -> dict[tuple[object, ...], list[float]]:
        table: dict[tuple[object, ...], list[float]] = {}
        for row in self.frame.itertuples(index=False):
            table.setdefault(tuple(row[:5]) + tuple(row[6:9]), []).append(row[9])
        return table

    def values(self, place: Place, statistic: str, metric: str = "accuracy", config: str | None = None) -> np.ndarray:
        """The numbers of all replications at a place; of the chosen configuration unless one is named."""
        if config is None:
            config = self.chosen.get((place, statistic), "")
        return np.array(self._lookup.get((*place.where.values(), config, statistic.removesuffix(WIDER), metric), []))

    def traces(self, place: Place, name: str, statistic: str = "best", config: str | None = None) -> list[np.ndarray]:
        """Stored arrays of all replications at a place."""
        if config is None:
            config = self.chosen.get((place, statistic), "")
        found = [self.store.trace(cell, name, config) for cell in self.cells[place]]
        return [array.astype(float) for array in found if array is not None]


def cell_frame(cells: Sequence[Cell], store: Store, named: Callable[[Cell], dict[str, Any]]) -> pd.DataFrame:
    """A line per number of finished cells, in their order: key, what `named` says, config, statistic, metric, value."""
    names = pd.DataFrame([{"key": cell.key} | named(cell) for cell in cells])
    return names.merge(pd.DataFrame(store.all_rows({cell.key for cell in cells}), columns=NUMBERS), on="key")


def by_metric(frame: pd.DataFrame) -> pd.DataFrame:
    """A line per cell of such a frame, its numbers as columns."""
    names = frame.drop(columns=NUMBERS[1:]).drop_duplicates()
    wide = frame.pivot(index="key", columns="metric", values="value")[list(frame["metric"].unique())]
    return names.join(wide, on="key").drop(columns="key")


def attack_title(attack: Attack) -> str:
    """How tables call an attack."""
    if attack.name == "reference":
        return f"authors' labels ({dict(attack.params)['family']})"
    if "duals" in dict(attack.params):
        return f"{attack.name} (early-stopped duals)"
    return attack.name
