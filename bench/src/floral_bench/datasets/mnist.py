"""MNIST: images of handwritten digits, by default 1 against 7 as in the paper."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from floral_bench.datasets.download import find_or_download
from floral_learn.base.validation import generator
from floral_learn.datasets.dataset import Dataset

FILE = "mnist.npz"
# SHA-256 of the raw bytes of each array: the same data may be packed into a file in many ways
ARRAY_SHA256 = {
    "x_train": "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
    "y_train": "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
    "x_test": "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
    "y_test": "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
}


def load_mnist(
    *,
    digits: Sequence[int] | None = (1, 7),
    n_train: int | None = None,
    n_val: int = 0,
    n_test: int | None = None,
    random_state: Any = 0,
    dtype: type = np.float32,
    data_home: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Return MNIST images of ``digits`` as (n, 784) pixels in [0, 1]; two digits become -1/+1.

    Validation rows are taken from the official training images, test rows from the official test images. Rows are
    drawn by ``random_state`` only where fewer than all are asked for.

    Parameters
    ----------
    digits : sequence of int or None, default=(1, 7)
        ``(a, b)`` labels a as -1 and b as +1; ``None`` or more than two keeps the digits as labels.
    n_train, n_val, n_test : int or None
        Rows of each part. ``n_train=None`` takes all that are left after validation (1 vs 7: 13,007 in all),
        ``n_test=None`` all.
    random_state : int, RandomState, Generator or None, default=0
        Draws the rows.
    dtype : type, default=numpy.float32
        Of the pixels.
    data_home : path, optional
        Where ``mnist.npz`` is looked for first; then ``$FLORAL_DATA``, the user's cache, and a public download.

    Returns
    -------
    Dataset
        The three parts.

    Examples
    --------
    The file may have to be downloaded, so this example is not run:

    >>> from floral_bench.datasets import load_mnist
    >>> images = load_mnist(digits=(1, 7), n_train=100, n_test=50)  # doctest: +SKIP
    >>> images.X_train.shape  # doctest: +SKIP
    (100, 784)
    """
    digits = tuple(range(10)) if digits is None else tuple(digits)
    if len(set(digits)) < 2 or len(set(digits)) != len(digits) or not set(digits) <= set(range(10)):
        raise ValueError(f"digits must be at least two different digits 0..9, got {digits}")
    path = find_or_download(
        FILE,
        download_openml,
        data_home=data_home,
        hint="Without a network, put mnist.npz into a folder and pass it as data_home or set FLORAL_DATA.",
    )
    x_train, y_train, x_test, y_test = read(path)
    rng = generator(random_state)
    pool = np.flatnonzero(np.isin(y_train, digits))
    test = np.flatnonzero(np.isin(y_test, digits))
    n_train = len(pool) - n_val if n_train is None else n_train
    n_test = len(test) if n_test is None else n_test
    if n_train < 1 or n_val < 0 or n_train + n_val > len(pool) or not 1 <= n_test <= len(test):
        raise ValueError(
            f"n_train={n_train}, n_val={n_val}, n_test={n_test} do not fit: digits {digits} have "
            f"{len(pool)} training and {len(test)} test images"
        )
    # subsets keep the official order, so that asking for all rows gives the files as they are
    drawn = rng.permutation(pool)[: n_train + n_val] if n_train + n_val < len(pool) or n_val else pool
    train, val = np.sort(drawn[n_val:]), np.sort(drawn[:n_val])
    if n_test < len(test):
        test = np.sort(rng.permutation(test)[:n_test])

    def labels(raw: np.ndarray) -> np.ndarray:
        return np.where(raw == digits[1], 1, -1) if len(digits) == 2 else raw.astype(np.intp)

    def pixels(raw: np.ndarray) -> np.ndarray:
        return raw.astype(dtype) / dtype(255)

    clean = labels(y_train[train])
    return Dataset(
        name="mnist",
        X_train=pixels(x_train[train]),
        y_train=clean,
        X_val=pixels(x_train[val]),
        y_val=labels(y_train[val]),
        X_test=pixels(x_test[test]),
        y_test=labels(y_test[test]),
        y_train_clean=clean,
        info={"source": str(path), "digits": digits, "random_state": random_state},
    )


def read(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return x_train, y_train, x_test, y_test (uint8) of an ``mnist.npz``, checked against the known data."""
    with np.load(path) as stored:
        if missing := set(ARRAY_SHA256) - set(stored.files):
            raise ValueError(f"{path} lacks {sorted(missing)}: it is not an MNIST file")
        arrays = {name: np.ascontiguousarray(stored[name]) for name in ARRAY_SHA256}
    for name, expected in ARRAY_SHA256.items():
        if hashlib.sha256(arrays[name].tobytes()).hexdigest() != expected:
            raise ValueError(f"{path}: {name} is not the known MNIST data; remove the file and load again")
    return arrays["x_train"], arrays["y_train"], arrays["x_test"], arrays["y_test"]


def download_openml(path: Path) -> None:
    """Fetch MNIST from OpenML (``mnist_784``; the official test images are its last 10,000 rows)."""
    from sklearn.datasets import fetch_openml

    images, digits = fetch_openml("mnist_784", version=1, as_frame=False, return_X_y=True, parser="liac-arff")
    images, digits = images.astype(np.uint8), digits.astype(np.uint8)
    with open(path, "wb") as stream:
        np.savez_compressed(
            stream, x_train=images[:60000], y_train=digits[:60000], x_test=images[60000:], y_test=digits[60000:]
        )
