"""The error of everything that reads tables."""


class TableError(ValueError):
    """A table cannot be used; the message is one line for its owner and names the option that mends it."""
