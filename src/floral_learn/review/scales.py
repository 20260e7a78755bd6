"""In which scale rows are compared: columns standardised, or all columns scaled alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from floral_learn.review.rows import Rows, alike_rows, measured_rows
from floral_learn.review.suspicion import appointed

_SAMPLE = 2000  # rows on which the two scales are compared
_ALIKE = 1.5  # ratio of the columns' spreads up to which the two scales are the same


def better_scale(X: Any, codes: np.ndarray, n_classes: int, rng: np.random.Generator) -> Callable[..., Rows]:
    """How to measure the rows of `X`: `measured_rows`, or `alike_rows` where the given labels are told better by that.

    Columns in different units must be standardised. But principal components, pixels and embeddings differ in spread
    for a reason: standardised, their noise counts as much as what they show, and nothing is near anything. Compared on
    a sample, by how likely held-out judges find its labels.
    """
    if sparse.issparse(X):
        return measured_rows
    at = np.arange(len(codes)) if len(codes) <= _SAMPLE else np.sort(rng.choice(len(codes), _SAMPLE, replace=False))
    spread = np.asarray(X[at], dtype=np.float64).std(axis=0)
    spread = spread[spread > 0]
    if not len(spread) or spread.max() <= _ALIKE * spread.min() or len(np.unique(codes[at])) < 2:
        return measured_rows
    seed = int(rng.integers(2**31))
    losses = [
        _loss(measured(X[at]), codes[at], n_classes, np.random.default_rng(seed))
        for measured in (measured_rows, alike_rows)
    ]
    return alike_rows if losses[1] < losses[0] else measured_rows


def _loss(rows: Rows, codes: np.ndarray, n_classes: int, rng: np.random.Generator) -> float:
    """Mean negative log probability of the labels by judges that did not see them."""
    odds = appointed(rows, rng).odds(codes, n_classes)
    return float(-np.log(np.clip(odds[np.arange(len(codes)), codes], 1e-3, 1.0)).mean())
