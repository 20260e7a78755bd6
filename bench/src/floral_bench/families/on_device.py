"""Neighbours by brute force on a GPU, for the sanitisers of the suites."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

from floral_learn.labels.rows import SEARCH, Block

_ENTRIES = 40_000_000  # distances held at once


@contextmanager
def neighbours_on(device: str | None) -> Iterator[None]:
    """Search neighbours with torch on `device` inside, such as ``"cuda"``; None is scikit-learn."""
    token = SEARCH.set(None if device is None else partial(_blocks, device=device))
    try:
        yield
    finally:
        SEARCH.reset(token)


def _blocks(X: np.ndarray, k: int, device: str) -> Iterator[Block]:
    """All distances of a block of rows at once, the smallest kept; float32, centred so that it loses little."""
    import torch

    rows_all = torch.as_tensor(X - X.mean(axis=0), dtype=torch.float32, device=device)
    squares = (rows_all**2).sum(1)
    size = max(1, _ENTRIES // len(X))
    for start in range(0, len(X), size):
        rows = slice(start, min(start + size, len(X)))
        far = squares[rows, None] + squares - 2 * rows_all[rows] @ rows_all.T
        far[torch.arange(rows.stop - start), torch.arange(start, rows.stop)] = torch.inf
        found = torch.topk(far, k, dim=1, largest=False)
        distances = found.values.clamp(min=0).sqrt().double()
        yield rows, found.indices.cpu().numpy(), distances.cpu().numpy()
