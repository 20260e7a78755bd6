"""Your own tables: one reader, one encoder, cells that no spreadsheet runs."""

from typing import TYPE_CHECKING

from floral_learn.base import on_first_use

if TYPE_CHECKING:  # type checkers and editors do not follow names that load on first use
    from .encoder import TableEncoder as TableEncoder
    from .tables import Table as Table
    from .tables import read_table as read_table

# public name -> module of this room; loaded on first use
_PUBLIC = {"read_table": "tables", "Table": "tables", "TableEncoder": "encoder"}
__all__ = [*_PUBLIC, "TableError"]
__getattr__ = on_first_use(__name__, _PUBLIC)


class TableError(ValueError):
    """A table cannot be used; the message is one line for its owner and names the option that fixes it.

    Examples
    --------
    >>> from floral_learn.tables import read_table
    >>> from floral_learn.tables import TableError
    >>> try:
    ...     read_table("nowhere.csv", label="y")
    ... except TableError as error:
    ...     print(error)
    cannot read nowhere.csv: No such file or directory
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(" ".join(str(message).splitlines()))  # a column's name, too, may have line ends
