"""How many BLAS threads a game gets: one where waiting for a second costs more than it brings.

A product of a small factor takes a tenth of a millisecond; a second thread that has to wait for a core that another
process keeps busy takes eighty times that. Large products are timed both ways first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

FEW_ROWS = 20_000  # up to here set-up and rounds take seconds at most, and a second thread saves less than it can cost
SMALL = 2e8  # multiplications of a product up to which one thread is used without a look


@cache
def _controller() -> Any:
    import scipy.linalg.blas  # noqa: F401 (so that its own BLAS is among those that are found)

    return ThreadpoolController().select(user_api="blas")


class _OneThread:
    """One BLAS thread while at least one game asks for it, then the caller's setting again.

    The setting belongs to the whole process: games played in several Python threads share it, so that the first one in
    sets it and the last one out restores it.
    """

    def __init__(self) -> None:
        self._lock, self._players = Lock(), 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._players += 1
            if self._players == 1:
                self._limits = _controller().limit(limits=1)
                self._limits.__enter__()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._players -= 1
            if self._players == 0 and self._limits is not None:
                self._limits.__exit__(None, None, None)


_ONE_THREAD = _OneThread()


def threads_for_rows(n: int) -> AbstractContextManager[None]:
    """One BLAS thread for a whole fit of up to `FEW_ROWS` rows; for more, the caller's if a product is faster so."""
    if n > FEW_ROWS:
        tall, wide = np.ones((4096, 512), np.float32), np.ones((512, 64), np.float32)
        if _several_are_faster(lambda: tall @ wide):
            return nullcontext()
    return _ONE_THREAD


@contextmanager
def threads_for(multiplications: float, product: Callable[[], Any] | None = None) -> Iterator[None]:
    """The caller's BLAS threads where these make `product` faster, else one.

    Parameters
    ----------
    multiplications : float
        Of one product: small ones are not worth a second thread.
    product : callable, optional
        One product, to be timed with one thread and with the caller's.
    """
    if multiplications > SMALL and product is not None and _several_are_faster(product):
        yield
        return
    with _ONE_THREAD:
        yield


def _several_are_faster(product: Callable[[], Any]) -> bool:
    product()  # warm: pages and caches
    several = min(_timed(product) for _ in range(2))
    with _ONE_THREAD:
        one = min(_timed(product) for _ in range(2))
    return several < 0.9 * one


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
