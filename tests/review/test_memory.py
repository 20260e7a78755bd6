"""Nothing of a review is n x n."""

import tracemalloc

import numpy as np

from floral_learn import LabelReview


def test_many_rows_take_blocks_and_not_a_matrix():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 8)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    tracemalloc.start()
    try:
        review = LabelReview(X, np.where((X[:, 2] > 1) & (y == 1), 0, y), random_state=0)
        for _ in range(12):
            at = review.ask(1)
            review.answer(at, y[at])
        assert review.label_probability.shape == (20_000, 2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 500_000_000, "20,000 x 20,000 numbers take six times as much"
