"""Blocked neighbour search: exact, never the row itself, and small in memory."""

import tracemalloc

import numpy as np
import pytest

from floral_learn.labels.rows import nearest_others
from floral_learn.paper import KNNRelabel

BLOCK = "floral_learn.labels.rows.MOST_VALUES"


@pytest.mark.parametrize("entries", [1, 50, 10_000])
def test_blocks_of_any_size_give_the_sorted_distances_to_all_others(monkeypatch, entries):
    monkeypatch.setattr(BLOCK, entries)
    X = np.random.default_rng(0).normal(size=(40, 3))
    seen = []
    for rows, indices, distances in nearest_others(X, 7):
        for row, others, away in zip(range(rows.start, rows.stop), indices, distances, strict=True):
            seen.append(row)
            assert row not in others
            full = np.delete(np.linalg.norm(X - X[row], axis=1), row)
            np.testing.assert_allclose(away, np.sort(full)[:7])
            np.testing.assert_allclose(np.linalg.norm(X[others] - X[row], axis=1), away)
    assert seen == list(range(40))


def test_among_many_duplicates_a_row_is_still_not_its_own_neighbour():
    X = np.zeros((30, 2))
    for rows, indices, _ in nearest_others(X, 4):
        assert indices.shape == (30, 4)
        assert not (indices == np.arange(rows.start, rows.stop)[:, None]).any()


def test_at_most_n_minus_one_neighbours():
    blocks = list(nearest_others(np.arange(5.0)[:, None], 50))
    assert np.sort(blocks[0][1], axis=1).tolist() == [[j for j in range(5) if j != i] for i in range(5)]


def test_peak_memory_does_not_hold_all_neighbours_at_once(monkeypatch):
    monkeypatch.setattr(BLOCK, 100_000)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 20)), rng.integers(0, 2, 3000)
    tracemalloc.start()
    KNNRelabel(n_neighbors=500).fit_resample(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    everything = 3000 * 500 * (8 + 8)
    assert peak < everything / 3
