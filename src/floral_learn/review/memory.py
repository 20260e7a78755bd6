"""How much a review may hold at a time: `max_memory`, less what every row takes."""

from __future__ import annotations

from floral_learn.game.choose_gram import parse_bytes
from floral_learn.game.gram import format_bytes

MOST_VALUES = 4_000_000  # kernel values held at a time; more are not faster
_LEAST_VALUES = 200_000
_BYTES_PER_VALUE = 48  # a kernel value and what is computed from it, in float64
_QUESTION = 60_000_000  # bytes that choosing a question takes, whatever the number of rows
_PER_ROW = 220  # bytes per row: neighbours, folds, walk, label, weight, suspicion
_PER_CLASS = 56  # and per row and class: probabilities, held-out scores


def values_at_a_time(max_memory: str | float, n: int, columns: float, n_classes: int) -> int:
    """Kernel values that a review of n rows may hold at a time within `max_memory`; an error where rows do not fit.

    `columns` is the number of bytes that a row takes, measured (8 per column, less where sparse).
    """
    cap = parse_bytes(max_memory)
    rows = n * (columns + _PER_ROW + _PER_CLASS * n_classes) + _QUESTION
    values = int((cap - rows) // _BYTES_PER_VALUE)
    if values < _LEAST_VALUES:
        needed = format_bytes(rows + _LEAST_VALUES * _BYTES_PER_VALUE)
        raise ValueError(
            f"a review of {n:,} rows and {n_classes} classes takes {needed}, over max_memory={max_memory!r}; "
            "raise max_memory, or review a random part of the rows"
        )
    return min(values, MOST_VALUES)
