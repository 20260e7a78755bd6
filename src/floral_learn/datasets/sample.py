"""The table of the guide: parts that five workers sorted, one of them carelessly; drawn from a seed."""

from __future__ import annotations

import os
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.base.cells import csv_bytes
from floral_learn.base.files import write_atomically
from floral_learn.base.validation import generator

CLASSES = ("good", "rework", "scrap")
WORKERS = ("ana", "ben", "chen", "dia", "eli")
WRONG = (0.02, 0.02, 0.02, 0.02, 0.30)  # share of wrong labels of each worker: eli does not look
SENSORS = ("width", "weight", "heat", "noise")
# Mean of each sensor for good, rework and scrap; every sensor has standard deviation 1.
MEANS = np.array([[0.0, 3.0, 0.0, 0.0], [2.5, 0.0, 0.0, 2.5], [0.0, 0.0, 3.0, -1.5]])


def sample_table(
    path: str | os.PathLike[str] = "parts.csv", *, n_rows: int = 600, truth: bool = False, random_state: Any = 0
) -> Path:
    """Write a small CSV file with labels that cannot all be trusted, and return its path.

    Five workers sorted parts into good, rework and scrap. Four of them are wrong in one label out of fifty, the fifth
    (eli) in three out of ten. The columns are ``part`` (a name), four sensors with a few missing values, ``site``,
    ``worker``, ``gold`` (yes where the label was checked and is right), ``importance`` (1 to 3) and ``quality``, the
    label.

    Parameters
    ----------
    path : path, default="parts.csv"
        The file to write. A file that holds anything else is never overwritten.
    n_rows : int, default=600
        Rows, at least 30.
    truth : bool, default=False
        Add the column ``truth``, the labels without mistakes.
    random_state : int, Generator, RandomState or None, default=0
        Which table is drawn.

    Returns
    -------
    Path
        Where the file is.

    Examples
    --------
    >>> import tempfile
    >>> from floral_learn.app.tables import read_table
    >>> from floral_learn.datasets import sample_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = read_table(sample_table(f"{folder}/parts.csv"), label="quality")
    >>> len(table.labels), [str(name) for name in table.classes]
    (600, ['good', 'rework', 'scrap'])
    """
    if not isinstance(n_rows, Integral) or isinstance(n_rows, bool) or n_rows < 30:
        raise ValueError(f"n_rows={n_rows!r} must be an integer of at least 30")
    target, content = Path(path), csv_bytes(*_table(int(n_rows), truth, generator(random_state)))
    if target.is_file() and target.read_bytes() == content:
        return target
    if target.exists():
        raise FileExistsError(f"path={str(target)!r} exists and is not this table; give another path")
    return write_atomically(target, content)


def _table(n: int, with_truth: bool, rng: np.random.Generator) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The header and the rows."""
    truth = rng.integers(0, len(CLASSES), n)
    sensors = np.round(MEANS[truth] + rng.normal(size=(n, len(SENSORS))), 3)
    sensors[rng.random(sensors.shape) < 0.005] = np.nan
    sites = rng.choice(["north", "south"], n)
    workers = rng.integers(0, len(WORKERS), n)
    wrong = rng.random(n) < np.asarray(WRONG)[workers]
    given = np.where(wrong, (truth + rng.integers(1, len(CLASSES), n)) % len(CLASSES), truth)
    # a few right labels are marked as known, as a careful owner would
    gold = ~wrong & (rng.random(n) < 0.05)
    importance = rng.integers(1, 4, n)
    names = np.asarray(CLASSES)
    columns = {
        "part": [f"p{i:04d}" for i in range(n)],
        **{name: ["" if np.isnan(v) else f"{v:.3f}" for v in sensors[:, i]] for i, name in enumerate(SENSORS)},
        "site": sites,
        "worker": np.asarray(WORKERS)[workers],
        "gold": np.where(gold, "yes", "no"),
        "importance": importance,
        "quality": names[given],
    } | ({"truth": names[truth]} if with_truth else {})
    return list(columns), list(zip(*columns.values(), strict=True))
