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
