"""Tables that a few lines of code make: shapes that the real ones of the benchmarks lack. 3,000 rows each."""

import numpy as np
from sklearn import datasets as shipped

ROWS = 3000


def spirals(rng):
    """Three arms in a plane."""
    y, along = rng.integers(0, 3, ROWS), 0.3 + 3 * rng.random(ROWS)
    turn = 2 * along + 2 * np.pi / 3 * y + rng.normal(0, 0.15, ROWS)
    return np.column_stack([along * np.cos(turn), along * np.sin(turn)]), y


def categories(rng):
    """Ten words of four each as indicators; two pairs of them make the class."""
    word = rng.integers(0, 4, (ROWS, 10))
    y = ((word[:, 0] == 1) & (word[:, 1] < 2)) | ((word[:, 2] == 3) & (word[:, 3] != 0))
    return np.eye(4)[word].reshape(ROWS, 40), y.astype(int)


def wide(rng):
    """300 columns, of which fifteen say something."""
    y = rng.integers(0, 2, ROWS)
    X = rng.normal(size=(ROWS, 300))
    X[:, :15] += 0.8 * (2 * y - 1)[:, None]
    return X, y


def exclusive_or(rng):
    """Two signs of six numbers make the class, neither of them alone."""
    X = rng.normal(size=(ROWS, 6))
    return X, ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)


def overlapping(rng):
    """Two Gaussian clouds: nobody can be right in more than 82 of 100 rows."""
    y = rng.integers(0, 2, ROWS)
    return rng.normal(size=(ROWS, 4)) + 0.45 * (2 * y - 1)[:, None], y


def topics(rng):
    """Forty words each of texts about four topics, as rows of length one."""
    y, own, common = rng.integers(0, 4, ROWS), rng.dirichlet(np.full(400, 0.08), 4), rng.dirichlet(np.full(400, 0.3))
    X = np.array([rng.multinomial(40, 0.45 * own[c] + 0.55 * common) for c in y], dtype=float)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def ordered(rng):
    """Three steps of one hidden number that eight columns tell roughly."""
    X = rng.normal(size=(ROWS, 8))
    return X, np.digitize(X @ rng.normal(size=8) / np.sqrt(8) + rng.normal(0, 0.3, ROWS), (-0.5, 0.5))


def units(rng):
    """Long-tailed columns in units from thousandths to thousands."""
    X, y = clouds(rng, 12, n_informative=6, class_sep=1.3)
    return np.exp(0.8 * X) * 10.0 ** rng.integers(-3, 4, 12), y


def clouds(rng, columns, **shape):
    """`make_classification` without wrong labels of its own."""
    return shipped.make_classification(ROWS, columns, flip_y=0, random_state=int(rng.integers(2**31)), **shape)


def above_median(rng):
    """Friedman's first function of ten columns, above or below its median."""
    X, value = shipped.make_friedman1(ROWS, 10, noise=1, random_state=int(rng.integers(2**31)))
    return X, (value > np.median(value)).astype(int)


TABLES = {
    "two classes of clouds": lambda rng: clouds(rng, 20, n_informative=8, class_sep=1.5),
    "five classes of clouds": lambda rng: clouds(
        rng, 20, n_informative=10, n_classes=5, n_clusters_per_class=1, class_sep=1.5
    ),
    "one row in sixteen": lambda rng: clouds(rng, 15, n_informative=6, weights=[0.94], class_sep=1.5),
    "circles": lambda rng: shipped.make_circles(ROWS, noise=0.1, factor=0.5, random_state=int(rng.integers(2**31))),
    "twelve blobs": lambda rng: shipped.make_blobs(
        ROWS, 10, centers=12, cluster_std=3.0, random_state=int(rng.integers(2**31))
    ),
    "shells": lambda rng: shipped.make_gaussian_quantiles(
        n_samples=ROWS, n_features=5, n_classes=3, random_state=int(rng.integers(2**31))
    ),
    "spirals": spirals,
    "categories": categories,
    "300 columns": wide,
    "exclusive or": exclusive_or,
    "overlapping": overlapping,
    "topics": topics,
    "ordered classes": ordered,
    "units": units,
    "above the median": above_median,
}


def made_table(name):
    """Rows (3000, d) and classes (3000,) of a table, always the same."""
    return TABLES[name](np.random.default_rng(list(TABLES).index(name)))
