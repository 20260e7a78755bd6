"""A picture of certificates: how many predictions survive how many flips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_learn.base.extras import install_line


@dataclass
class CertifiedFlipsDisplay:
    """A histogram of the flips that predictions survive, right and wrong ones apart where the labels are known.

    Parameters
    ----------
    flips : ndarray of shape (m,)
        Certified flips of each prediction; -1: nothing is promised.
    right : bool ndarray of shape (m,) or None
        Which predictions are right.
    n_labels : int or None
        Training labels, for the title.

    Attributes
    ----------
    ax_, figure_
        What `plot` drew on.

    Examples
    --------
    >>> from floral_learn import CertifiedKernelClassifier, load_moon
    >>> from floral_learn.certify import CertifiedFlipsDisplay
    >>> moon = load_moon(n_train=100, n_val=1, n_test=200)
    >>> clf = CertifiedKernelClassifier().fit(moon.X_train, moon.y_train)
    >>> display = CertifiedFlipsDisplay.from_estimator(clf, moon.X_test, moon.y_test).plot()
    >>> display.ax_.get_xlabel()
    'flipped training labels that a prediction survives'
    """

    flips: np.ndarray
    right: np.ndarray | None = None
    n_labels: int | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None) -> CertifiedFlipsDisplay:
        """Certify the predictions of a fitted classifier at rows X (m, d); true labels y (m,) tell right from wrong."""
        found = estimator.certificate(X)
        return cls(found.flips, None if y is None else found.prediction == np.asarray(y), found.n_labels)

    def plot(self, ax: Any = None) -> CertifiedFlipsDisplay:
        """Draw on ``ax`` (a new figure by default)."""
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise ImportError(f"plots need matplotlib: {install_line('plot')}") from error
            ax = plt.subplots(figsize=(5, 3.5), layout="constrained")[1]
        low, high = int(min(self.flips.min(), 0)), int(self.flips.max())
        width = max(1, -(-(high - low + 1) // 30))  # whole numbers per bar, at most thirty bars
        edges = np.arange(low, high + width + 1, width) - 0.5
        right = np.ones(len(self.flips), dtype=bool) if self.right is None else self.right
        ax.hist(
            [self.flips[right], self.flips[~right]][: 1 if self.right is None else 2],
            bins=edges,
            stacked=True,
            color=["#0072B2", "#E69F00"][: 1 if self.right is None else 2],
            label=["predictions"] if self.right is None else ["right", "wrong"],
        )
        middle = int(np.percentile(self.flips, 50, method="lower"))
        ax.axvline(middle, color="black", linestyle=":", label=f"half survive {middle:,}")
        labels = "" if self.n_labels is None else f" of {self.n_labels:,}"
        ax.set(
            xlabel="flipped training labels that a prediction survives",
            ylabel="predictions",
            title=f"certified flips{labels}",
        )
        ax.legend(loc="best", fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
