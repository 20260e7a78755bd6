"""Your own table as a data set: split, encoded, with the given labels taken for clean."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from floral_learn.datasets.dataset import Dataset
from floral_learn.tables.encoder import TableEncoder
from floral_learn.tables.table_error import TableError
from floral_learn.tables.tables import read_table

LEAST_ROWS = 4  # of each class, so that every part of the split has one


def load_split_table(
    path: str | os.PathLike[str],
    label: str,
    *,
    test_size: float = 0.3,
    val_size: float = 0.0,
    seed: int = 0,
    drop: Sequence[str] = (),
    text: Sequence[str] = (),
    text_encoder: str = "auto",
    sep: str | None = None,
    encoding: str | None = None,
    skip_blank_labels: bool = False,
) -> Dataset:
    r"""Return the rows of a .csv, .tsv or .parquet file, split by ``seed`` with equal shares of each class.

    `read_table` reads and `TableEncoder` encodes, fitted on the training rows alone. ``info["encoding"]`` says what
    became of each column, ``info["notes"]`` what else to know of the file. A `TableError` says what is wrong with one.

    Parameters
    ----------
    path : path
        The file.
    label : str
        Name of the label column.
    test_size, val_size : float
        Shares of all rows.
    seed : int, default=0
        Draws the split.
    drop : sequence of str
        Columns to leave out.
    text : sequence of str
        Columns of prose.
    text_encoder : {"auto", "minilm", "tfidf"}
        How prose becomes numbers, see `TableEncoder`.
    sep, encoding : str, optional
        Of a text file; found by default, see `read_table`.
    skip_blank_labels : bool, default=False
        Leave out rows without a label in place of an error.

    Returns
    -------
    Dataset
        The three parts, encoded as numbers.

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
    for name, share in (("test_size", test_size), ("val_size", val_size)):
        if not 0 <= share < 1 or test_size + val_size >= 1:
            raise ValueError(f"{name}={share} must be a share of the rows, both together below 1")
    table = read_table(
        path, label=label, text=text, drop=drop, sep=sep, encoding=encoding, skip_blank_labels=skip_blank_labels
    ).check_classes(least=LEAST_ROWS)
    labels = table.labels
    assert labels is not None
    if labels.dtype == bool:
        labels = labels.astype(str)
    rows = np.arange(len(labels))
    rest, test = train_test_split(rows, test_size=round(test_size * len(rows)), random_state=seed, stratify=labels)
    train, val = rest, rest[:0]
    if val_size > 0:
        count = round(val_size * len(rows))
        train, val = train_test_split(rest, test_size=count, random_state=seed, stratify=labels[rest])
    encoder = TableEncoder(text=table.text, text_encoder=text_encoder, random_state=seed)
    try:
        X = encoder.fit(table.features.iloc[train]).transform(table.features)
    except TableError as error:
        raise TableError(f"{path}: {error}") from None
    return Dataset(
        name=path.stem,
        X_train=X[train],
        y_train=labels[train],
        X_val=X[val],
        y_val=labels[val],
        X_test=X[test],
        y_test=labels[test],
        y_train_clean=labels[train],
        info={"source": str(path), "seed": seed, "encoding": encoder.describe(), "notes": tuple(table.notes)},
    )
