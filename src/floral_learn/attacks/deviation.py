"""How replications spread: the one deviation that tables, figures and pages show."""

from __future__ import annotations

from typing import Any

import numpy as np


def sample_deviation(values: Any, axis: int | None = None) -> Any:
    """The sample standard deviation (n - 1 in the denominator) of replications; nan for one.

    Every deviation that the tables, figures and pages show is this one.
    """
    values = np.asarray(values, dtype=float)
    count = values.size if axis is None else values.shape[axis]
    if count < 2:
        return np.full(np.sum(values, axis=axis).shape, np.nan)[()]
    return np.std(values, axis=axis, ddof=1)
