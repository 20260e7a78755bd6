"""The data of the questions suite: public data sets whose training labels are flipped in several ways."""

from __future__ import annotations

import zlib
from functools import cache, lru_cache

import numpy as np
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_bench.real.planted import margin
from floral_learn.datasets.files import find_file

ROWS, TEST_ROWS = 500, 2500
# Rules were chosen on other sets. These were looked at afterwards (docs/results/looked-at.md).
REPORT = {
    "tables": ("a9a", "magic04", "htru2", "banknote"),
    "embeddings": ("catdog",),
    "several classes": ("students", "music"),
    "many classes": ("letters",),
}
QUICK = {"quick": ("breast-cancer", "wine")}
GROUPS = {name: group for part in (REPORT, QUICK) for group, names in part.items() for name in names}
KINDS = (
    ("far", 30.0), ("blob", 30.0), ("one class", 30.0), ("near", 30.0), ("random", 30.0), ("far", 10.0),
    ("one author", 12.0), ("clean", 0.0),
)  # fmt: skip
GROUPED = ("one author", "random")  # kinds whose reviews are told of groups, too
AUTHORS = 5  # of labels, in turn; rows are in random order


class ClassLostError(ValueError):
    """The flips left nothing of a class."""


@cache
def _source(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All rows and true classes of a data set."""
    if name in QUICK["quick"]:
        return (datasets.load_wine if name == "wine" else datasets.load_breast_cancer)(return_X_y=True)
    if name == "letters":  # 26 classes of two clouds each, as close as handwritten letters are
        shape = {"n_informative": 12, "n_redundant": 2, "n_classes": 26, "n_clusters_per_class": 2}
        return datasets.make_classification(8000, 16, **shape, class_sep=1.6, random_state=7)
    file = "music_crowd" if name == "music" else name
    with np.load(find_file(f"tables/{file}.npz", hint=f"The data set {name} with arrays X and y.")) as found:
        X, y = found["X"], found["y"]
        if name == "music":
            X, y = np.vstack([X, found["X_test"]]), np.concatenate([y, found["y_test"]])
    return X.astype(np.float32), y.astype(int)


@lru_cache(maxsize=4)
def split(name: str, seed: int, most: int = ROWS) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test rows, standardised, and their true classes."""
    X, y = _source(name)
    X = X[:, X.std(axis=0) > 1e-5]  # a constant column has no scale
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[: min(most, len(y) // 2)], order[len(y) // 2 :][:TEST_ROWS]
    scale = StandardScaler().fit(X[train])
    return scale.transform(X[train]), scale.transform(X[test]), y[train], y[test]


def generator(name: str, seed: int, kind: str, share: float) -> np.random.Generator:
    """Randomness of a problem, the same for everybody who is asked about it."""
    return np.random.default_rng([seed, zlib.crc32(f"{name} {kind} {share}".encode())])


def flipped(kind: str, share: float, X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Labels of which `share` is wrong.

    Far from a linear boundary, near an rbf one, around one row, in one class, of one author, or anywhere.
    """
    classes, given = np.unique(y), y.copy()
    if kind == "clean":
        return given
    score = rng.random(len(y))
    if kind in ("far", "near"):
        model = LogisticRegression(max_iter=500) if kind == "far" else SVC()
        score = margin(model.fit(X, y).decision_function(X)) * (1 if kind == "far" else -1)
    elif kind == "blob":
        score = -((X - X[rng.integers(len(X))]) ** 2).sum(axis=1)
    elif kind == "one class":
        score += 10 * (y == classes[-1])
    elif kind == "one author":
        score += 10 * (np.arange(len(y)) % AUTHORS == 0)
    at = np.argsort(-score)[: int(share * len(y))]
    if len(classes) == 2:
        given[at] = classes[0] + classes[1] - y[at]
    elif kind == "one class":
        given[at] = np.where(y[at] == classes[0], classes[1], classes[0])
    else:
        given[at] = [rng.choice(classes[classes != label]) for label in y[at]]
    if len(np.unique(given)) < len(classes):
        raise ClassLostError("the flips left nothing of a class")
    return given
