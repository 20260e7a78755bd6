"""Values that several commands take, read from text."""

from __future__ import annotations

from floral_learn.table_error import TableError


def parse_budget(text: str, option: str = "--budget") -> float | int:
    """25 as a count, 0.1 or 10% as a share of the rows."""
    try:
        if text.endswith("%"):
            return float(text[:-1]) / 100
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        raise TableError(f"{option} {text!r} must be a fraction (0.1), a percentage (10%) or a count (25)") from None
