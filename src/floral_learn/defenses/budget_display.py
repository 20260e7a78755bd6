"""Draw what ``budget="auto"`` saw and chose."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted


class BudgetPathDisplay:
    """The budget path: how well the least supported labels are supported, and where the rule stopped.

    Parameters
    ----------
    budgets : ndarray of shape (n_points,)
        B in points.
    support : ndarray of shape (n_points,)
        Support of the last label within each B: below 0 where held-out SVMs and neighbours speak against it.
    budget : int
        What was chosen; 0 where the attacker was left off.
    suspects : int
        Labels with a support below 0.
    reason : str
        Why, in a sentence.

    Attributes
    ----------
    ax_, figure_, line_
        What `plot` drew on and drew.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import BudgetPathDisplay, FloralClassifier
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> y[:40] = 1 - y[:40]
    >>> clf = FloralClassifier(budget="auto", random_state=0).fit(X, y)
    >>> display = BudgetPathDisplay.from_estimator(clf).plot()
    """

    def __init__(self, budgets: np.ndarray, support: np.ndarray, budget: int, suspects: int, reason: str) -> None:
        self.budgets = budgets
        self.support = support
        self.budget = budget
        self.suspects = suspects
        self.reason = reason

    @classmethod
    def from_estimator(cls, estimator: Any) -> BudgetPathDisplay:
        """The display of a FloralClassifier that was fitted with ``budget="auto"``.

        Parameters
        ----------
        estimator : FloralClassifier
            Fitted.
        """
        check_is_fitted(estimator, "budget_")
        found = getattr(estimator, "selection_", None)  # models saved before there was a choice have none
        if found is None:
            raise ValueError(f'budget={estimator.budget!r} was given: there is a path only with budget="auto"')
        return cls(found.path_budget, found.path_support, found.budget, found.suspects, found.reason)

    def plot(self, ax: Any = None) -> BudgetPathDisplay:
        """Draw on `ax`, or on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError("plotting needs matplotlib: pip install 'floral-learn[plot]'") from error
        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        (self.line_,) = ax.plot(self.budgets, self.support, color="C0")
        ax.axhline(0, color="0.6", linewidth=0.8)
        off = self.budget == 0
        ax.axvspan(0, self.suspects, color="0.8" if off else "C1", alpha=0.35, linewidth=0)
        text = f"{self.suspects:,} suspects: " + ("attacker off" if off else f"B = {self.budget:,}")
        ax.annotate(text, (self.suspects, 0), (6, -14), textcoords="offset points")
        ax.set(
            xlabel="least supported labels (budget B)", ylabel="support of the last one", xlim=(0, self.budgets.max())
        )
        ax.set_title(_lines(self.reason), fontsize="medium", loc="left")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _lines(text: str, width: int = 70) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, width))
