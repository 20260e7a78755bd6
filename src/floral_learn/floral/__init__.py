"""FloralClassifier: settings, inputs (arrays, tensors, dask), the game's problem, the fitted model."""

from .classifier import FloralClassifier
from .history_display import HistoryDisplay

__all__ = ["FloralClassifier", "HistoryDisplay"]
