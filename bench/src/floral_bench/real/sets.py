"""Rows with true labels and the labels that people, crowds or labelling functions gave them.

A set is read once from the folder ``FLORAL_DATA``, reduced to at most 100 columns, and kept in the user's cache under
the digest of the file it came from. A machine without the folder can work from such a cache.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from floral_bench.public_tables import load_table
from floral_bench.real.pictures import embed
from floral_bench.real.planted import plant
from floral_learn.base.files import user_cache, write_atomically
from floral_learn.datasets.files import DataNotFoundError, find_file

FORM = 1  # of what is kept in the cache; raised whenever a set is read in another way
COMPONENTS = 100  # of embeddings and of the words of texts
MOST_TEST = 1000
CHOOSE, REPORT = "choose", "report"
TRUE = "true"  # the kind of labels without errors
PEOPLE = ("aggre", "random1", "worse")  # three people a picture: their majority, the first, a wrong one if there is any
PLANTED = ("phoneme", "spambase", "satimage", "magic04", "htru2")

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class RealSet:
    """Where a set comes from, and what it is used for."""

    file: str  # under FLORAL_DATA
    read: Callable[[Path], Arrays]
    source: str  # sets of one source count as one
    use: str  # rules are chosen on some sets and reported on others
    kinds: tuple[str, ...]
    has_rows: bool = True  # else only somebody's probabilities


@dataclass(frozen=True)
class Problem:
    """Rows (None where there are only probabilities), their true and their given labels, and rows to test on."""

    X: np.ndarray | None
    y: np.ndarray
    given: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    probability: np.ndarray | None = None


def _people(path: Path) -> Arrays:
    """Pictures, or embeddings of some, that several people labelled."""
    data = np.load(path)
    both = np.concatenate([data["X"], data["X_test"]])
    both = both.astype(np.float32) if both.ndim == 2 else embed(both)
    # what people said may be a class that no picture has
    classes, n = np.unique(np.concatenate([data["y"], *(data[f"y_{kind}"] for kind in PEOPLE)])), len(data["y"])
    y, y_test = (np.searchsorted(classes, data[part]) for part in ("y", "y_test"))
    given = {f"given {kind}": np.searchsorted(classes, data[f"y_{kind}"]) for kind in PEOPLE}
    return _rows(_components(both[:n], both[n:]), y, y_test) | given


def _rows(X: tuple[np.ndarray, np.ndarray], y: np.ndarray, y_test: np.ndarray) -> Arrays:
    return {"X": X[0], "X_test": X[1], "y": y, "y_test": y_test}


def _voted(path: Path) -> Arrays:
    """A crowd's votes, of which a problem draws one a row."""
    data = np.load(path)
    reduced = _components if data["X"].shape[1] > 4 * COMPONENTS else _standardised
    return _rows(reduced(data["X"], data["X_test"]), data["y"], data["y_test"]) | {"votes": data["answers"]}


