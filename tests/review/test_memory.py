"""A review stays within max_memory, reads the same whatever it is, and refuses rows that cannot fit."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from floral_learn import LabelReview


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 8)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    return X, y, np.where((X[:, 2] > 1) & (y == 1), 0, y)


def reviewed(X, y, given, max_memory):
    review = LabelReview(X, given, max_memory=max_memory, random_state=0)
    for _ in range(12):
        at = review.ask(1)
        review.answer(at, y[at])
    return review, review.label_probability


def test_memory_stays_within_its_bound(rows):
    X, y, given = rows
    bound = 90_000_000
    tracemalloc.start()
    try:
        _, belief = reviewed(X, y, given, bound)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert belief.shape == (30_000, 2)
    assert peak < bound


def test_less_memory_reads_the_same(rows):
    X, y, given = (part[:3000] for part in rows)
    wide, wide_belief = reviewed(X, y, given, "4GB")
    narrow, narrow_belief = reviewed(X, y, given, "75MB")
    assert narrow.beliefs.data.problem.rows.at_a_time < wide.beliefs.data.problem.rows.at_a_time
    assert narrow.history == wide.history
    np.testing.assert_allclose(narrow_belief, wide_belief, atol=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_rows_that_cannot_fit_are_refused_before_any_work(rows, kind):
    X, _, given = rows
    with pytest.raises(ValueError, match=r"a review of 30,000 rows and 2 classes takes .* over max_memory='20MB'"):
        LabelReview(kind(X), given, max_memory="20MB")
    with pytest.raises(ValueError, match="max_memory='much' is not a size"):
        LabelReview(kind(X), given, max_memory="much")
