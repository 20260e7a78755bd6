"""Small data sets for comparing defenses: what scikit-learn ships, Moon, MNIST 1 vs 7 and two synthetic ones.

The sets are in two groups. Rules (how FLORAL chooses its budget, say) are made on the development sets alone; the
held-out sets only report.
"""

import os
from collections.abc import Callable

import numpy as np
from sklearn import datasets as shipped
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from .dataset import Dataset
from .mnist import load_mnist
from .moon import load_moon

DEVELOPMENT = ("moon", "breast-cancer", "digits-3-8", "wine", "ellipses")
HELD_OUT = ("mnist-1-7", "iris", "digits", "circles", "imbalanced")
ARENA = (*DEVELOPMENT, *HELD_OUT)
MNIST_COMPONENTS = 50

Rows = tuple[np.ndarray, np.ndarray]


def load_arena(
    name: str, seed: int = 1, *, n_train: int | None = None, data_home: str | os.PathLike[str] | None = None
) -> Dataset:
    """Return split `seed` of an arena data set: standardised features, labels -1/+1 or class numbers.

    Two thirds of the rows train, at most 500 of them (MNIST 1,000), stratified by class; the rest, at most 1,000 rows,
    test. There is no validation part: nothing in the arena may look at clean labels. MNIST is reduced to its first
    50 principal components, found on the training rows, so that every method runs in about a second.

    Parameters
    ----------
    name : str
        One of ``ARENA``: moon, breast-cancer, digits-3-8, wine, ellipses (two unequal clouds, one class in four rows)
        for development; mnist-1-7, iris, digits (ten classes), circles, imbalanced (one class in ten rows, 20
        features) held out.
    seed : int
        Number of the split; synthetic sets also draw their rows by it.
    n_train : int, optional
        Fewer training rows.
    data_home : path, optional
        Folder of ``mnist.npz``; only MNIST needs a file.

    Returns
    -------
    Dataset
        Training and test rows.

    Examples
    --------
    >>> from floral_learn import load_arena
    >>> wine = load_arena("wine")
    >>> wine.X_train.shape, wine.classes.tolist()
    ((118, 13), [0, 1, 2])
    """
    if name not in ARENA:
        raise ValueError(f"name={name!r} is no data set of the arena; choose one of {', '.join(ARENA)}")
    if name == "mnist-1-7":
        images = load_mnist((1, 7), n_train=1000, n_test=1000, seed=seed, data_home=data_home)
        found = PCA(MNIST_COMPONENTS, random_state=0).fit(images.X_train)
        parts = (found.transform(images.X_train), found.transform(images.X_test), images.y_train, images.y_test)
    elif name == "moon":
        moon = load_moon(seed)
        parts = (moon.X_train, moon.X_test, moon.y_train, moon.y_test)
    else:
        X, y = _SOURCES[name](seed)
        size = min(500, int(len(y) * 2 / 3))
        parts = train_test_split(
            X, y, train_size=size, test_size=min(1000, len(y) - size), stratify=y, random_state=seed
        )
    return _dataset(name, seed, n_train, *parts)


def _dataset(
    name: str,
    seed: int,
    n_train: int | None,
    X_train: np.ndarray,
    X_test: np.ndarray,
    y_train: np.ndarray,
    y_test: np.ndarray,
) -> Dataset:
    if n_train is not None and n_train < len(y_train):
        kept = train_test_split(np.arange(len(y_train)), train_size=n_train, stratify=y_train, random_state=seed)[0]
        X_train, y_train = X_train[kept], y_train[kept]
    if name != "mnist-1-7":  # its components differ in size for a reason
        scaler = StandardScaler().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    return Dataset(
        name=name,
        X_train=X_train,
        y_train=y_train,
        X_val=X_train[:0],
        y_val=y_train[:0],
        X_test=X_test,
        y_test=y_test,
        y_train_clean=y_train,
        info={"source": name, "seed": seed},
    )


def _signs(y: np.ndarray) -> np.ndarray:
    return np.where(y == y.max(), 1, -1)


def _breast_cancer(seed: int) -> Rows:
    X, y = shipped.load_breast_cancer(return_X_y=True)
    return X, _signs(y)


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
    "breast-cancer": _breast_cancer,
    "digits-3-8": _digits_3_8,
    "wine": lambda seed: shipped.load_wine(return_X_y=True),
    "ellipses": _ellipses,
    "iris": lambda seed: shipped.load_iris(return_X_y=True),
    "digits": lambda seed: shipped.load_digits(return_X_y=True),
    "circles": _circles,
    "imbalanced": _imbalanced,
}
