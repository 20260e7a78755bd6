"""Data sets for comparing blind defenses: real and synthetic tables; even, uneven and overlapping classes."""

from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn import datasets as shipped
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from floral_bench.datasets.mnist import load_mnist
from floral_bench.split_table import two_parts
from floral_learn.datasets.dataset import Dataset
from floral_learn.datasets.files import find_file
from floral_learn.datasets.moon import load_moon

from .public_tables import TABLES, load_table

ARENA = (
    "spambase", "spambase-rare", "moon", "wine", "circles", "labelme", "phoneme", "phoneme-rare", "breast-cancer",
    "letters", "ellipses", "pima", "htru2", "digits", "digits-3-8", "mnist-1-7", "overlap", "magic04",
    "magic04-overlap", "satimage", "banknote", "iris", "imbalanced", "imdb",
)  # fmt: skip
SEVERAL_CLASSES = ("wine", "labelme", "letters", "digits", "satimage", "iris")
MOST_ROWS = 1000
COMPONENTS = 50
# Sets whose columns differ in size for a reason: principal components, embeddings.
_OWN_SCALE = ("mnist-1-7", "labelme", "imdb")

Rows = tuple[np.ndarray, np.ndarray]


def load_arena(name: str, seed: int = 1, *, n_train: int | None = None) -> Dataset:
    """Return split `seed` of an arena data set: standardised features, labels -1/+1 or class numbers.

    Two thirds of the rows train, at most 1,000 of them, stratified by class; the rest, at most 1,000 rows, test. There
    is no validation part: nothing in the arena may look at clean labels.

    Parameters
    ----------
    name : str
        One of ``ARENA``. Real tables: spambase, phoneme, banknote, pima, htru2, magic04, satimage (six classes),
        breast-cancer, wine, iris, digits, digits-3-8, mnist-1-7 (50 principal components), imdb (embeddings of
        reviews), labelme (50 components of images in eight classes; ``info["votes"]`` holds one real vote per row).
        Uneven: spambase-rare (one row in ten positive), phoneme-rare (one in twenty), imbalanced. Overlapping: overlap,
        magic04-overlap (three columns), ellipses. Synthetic: moon, circles, letters (26 classes).
    seed : int
        Number of the split; synthetic sets also draw their rows by it.
    n_train : int, optional
        Fewer training rows.

    Returns
    -------
    Dataset
        Training and test rows.

    Examples
    --------
    >>> from floral_bench.arena_data import load_arena
    >>> wine = load_arena("wine")
    >>> wine.X_train.shape, wine.classes.tolist()
    ((118, 13), [0, 1, 2])
    """
    if name not in ARENA:
        raise ValueError(f"unknown data set {name!r} of the arena; known: {', '.join(ARENA)}")
    info: dict[str, object] = {"source": name, "seed": seed}
    if name == "labelme":
        *parts, votes = _labelme(seed)
    elif name == "mnist-1-7":
        images = load_mnist(digits=(1, 7), n_train=MOST_ROWS, n_test=1000, random_state=seed)
        found = PCA(COMPONENTS, random_state=0).fit(images.X_train)
        parts = [found.transform(images.X_train), found.transform(images.X_test), images.y_train, images.y_test]
    elif name == "moon":
        moon = load_moon(random_state=seed)
        parts = [moon.X_train, moon.X_test, moon.y_train, moon.y_test]
    else:
        X, y = _SOURCES[name](seed)
        size = min(MOST_ROWS, int(len(y) * 2 / 3))
        parts = train_test_split(
            X, y, train_size=size, test_size=min(1000, len(y) - size), stratify=y, random_state=seed
        )
    X_train, X_test, y_train, y_test = parts
    kept = np.arange(len(y_train))
    if n_train is not None and n_train < len(y_train):
        kept = train_test_split(kept, train_size=n_train, stratify=y_train, random_state=seed)[0]
    X_train, y_train = X_train[kept], y_train[kept]
    if name == "labelme":
        info["votes"] = votes[kept]
    if name not in _OWN_SCALE:
        scaler = StandardScaler().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    return two_parts(name, X_train, y_train, X_test, y_test, info)


def _labelme(seed: int) -> list[np.ndarray]:
    """Images of eight scenes with one vote each, drawn among the real ones, 26 % of them wrong."""
    hint = "LabelMe with the votes of 59 people (Rodrigues and Pereira, 2018): arrays X, y, answers, X_test, y_test."
    with np.load(find_file("tables/labelme_crowd.npz", hint=hint)) as found:
        answers, y, rng = found["answers"], found["y"].astype(int), np.random.default_rng(seed)
        reduced = PCA(COMPONENTS, random_state=0).fit(found["X"])
        X, X_test, y_test = reduced.transform(found["X"]), reduced.transform(found["X_test"]), found["y_test"]
    votes = np.array([rng.choice(row[row >= 0]) for row in answers]).astype(int)
    rows, size = rng.permutation(len(y))[: int(0.8 * len(y))], X.std(axis=0).mean()  # 800 rows, others in each split
    return [X[rows] / size, X_test[:1000] / size, y[rows], y_test[:1000].astype(int), votes[rows]]


