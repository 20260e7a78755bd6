"""FloralClassifier: settings, inputs (arrays, tensors, dask), the game's problem, the fitted model."""

from typing import TYPE_CHECKING

from floral_learn.base import on_first_use

if TYPE_CHECKING:  # type checkers and editors do not follow names that load on first use
    from .classifier import FloralClassifier as FloralClassifier
    from .history_display import HistoryDisplay as HistoryDisplay

# public name -> module of this room; loaded on first use
_PUBLIC = {
    "FloralClassifier": "classifier",
    "HistoryDisplay": "history_display",
}
__all__ = list(_PUBLIC)
__getattr__ = on_first_use(__name__, _PUBLIC)
