"""Threads: small fits take one, large ones ask first, and the caller's setting comes back."""

import time

import numpy as np
from threadpoolctl import ThreadpoolController, threadpool_limits

from floral_learn.game import threads


def blas_threads():
    return {pool["num_threads"] for pool in ThreadpoolController().select(user_api="blas").info()}


def test_a_small_fit_has_one_thread_and_leaves_the_callers_setting():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with threads.threads_for_rows(500), threads.threads_for(1e3):
            assert blas_threads() == {1}
        assert blas_threads() == before


def test_a_large_product_is_timed_both_ways(monkeypatch):
    # A stand-in for a product that a second thread slows down, and one that it speeds up.
    with threadpool_limits(2, user_api="blas"):
        for slow in ({1}, {2}):

            def product(slow=slow):
                time.sleep(0.02 if blas_threads() == slow else 0.001)

            with threads.threads_for(1e12, product):
                assert blas_threads() == ({1} if slow == {2} else {2})


def test_many_rows_ask_first(monkeypatch):
    asked = []
    monkeypatch.setattr(threads, "_several_are_faster", lambda product: asked.append(product()) or True)
    with threadpool_limits(2, user_api="blas"), threads.threads_for_rows(100_000):
        assert blas_threads() == {2}
    assert np.shape(asked[0]) == (4096, 64)