def _signs(y: np.ndarray) -> np.ndarray:
    return np.where(y == y.max(), 1, -1)


def _table(name: str, seed: int) -> Rows:
    return load_table(name)


def _rare(name: str, share: float, seed: int) -> Rows:
    """A table of which the smaller class keeps only so many rows that it makes up `share`."""
    X, y = load_table(name)
    few, many = sorted(np.unique(y), key=lambda label: int((y == label).sum()))
    rows = np.flatnonzero(y == many)
    some = np.random.default_rng([seed, 7]).permutation(np.flatnonzero(y == few))
    rows = np.sort(np.concatenate([rows, some[: int(len(rows) * share / (1 - share))]]))
    return X[rows], y[rows]


def _columns(name: str, columns: int, seed: int) -> Rows:
    """A table with its last columns only: the classes overlap more."""
    X, y = load_table(name)
    return X[:, -columns:], y


def _imdb(seed: int) -> Rows:
    hint = "Make it with: python benchmarks/imdb_embeddings.py FOLDER"
    with np.load(find_file("imdb-minilm.npz", hint=hint)) as found:
        X = found["X"].astype(np.float64)
        return X / X.std(axis=0).mean(), found["y"].astype(int)


def _shipped(loader: Callable[..., Rows], signs: bool, seed: int) -> Rows:
    X, y = loader(return_X_y=True)
    return X, _signs(y) if signs else y


def _digits_3_8(seed: int) -> Rows:
    X, y = shipped.load_digits(return_X_y=True)
    pair = (y == 3) | (y == 8)
    return X[pair], _signs(y[pair])


def _ellipses(seed: int) -> Rows:
    """Two clouds of unequal size, spread and direction, that overlap: one row in four is positive."""
    rng = np.random.default_rng([seed, 1])
    few = 375
    first = rng.normal(size=(3 * few, 5)) * np.array([2.0, 1.0, 1.0, 0.5, 0.5])
    second = rng.normal(size=(few, 5)) * np.array([0.5, 1.0, 0.5, 1.0, 1.0]) + np.array([1.0, 1.5, 1.0, 0.5, 0.0])
    return np.concatenate([first, second]), np.repeat([-1, 1], [3 * few, few])


def _overlap(seed: int) -> Rows:
    """Two clouds about one deviation apart, one row in three positive: at best three labels in four can be right."""
    rng = np.random.default_rng([seed, 3])
    positive = rng.random(2000) < 0.35
    X = rng.normal(size=(2000, 6))
    X[positive, :2] += np.array([1.0, 0.7])
    return X, np.where(positive, 1, -1)


def _letters(seed: int) -> Rows:
    """26 classes of two clouds each in 16 dimensions, as close as handwritten letters are."""
    centres = np.random.default_rng([5]).normal(size=(52, 16)) * 1.25
    rng = np.random.default_rng([seed, 5])
    cloud = rng.integers(0, 52, 3000)
    return centres[cloud] + rng.normal(size=(3000, 16)), cloud % 26


def _circles(seed: int) -> Rows:
    X, y = shipped.make_circles(1500, noise=0.15, factor=0.5, random_state=seed)
    return X, _signs(y)


def _imbalanced(seed: int) -> Rows:
    X, y = shipped.make_classification(
        1500, 20, n_informative=6, n_redundant=4, n_clusters_per_class=2, weights=[0.9], flip_y=0.0, class_sep=1.5,
        random_state=seed,
    )  # fmt: skip
    return X, _signs(y)


_SOURCES: dict[str, Callable[[int], Rows]] = {
    **{name: partial(_table, name) for name in TABLES},
    "spambase-rare": partial(_rare, "spambase", 0.1),
    "phoneme-rare": partial(_rare, "phoneme", 0.05),
    "magic04-overlap": partial(_columns, "magic04", 3),
    "breast-cancer": partial(_shipped, shipped.load_breast_cancer, True),
    "wine": partial(_shipped, shipped.load_wine, False),
    "iris": partial(_shipped, shipped.load_iris, False),
    "digits": partial(_shipped, shipped.load_digits, False),
    "digits-3-8": _digits_3_8,
    "imdb": _imdb,
    "ellipses": _ellipses,
    "overlap": _overlap,
    "letters": _letters,
    "circles": _circles,
    "imbalanced": _imbalanced,
}