def _functions(path: Path) -> Arrays:
    """Texts with the majority of their labelling functions; ties are drawn, rows without a vote left out."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    y, train = np.array([row["label"] for row in rows]), np.array([row["split"] == "train" for row in rows])
    votes = np.array([row["votes"] for row in rows])
    counts = (votes[:, :, None] == np.arange(y.max() + 1)).sum(axis=1)
    majority = (counts + 0.5 * np.random.default_rng(0).random(counts.shape)).argmax(axis=1)
    train_on = train & (counts.sum(axis=1) > 0)
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    texts = np.array([_between(row) for row in rows], dtype=object)
    W, W_test = words.fit_transform(texts[train_on]), words.transform(texts[~train])
    found = TruncatedSVD(COMPONENTS, random_state=0).fit(W)
    X = _evenly(found.transform(W), found.transform(W_test))
    return _rows(X, y[train_on], y[~train]) | {"given functions": majority[train_on]}


def _between(row: dict[str, Any]) -> str:
    """The text; where a relation of two things is asked, from the first to the second."""
    if "span1" not in row:
        return row["text"]
    first, second = sorted([row["span1"], row["span2"]])
    return row["text"][first[0] : second[1]]


def _probabilities(path: Path) -> Arrays:
    data = np.load(path)
    given = data["given"].astype(int)
    y = np.where(data["wrong"], -1, given)  # the true class of wrong ones is not told
    out = {"y": y, "given resnet18": given, "given swin": given}
    return out | {f"probability {name}": data[name] for name in ("resnet18", "swin")}


SETS = {
    "cifar10n": RealSet("real/cifar10n.npz", _people, "pictures", CHOOSE, PEOPLE),
    "catdog": RealSet("tables/catdog.npz", _people, "pictures", CHOOSE, PEOPLE),
    "youtube": RealSet("real/wrench_youtube.jsonl.xz", _functions, "youtube", CHOOSE, ("functions",)),
    "music": RealSet("tables/music_crowd.npz", _voted, "music", CHOOSE, ("vote",)),  # 87 % of the worst votes are wrong
    "labelme": RealSet("tables/labelme_crowd.npz", _voted, "labelme", REPORT, ("vote", "worst vote")),
    "semeval": RealSet("real/wrench_semeval.jsonl.xz", _functions, "semeval", REPORT, ("functions",)),
    "roman": RealSet("tables/roman_probabilities.npz", _probabilities, "roman", REPORT, ("resnet18", "swin"), False),
}


def missing(name: str) -> str | None:
    """Why a set cannot be read here, or None."""
    try:
        _file(name)
    except DataNotFoundError as error:
        return str(error)
    return None


def _file(name: str) -> Path:
    """The file a set is read from: the one under FLORAL_DATA, or what an earlier run left in the cache."""
    file = SETS[name].file if name in SETS else f"tables/{name}.npz"
    try:
        return find_file(file, hint="Put the data's folder into the environment variable FLORAL_DATA.")
    except DataNotFoundError:
        kept = sorted((user_cache() / "real").glob(f"{name}-*.npz"))
        if len(kept) != 1:
            raise
        return kept[0]


@lru_cache(maxsize=4)
def arrays(name: str) -> Arrays:
    """All rows of a set; what takes time is done once, and kept in the user's cache."""
    path = _file(name)
    if path.parent != user_cache() / "real":
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        kept = user_cache() / "real" / f"{name}-{FORM}-{digest}.npz"
        if not kept.is_file():
            found: dict[str, Any] = SETS[name].read(path) if name in SETS else _table(name)
            stream = io.BytesIO()
            np.savez_compressed(stream, **found)
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(kept, stream.getvalue())
        path = kept
    with np.load(path) as data:
        return dict(data)


def _table(name: str) -> Arrays:
    X, y = load_table(name)
    order = np.random.default_rng(0).permutation(len(y))[: 5 * MOST_TEST]
    X, y = X[order], np.unique(y[order], return_inverse=True)[1]
    return _rows(_standardised(X[:-MOST_TEST], X[-MOST_TEST:]), y[:-MOST_TEST], y[-MOST_TEST:])


@lru_cache(maxsize=4)
def problem(name: str, kind: str, level: float, split: int, most: int) -> Problem:
    """Split `split` of a set: at most `most` of its rows, drawn by that seed, with labels of a kind.

    `kind` is a column of a real set, `TRUE`, or for a table the kind of errors that is planted in `level` percent.
    """
    data, rng = arrays(name), np.random.default_rng(split)
    rows = rng.permutation(len(data["y"]))[:most]
    y = data["y"][rows].astype(int)
    if f"probability {kind}" in data:
        given = data[f"given {kind}"][rows].astype(int)
        nothing = np.empty(0)
        return Problem(None, y, given, nothing, nothing, data[f"probability {kind}"][rows].astype(float))
    X = data["X"][rows]
    if kind == TRUE:
        given = y
    elif f"given {kind}" in data:
        given = data[f"given {kind}"][rows].astype(int)
    elif "votes" in data:
        given = _drawn(data["votes"][rows], y, rng, worst=kind == "worst vote")
    else:
        given = plant(kind, X, y, level / 100, rng)
    some = np.sort(np.random.default_rng(0).permutation(len(data["y_test"]))[:MOST_TEST])  # they may be sorted by class
    return Problem(X, y, given, data["X_test"][some], data["y_test"][some].astype(int))


def _drawn(votes: np.ndarray, y: np.ndarray, rng: np.random.Generator, *, worst: bool) -> np.ndarray:
    """One vote a row, drawn; a wrong one where there is any and the worst is asked for."""
    order = rng.random(votes.shape) + (votes >= 0)
    if worst:
        order = order + ((votes >= 0) & (votes != y[:, None]))
    return votes[np.arange(len(y)), order.argmax(axis=1)].astype(int)


def _components(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Principal components; no label is looked at."""
    found = PCA(min(COMPONENTS, *X.shape), random_state=0).fit(X.astype(np.float64))
    return _evenly(found.transform(X.astype(np.float64)), found.transform(X_test.astype(np.float64)))


def _evenly(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Divided by one number: components differ in spread for a reason."""
    spread = X.std()
    return (X / spread).astype(np.float32), (X_test / spread).astype(np.float32)


def _standardised(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    middle, spread = X.mean(axis=0), X.std(axis=0)
    spread = np.where(spread > 0, spread, 1)
    return ((X - middle) / spread).astype(np.float32), ((X_test - middle) / spread).astype(np.float32)
