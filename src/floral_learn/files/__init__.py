"""Files written whole or not at all, and model files that are read with limits."""

from typing import TYPE_CHECKING

from floral_learn.base import on_first_use

if TYPE_CHECKING:  # type checkers and editors do not follow names that load on first use
    from .model_archive import ModelFileError as ModelFileError
    from .persistence import load as load
    from .persistence import save as save

# public name -> module of this room; loaded on first use
_PUBLIC = {"save": "persistence", "load": "persistence", "ModelFileError": "model_archive"}
__all__ = list(_PUBLIC)
__getattr__ = on_first_use(__name__, _PUBLIC)
