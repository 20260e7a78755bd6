"""Well-known public tables by name: from a file under ``FLORAL_DATA``, or from OpenML, kept in the user's cache."""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from floral_bench.datasets.download import find_or_download
from floral_learn.base.files import write_atomically
from floral_learn.datasets.files import DataNotFoundError, find_file

FOLDER = "tables"


@dataclass(frozen=True)
class Origin:
    """Where a table comes from: its number on OpenML, the label that counts as +1 (None: several classes)."""

    openml: int | None
    positive: str | None = None
    hint: str = ""


TABLES = {
    "spambase": Origin(44, "1"),  # e-mails, 57 columns
    "phoneme": Origin(1489, "2"),  # nasal and oral vowels, 5
    "banknote": Origin(1462, "2"),  # 4
    "pima": Origin(37, "tested_positive"),  # diabetes, 8
    "htru2": Origin(None, "1", "Lyon, HTRU2, UCI machine learning repository, data set 372"),  # pulsars, 8, 9 %
    "magic04": Origin(1120, "g"),  # gamma telescope, 10
    "satimage": Origin(182),  # satellite pixels, 36, six classes
}


def load_table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A public table: all rows X (n, d) as floats in the file's order and labels y (n,), -1/+1 or class numbers.

    It is searched as ``tables/NAME.npz`` with arrays X and y and, where the table comes in
    parts, X_test and y_test, which are appended.
    """
    if name not in TABLES:
        raise ValueError(f"unknown table {name!r}; known: {', '.join(TABLES)}")
    origin = TABLES[name]
    file = f"{FOLDER}/{name}.npz"
    if origin.openml is None:
        path = find_file(file, hint=origin.hint)
    else:
        path = find_or_download(file, lambda to: _from_openml(origin, to), hint=origin.hint)
    with np.load(path) as found:
        X, y = found["X"], found["y"]
        if "X_test" in found:
            X, y = np.concatenate([X, found["X_test"]]), np.concatenate([y, found["y_test"]])
    return X.astype(np.float64), y.astype(int)


def _from_openml(origin: Origin, path: Path) -> None:
    from sklearn.datasets import fetch_openml

    try:
        found = fetch_openml(data_id=origin.openml, as_frame=False, parser="liac-arff")
    except Exception as error:  # whatever a network can do wrong: the caller says where a file may be put instead
        raise DataNotFoundError(f"OpenML {origin.openml}: {error}") from error
    classes, codes = np.unique(found.target, return_inverse=True)
    y = codes if origin.positive is None else np.where(found.target.astype(str) == origin.positive, 1, -1)
    if len(np.unique(y)) < 2:
        raise ValueError(f"OpenML {origin.openml} has labels {classes.tolist()}, none of them {origin.positive!r}")
    stream = io.BytesIO()
    np.savez_compressed(stream, X=np.asarray(found.data, dtype=np.float64), y=y)
    write_atomically(path, stream.getvalue())
