"""How many BLAS threads a game gets: one where waiting for a second costs more than it brings.

A product of a small factor takes a tenth of a millisecond; a second thread that has to wait for a core that another
process keeps busy takes eighty times that. Fits of many rows keep the caller's setting.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

FEW_ROWS = 20_000  # up to here set-up and rounds take seconds at most, and a second thread saves less than it can cost
SMALL = 2e8  # multiplications of a product up to which a second thread is not worth its waiting


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
    """One BLAS thread for a whole fit of up to `FEW_ROWS` rows; the caller's for more."""
    return _ONE_THREAD if n <= FEW_ROWS else nullcontext()


def threads_for_product(multiplications: float) -> AbstractContextManager[None]:
    """One BLAS thread for rounds whose product with K takes up to `SMALL` multiplications; the caller's for more."""
    return _ONE_THREAD if multiplications <= SMALL else nullcontext()
