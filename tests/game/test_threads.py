"""Threads: small fits take one, large ones the caller's, whose setting comes back."""

import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from floral_learn.game.arrays import threads_for_product, threads_for_rows


def blas_threads():
    return {pool["num_threads"] for pool in ThreadpoolController().select(user_api="blas").info()}


@pytest.mark.parametrize(
    ("rows", "work", "threads"), [(500, 1e3, 1), (500, 1e12, 1), (10**6, 1e3, 1), (10**6, 1e12, 2)]
)
def test_only_large_products_of_many_rows_have_more_than_one_thread(rows, work, threads):
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with threads_for_rows(rows), threads_for_product(work):
            assert blas_threads() == {threads}
        assert blas_threads() == before
