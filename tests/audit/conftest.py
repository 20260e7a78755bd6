"""Data with planted label errors that the tests of this room share."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons

from floral_learn import find_label_issues


@pytest.fixture(scope="session")
def moons():
    """400 rows, a tenth of the labels flipped at random: X, given labels, which are wrong."""
    X, y = make_moons(400, noise=0.15, random_state=0)
    wrong = np.random.default_rng(0).random(400) < 0.1
    return X, np.where(wrong, 1 - y, y), wrong


@pytest.fixture(scope="session")
def found(moons):
    X, y, wrong = moons
    groups = np.where(wrong & (np.arange(400) % 3 > 0), "careless", np.where(np.arange(400) % 2, "ann", "bob"))
    return find_label_issues(X, np.array(["no", "yes"])[y], groups=groups, random_state=0)


@pytest.fixture(scope="session")
def blobs():
    """Three classes as words, 30 wrong labels."""
    X, y = make_blobs(300, centers=[[-4, 0], [0, 4], [4, 0]], random_state=1)
    rows = np.random.default_rng(2).choice(300, 30, replace=False)
    given = y.copy()
    given[rows] = (y[rows] + 1 + np.arange(30) % 2) % 3
    names = np.array(["blue", "green", "red"])
    return X, names[given], names[y], np.isin(np.arange(300), rows)
