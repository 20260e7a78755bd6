"""Fixtures of the defense tests."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons


@pytest.fixture
def noisy_moons():
    """Two moons with some labels flipped: X (n, 2), y (n,) in {0, 1}, mask (n,) of the flips."""

    def build(n=80, flips=8, seed=0):
        X, y = make_moons(n, noise=0.2, random_state=seed)
        flipped = np.zeros(n, bool)
        flipped[np.random.default_rng(seed).choice(n, flips, replace=False)] = True
        return X, np.where(flipped, 1 - y, y), flipped

    return build


@pytest.fixture
def noisy_blobs():
    """Separated blobs, one a class, some labels moved to the next class."""

    def build(n=90, flips=6, seed=0, centers=3):
        angle = 2 * np.pi * np.arange(centers) / centers
        middles = 6.0 * np.column_stack([np.cos(angle), np.sin(angle)])
        X, y = make_blobs(n, centers=middles, cluster_std=0.6, random_state=seed)
        flipped = np.zeros(n, bool)
        flipped[np.random.default_rng(seed).choice(n, flips, replace=False)] = True
        return X, np.where(flipped, (y + 1) % centers, y), flipped

    return build
