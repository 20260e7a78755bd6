"""Threads: small fits take one, whoever else is fitting, and the caller's setting comes back."""

from threadpoolctl import ThreadpoolController, threadpool_limits

from floral_learn.game.arrays import ONE_THREAD


def blas_threads():
    return {pool["num_threads"] for pool in ThreadpoolController().select(user_api="blas").info()}


def test_one_thread_until_the_last_of_several_games_has_ended():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with ONE_THREAD:
            with ONE_THREAD:
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == before
