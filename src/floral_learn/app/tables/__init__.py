"""Tables of users: one reader for every kind of file and frame, and copies with other labels."""

from typing import TYPE_CHECKING

from floral_learn.base import on_first_use

if TYPE_CHECKING:  # type checkers and editors do not follow names that load on first use
    from .table import Table as Table
    from .table import read_table as read_table

__all__ = ["Table", "read_table"]
__getattr__ = on_first_use(__name__, {"Table": "table", "read_table": "table"})
