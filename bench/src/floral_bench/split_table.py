"""Your own table as a data set: split, encoded, with the given labels taken for clean."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from floral_learn.app.tables import read_table
from floral_learn.base import TableError
from floral_learn.base.encoder import TableEncoder
from floral_learn.datasets.dataset import Dataset

LEAST_ROWS = 4  # of each class, so that every part of the split has one
TEST_SIZE = 0.3


def load_split_table(path: str | os.PathLike[str], label: str, *, seed: int = 0, **reading: Any) -> Dataset:
    r"""Return the rows of a .csv, .tsv or .parquet file, split by ``seed`` with equal shares of each class.

    `read_table` reads and `TableEncoder` encodes, fitted on the training rows alone. ``info["encoding"]`` says what
    became of each column, ``info["notes"]`` what else to know of the file. A `TableError` says what is wrong with one.

    Examples
    --------
    >>> import os, tempfile
    >>> from floral_bench.split_table import load_split_table
    >>> path = os.path.join(tempfile.mkdtemp(), "my.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("size,colour,y\n" + "1.5,red,no\n2.5,blue,yes\n" * 10)
    >>> data = load_split_table(path, "y")
    >>> data.X_train.shape, data.classes.tolist()
    ((14, 3), ['no', 'yes'])
    """
    path = Path(path)
    table = read_table(path, label=label, **reading).check_classes(least=LEAST_ROWS)
    labels = table.labels
    assert labels is not None
    if labels.dtype == bool:
        labels = labels.astype(str)
    rows = np.arange(len(labels))
    train, test = train_test_split(rows, test_size=round(TEST_SIZE * len(rows)), random_state=seed, stratify=labels)
    encoder = TableEncoder(text=table.text, random_state=seed)
    try:
        X = encoder.fit(table.features.iloc[train]).transform(table.features)
    except TableError as error:
        raise TableError(f"{path}: {error}") from None
    info = {"source": str(path), "seed": seed, "encoding": encoder.describe(), "notes": tuple(table.notes)}
    return two_parts(path.stem, X[train], labels[train], X[test], labels[test], info)


def two_parts(name: str, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, info: Any) -> Dataset:
    """A data set without validation rows, the given labels taken for clean."""
    return Dataset(name, X, y, X[:0], y[:0], X_test, y_test, y, info)
