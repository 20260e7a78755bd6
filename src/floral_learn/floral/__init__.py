"""FloralClassifier: settings, inputs (arrays, files, tensors, dask), the game's problem, the fitted model."""

from importlib import import_module
from typing import Any

# public name -> module of this room; loaded on first use
_PUBLIC = {
    "FloralClassifier": "classifier",
    "PaperFloralClassifier": "paper",
    "Engine": "engine",
    "HistoryDisplay": "history_display",
    "Checkpoint": "checkpoint",
    "resume": "checkpoint",
}
__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
