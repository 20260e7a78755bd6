"""The error of everything that reads tables; importable without any library."""


class TableError(ValueError):
    """A table cannot be used; the message is one line for its owner and names the option that fixes it.

    Examples
    --------
    >>> from floral_learn import read_table
    >>> from floral_learn.tables import TableError
    >>> try:
    ...     read_table("nowhere.csv", label="y")
    ... except TableError as error:
    ...     print(error)
    cannot read nowhere.csv: No such file or directory
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(" ".join(str(message).splitlines()))  # a column's name, too, may have line ends
