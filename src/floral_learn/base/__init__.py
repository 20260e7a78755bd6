"""What every room shares: checked input, frames and their encoder, model files, how results print."""

from collections.abc import Callable, Mapping
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # type checkers and editors do not follow names that load on first use
    from floral_learn.base.cells import TableError as TableError
    from floral_learn.base.encoder import TableEncoder as TableEncoder
    from floral_learn.base.model_files import ModelFileError as ModelFileError


class Shown:
    """Base of results: a few lines in a terminal, a small table in a notebook, both made from `_facts`."""

    def _facts(self) -> dict[str, str]:
        """Names and values, most important first; at most about six."""
        raise NotImplementedError

    def __repr__(self) -> str:
        facts = self._facts()
        width = max(map(len, facts), default=0)
        lines = [f"  {name:{width}}  {text}" for name, text in facts.items()]
        return "\n".join([type(self).__name__, *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in self._facts().items()
        )
        head = f'<thead><tr><th colspan="2">{escape(type(self).__name__)}</th></tr></thead>'
        return f"<table>{head}<tbody>{rows}</tbody></table>"


def on_first_use(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """A room's ``__getattr__``: public name -> module of the room that holds it, imported when first asked for."""

    def load(name: str) -> Any:
        if name in places:
            return getattr(import_module(f"{package}.{places[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load


# public name -> module of this room; loaded on first use
_PUBLIC = {"ModelFileError": "model_files", "TableEncoder": "encoder", "TableError": "cells"}
__all__ = list(_PUBLIC)
__getattr__ = on_first_use(__name__, _PUBLIC)
