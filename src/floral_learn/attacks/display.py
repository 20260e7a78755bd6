"""Pictures of an attack: where the flips are, and what they cost a victim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array

from floral_learn.attacks.base import PoisonResult
from floral_learn.base.extras import drawing_axis


@dataclass
class PoisonDisplay:
    """A 2-D scatter of the labels, flipped rows marked.

    Parameters
    ----------
    X : ndarray of shape (n, 2)
        Where the rows are drawn.
    y : ndarray of shape (n,)
        Labels after the attack.
    flipped : bool ndarray of shape (n,)
        Where the label changed.
    title : str
        Title of the axis.
    axis_labels : tuple of two str
        What the two axes are.

    Attributes
    ----------
    ax_, figure_
        What `plot` drew on.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from floral_learn import poison
    >>> from floral_learn.attacks import PoisonDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = PoisonDisplay.from_result(X, poison(X, y, attack="random", budget=0.1)).plot()
    >>> display.ax_.get_title(), display.ax_.get_xlabel()
    ('15 of 150 labels flipped', 'component 1 (92 % of the variance)')
    """

    X: np.ndarray
    y: np.ndarray
    flipped: np.ndarray
    title: str = ""
    axis_labels: tuple[str, str] = ("feature 0", "feature 1")

    @classmethod
    def from_result(cls, X: Any, result: PoisonResult, title: str | None = None) -> PoisonDisplay:
        """Take what is to be drawn from ``X`` (n, d) and an attack's result; nothing is drawn yet.

        Two features are drawn as they are, more as their first two principal components, one against the row number.
        """
        X = check_array(X, accept_sparse="csr", input_name="X")
        if X.shape[0] != len(result.y):
            raise ValueError(f"X has {X.shape[0]} rows, the result {len(result.y)} labels")
        n, m = len(result.y), len(result.indices)
        points, axis_labels = _in_the_plane(X)
        title = f"{m} of {n} labels flipped" if title is None else title
        return cls(points, result.y, result.mask, title, axis_labels)

    def plot(self, ax: Any = None) -> PoisonDisplay:
        """Draw on ``ax`` (a new figure by default): colour is the given label, a black ring marks a flip."""
        ax = drawing_axis(ax)
        for number, label in enumerate(np.unique(self.y)):
            here = self.y == label
            ax.scatter(*self.X[here].T, s=14, color=f"C{number}", alpha=0.6, linewidths=0, label=f"label {label}")
        ax.scatter(
            *self.X[self.flipped].T, s=42, facecolors="none", edgecolors="black", linewidths=0.9, label="flipped"
        )
        ax.set(xlabel=self.axis_labels[0], ylabel=self.axis_labels[1], title=self.title)
        ax.legend(loc="best", fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _in_the_plane(X: Any) -> tuple[np.ndarray, tuple[str, str]]:
    """Return (n, 2) points of the rows and what the two axes are."""
    if X.shape[1] == 1:
        column = X.toarray() if hasattr(X, "toarray") else X
        return np.column_stack([column, np.arange(len(column))]), ("feature 0", "row")
    if X.shape[1] == 2:
        return X.toarray() if hasattr(X, "toarray") else X, ("feature 0", "feature 1")
    from sklearn.decomposition import PCA

    if X.shape[0] < 3:
        raise ValueError(f"two principal components need at least 3 rows, X has shape {X.shape}")
    pca = PCA(2, svd_solver="arpack" if hasattr(X, "toarray") else "auto", random_state=0)
    points = pca.fit_transform(X)
    first, second = (
        f"component {k} ({100 * s:.0f} % of the variance)" for k, s in enumerate(pca.explained_variance_ratio_, 1)
    )
    return points, (first, second)
