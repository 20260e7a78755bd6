"""Values that several commands take, read from text."""

from __future__ import annotations

from floral_learn.tables.table_error import TableError


def parse_budget(text: str, option: str = "--budget", n_rows: int | None = None) -> float | int:
    """25 as a count, 0.1 or 10% as a share of the rows; `n_rows`, where it is known, is the largest count."""
    message = f"{option} {text!r} must be a share from 0 to 1 (0.1), a percentage (10%) or a count (25)"
    try:
        if text.endswith("%"):
            found: float | int = float(text[:-1]) / 100
        else:
            found = int(text) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        raise TableError(message) from None
    if isinstance(found, float) and not 0 <= found <= 1:
        raise TableError(message)
    if isinstance(found, int) and (found < 0 or (n_rows is not None and found > n_rows)):
        most = "" if n_rows is None else f" and at most {n_rows:,}, the number of rows"
        raise TableError(f"{option} {text} must be at least 0{most}")
    return found
