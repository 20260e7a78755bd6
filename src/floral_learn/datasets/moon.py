"""Moon: two interleaved half circles in the plane, the paper's small data set."""

import os
from importlib.resources import files
from typing import Any, Literal, get_args

import numpy as np
from sklearn.datasets import make_moons
from sklearn.preprocessing import StandardScaler

from .dataset import Dataset
from .files import find_file

REFERENCE_FILE = "moon_reference_seed42.npz"
REFERENCE_SHA256 = "834ded8bd08850f804a90e47966d55fca3863914ad1b026ac4d35c3dae9a7d8b"
Labels = Literal[
    "clean", "farthest-5", "farthest-10", "farthest-15", "farthest-20", "farthest-25", "lfa-5", "lfa-10", "lfa-25"
]  # fmt: skip
REFERENCE_LABELS: tuple[str, ...] = get_args(Labels)[1:]


def load_moon(
    *,
    random_state: Any = 1,
    n_train: int = 500,
    n_val: int = 500,
    n_test: int = 1000,
    noise: float = 0.2,
    labels: Labels = "clean",
    data_home: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Return the Moon replication ``random_state``: standardised (n, 2) features, labels -1/+1.

    All rows come from one ``make_moons(n_train + n_val + n_test, noise=noise, random_state=random_state)``.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None, default=1
        The replication; 1 with the default sizes is the authors' published one, row for row (features to rounding,
        1e-14).
    n_train, n_val, n_test : int, default=500, 500, 1000
        Rows of each part.
    noise : float, default=0.2
        As in ``make_moons``.
    labels : str, default="clean"
        Others are the authors' own poisoned training labels, named by attack and percentage (``"farthest-20"``,
        ``"lfa-10"``); they exist for that replication only and are read from ``moon_reference_seed42.npz``. Nothing
        else needs a file.
    data_home : path, optional
        Where that file is looked for first.

    Returns
    -------
    Dataset
        The three parts.

    Examples
    --------
    >>> from floral_learn import load_moon
    >>> moon = load_moon()
    >>> moon.X_train.shape, moon.X_test.shape
    ((500, 2), (1000, 2))
    """
    sizes = (n_train, n_val, n_test)
    if any(not isinstance(size, (int, np.integer)) or size < 1 for size in sizes):
        raise ValueError(f"n_train, n_val and n_test must be positive integers, got {sizes}")
    if labels != "clean" and labels not in REFERENCE_LABELS:
        raise ValueError(f"labels must be 'clean' or one of {REFERENCE_LABELS}, got {labels!r}")
    published = load_moon.__kwdefaults__ or {}
    if labels != "clean" and (random_state, *sizes, noise) != tuple(published.values())[:5]:
        raise ValueError(
            f"labels={labels!r} were published for random_state={published['random_state']} with default sizes and "
            "noise only"
        )
    drawn = int(random_state.integers(2**31)) if isinstance(random_state, np.random.Generator) else random_state
    X, y = make_moons(sum(sizes), noise=noise, random_state=drawn)
    # The authors shuffled with an unrecorded random state, so the order of their 2,000 rows is stored beside this file.
    # `make_moons` shuffles too: the same order is as good as any for other seeds, and other sizes need none.
    with files(__package__).joinpath("moon_split.npy").open("rb") as stream:
        stored = np.load(stream).astype(np.intp)
    order = stored if len(stored) == len(y) else np.arange(len(y))
    # all rows are scaled together, as the authors did
    X = StandardScaler().fit_transform(X)[order]
    y = np.where(y == 1, 1, -1)[order]
    parts = np.split(np.arange(len(y)), [n_train, n_train + n_val])
    rows: dict[str, np.ndarray] = {}
    for part, places in zip(("train", "val", "test"), parts, strict=True):
        rows |= {f"X_{part}": X[places], f"y_{part}": y[places]}
    info = {"source": "sklearn.datasets.make_moons", "random_state": random_state}
    info |= {"noise": noise, "labels": labels}
    clean = Dataset(name="moon", **rows, y_train_clean=rows["y_train"], info=info)
    return clean if labels == "clean" else clean.with_labels(_reference_labels(labels, data_home))


def _reference_labels(labels: str, data_home: str | os.PathLike[str] | None) -> np.ndarray:
    """The authors' poisoned training labels, (500,) in {-1, +1}, for example ``"lfa-10"``."""
    attack, share = labels.split("-")
    path = find_file(
        REFERENCE_FILE,
        checksum=REFERENCE_SHA256,
        data_home=data_home,
        hint="It holds the authors' labels; set data_home or FLORAL_DATA to the folder that has it.",
    )
    with np.load(path) as stored:
        return stored[f"y_train_adv_{share}" + ("_lfa" if attack == "lfa" else "")].astype(np.intp)
