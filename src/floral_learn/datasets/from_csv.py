"""A table of one's own as a data set: split, encoded, with the given labels taken for clean."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from .columns import make_encoder, prepare, roles_of
from .dataset import Dataset


def from_csv(
    path: str | os.PathLike[str],
    label: str,
    *,
    test_size: float = 0.3,
    val_size: float = 0.0,
    seed: int = 0,
    drop: Sequence[str] = (),
    sep: str | None = None,
) -> Dataset:
    r"""Return the rows of a .csv, .tsv or .parquet file, split by ``seed`` with equal shares of each class.

    The encoding (see `columns`) is learned on the training rows alone. ``info["encoding"]`` says what became of each
    column. A ValueError says what is wrong with a file.

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
    sep : str, optional
        Separator of a text file; comma by default, tab for .tsv.

    Returns
    -------
    Dataset
        The three parts, encoded as numbers.

    Examples
    --------
    >>> import os, tempfile
    >>> from floral_learn import from_csv
    >>> path = os.path.join(tempfile.mkdtemp(), "my.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("size,colour,y\n" + "1.5,red,no\n2.5,blue,yes\n" * 10)
    >>> data = from_csv(path, "y")
    >>> data.X_train.shape, data.classes.tolist()
    ((14, 3), ['no', 'yes'])
    """
    import pandas as pd

    path = Path(path)
    if not path.is_file():
        raise ValueError(f"cannot read {path}: no such file")
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            frame = pd.read_parquet(path)
        else:
            frame = pd.read_csv(path, sep=sep or ("\t" if path.suffix.lower() == ".tsv" else ","))
    except (OSError, ValueError) as error:  # pandas' own parser errors are ValueErrors
        raise ValueError(f"cannot read {path}: {str(error).splitlines()[0]}") from None
    if label not in frame.columns:
        raise ValueError(f"{path} has no column {label!r}; its columns are: {', '.join(map(str, frame.columns[:12]))}")
    if frame[label].isna().any():
        raise ValueError(f"{path}: column {label!r} has {int(frame[label].isna().sum())} missing labels")
    labels = frame[label].to_numpy()
    classes, counts = np.unique(labels.astype(str), return_counts=True)
    if len(classes) < 2 or len(classes) > max(20, len(labels) // 4):
        raise ValueError(f"{path}: column {label!r} has {len(classes)} different values: not the labels of classes")
    if counts.min() < 4:
        raise ValueError(
            f"{path}: class {classes[counts.argmin()]!r} has {counts.min()} rows; a split needs at least 4"
        )
    if labels.dtype == object:
        labels = labels.astype(str)
    roles = roles_of(frame, (label, *drop))
    rows = np.arange(len(labels))
    rest, test = train_test_split(rows, test_size=round(test_size * len(rows)), random_state=seed, stratify=labels)
    train, val = rest, rest[:0]
    if val_size > 0:
        count = round(val_size * len(rows))
        train, val = train_test_split(rest, test_size=count, random_state=seed, stratify=labels[rest])
    prepared = prepare(frame, roles)
    encoder = make_encoder(prepared.iloc[train], roles, seed).fit(prepared.iloc[train])
    X = encoder.transform(prepared)
    return Dataset(
        name=path.stem,
        X_train=X[train],
        y_train=labels[train],
        X_val=X[val],
        y_val=labels[val],
        X_test=X[test],
        y_test=labels[test],
        y_train_clean=labels[train],
        info={"source": str(path), "seed": seed, "encoding": roles.describe()},
    )
