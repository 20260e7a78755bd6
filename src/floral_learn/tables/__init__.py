"""Your own tables: one reader, one encoder, cells that no spreadsheet runs."""

from importlib import import_module
from typing import Any

# public name -> module of this room; loaded on first use
_PUBLIC = {"read_table": "tables", "Table": "tables", "TableError": "table_error", "TableEncoder": "encoder"}
__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
