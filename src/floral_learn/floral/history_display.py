"""Draw what happened in a fit, round by round."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from floral_learn.base.extras import drawing_axis

_LABELS = {
    "objective": "dual objective",
    "residual": "KKT residual",
    "bias": "bias",
    "mu": "projection multiplier",
    "step": "step size",
}


class HistoryDisplay:
    """A quantity of ``history_`` over the rounds.

    Parameters
    ----------
    values : ndarray of shape (n_rounds, n_curves)
        The quantity.
    labels : list of str
        One a curve.
    quantity : str
        What `values` are, for the axis.

    Attributes
    ----------
    ax_, figure_, lines_
        What `plot` drew on and drew.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import FloralClassifier
    >>> from floral_learn.floral import HistoryDisplay
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> display = HistoryDisplay.from_estimator(FloralClassifier(n_rounds=50).fit(X, y), "residual").plot()
    >>> display.ax_.get_ylabel()
    'KKT residual'
    """

    def __init__(self, values: np.ndarray, labels: list[str], quantity: str) -> None:
        self.values = values
        self.labels = labels
        self.quantity = quantity

    @classmethod
    def from_estimator(cls, estimator: Any, quantity: str = "objective") -> HistoryDisplay:
        """The display of one quantity of a fitted FloralClassifier: objective, residual, bias, mu or step."""
        check_is_fitted(estimator, "history_")
        if quantity not in _LABELS:
            raise ValueError(f"quantity={quantity!r} must be one of {sorted(_LABELS)}")
        values = np.asarray(estimator.history_[quantity], dtype=float)
        values = values[:, None] if values.ndim == 1 else values
        names = [str(c) for c in estimator.classes_] if values.shape[1] > 1 else [type(estimator).__name__]
        return cls(values, names, quantity)

    def plot(self, ax: Any = None) -> HistoryDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = drawing_axis(ax)
        rounds = np.arange(1, len(self.values) + 1)
        columns = zip(self.values.T, self.labels)
        self.lines_ = [ax.plot(rounds, column, label=name)[0] for column, name in columns]
        ax.set(xlabel="round", ylabel=_LABELS[self.quantity])
        if self.quantity in ("residual", "step") and (self.values > 0).all():
            ax.set_yscale("log")
        if len(self.labels) > 1:
            ax.legend(title="class", frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
