"""What the experiments know of each data set besides its rows; nothing else asks for a data set by its name."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from floral_bench.datasets import DATASETS
from floral_bench.spec import Data
from floral_bench.split_table import load_split_table


@dataclass(frozen=True)
class DataKind:
    """The properties of a data set that decide how it is loaded, attacked, fitted and read."""

    load: Any  # (**params) -> Dataset
    texts: bool = False  # reviews: rows are token numbers, with an encoder before every method
    one_table: bool = False  # replications are splits of the same rows
    n_neighbors: int = 20  # of the baselines that look at neighbours, as the paper sets them
    network: dict[str, Any] = field(default_factory=dict)  # of `NetworkSettings`: shapes are the paper's, epochs ours
    quick: dict[str, int] = field(default_factory=dict)  # sizes of a quick run
    published: dict[str, tuple[int, ...]] = field(default_factory=dict)  # the authors' own labels: attack -> levels


def _drawn_by(load: Any, seed: int | None = None, **params: Any) -> Any:
    """What a loader of the library returns for a replication, which is called a seed in the names of cells."""
    return load(**params) if seed is None else load(random_state=seed, **params)


KINDS: dict[str, DataKind] = {
    "moon": DataKind(
        partial(_drawn_by, DATASETS["moon"]),
        network={"hidden": (32, 32), "epochs": 100},
        published={"farthest": (5, 10, 15, 20, 25), "lfa": (5, 10, 25)},
    ),
    "mnist": DataKind(
        partial(_drawn_by, DATASETS["mnist"]),
        network={"hidden": (32, 10), "epochs": 20, "clip": (0.0, 1.0)},
        quick={"n_train": 600, "n_val": 100, "n_test": 600},
    ),
    "imdb": DataKind(
        partial(_drawn_by, DATASETS["imdb"]),
        texts=True,
        n_neighbors=1000,
        quick={"n_train": 100, "n_val": 10, "n_test": 100, "max_length": 16, "epochs": 1},
    ),
    "csv": DataKind(load_split_table, one_table=True),  # a user's file is not a data set with a name
}


def kind_of(data: Data) -> DataKind:
    """What is known of a cell's data set."""
    if data.name not in KINDS:
        raise ValueError(f"unknown data set {data.name!r}; known: {', '.join(KINDS)}")
    return KINDS[data.name]
