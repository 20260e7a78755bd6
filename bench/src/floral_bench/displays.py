"""A picture of what attacks cost: accuracy over the noise rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from floral_learn.attacks import named_attacks
from floral_learn.attacks.surrogates import fresh
from floral_learn.base.extras import drawing_axis
from floral_learn.base.validation import count_points, generator

FIGURE = 5, 4  # inches


@dataclass
class SecurityCurveDisplay:
    """Test accuracy of a victim against the number of flips, one curve per attack: mean and standard deviation.

    `accuracies` maps an attack's name to an array (repeats, budgets); budgets are shares (floats) or counts (ints) of
    flipped labels. `certified` is the share of test rows that are right and stay so under any attack of that budget.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from floral_learn import load_moon
    >>> from floral_bench.displays import SecurityCurveDisplay
    >>> moon = load_moon(n_train=100, n_val=1, n_test=200)
    >>> curves = SecurityCurveDisplay.from_estimator(
    ...     SVC(C=10, gamma=1), moon.X_train, moon.y_train, moon.X_test, moon.y_test,
    ...     attacks=["random", "farthest"], budgets=(0.0, 0.2), random_state=0,
    ... )
    >>> bool(curves.accuracies["farthest"][0, 1] < curves.accuracies["random"][0, 1])
    True
    """

    budgets: np.ndarray
    accuracies: Mapping[str, np.ndarray]
    victim: str = ""
    certified: np.ndarray | None = None

    @classmethod
    def from_estimator(
        cls, victim: Any, X: Any, y: Any, X_test: Any, y_test: Any, *, attacks: Any,
        budgets: Sequence[float] = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25), n_repeats: int = 1, random_state: Any = None,
    ) -> SecurityCurveDisplay:  # fmt: skip
        """Poison (X, y) at every budget with `attacks` (see `named_attacks`), train the victim, score it on test rows.

        Where the victim has ``certified_accuracy``, as `CertifiedKernelClassifier` does, the display has that line too.
        """
        attacks, rng = named_attacks(attacks), generator(random_state)
        model = fresh(victim, rng)
        curves = {name: np.empty((n_repeats, len(budgets))) for name in attacks}
        for name, attack in attacks.items():
            for repeat in range(n_repeats):
                seed = int(rng.integers(2**31 - 1))
                for position, budget in enumerate(budgets):
                    labels = replace(attack, budget=budget, random_state=seed).poison(X, y).y
                    curves[name][repeat, position] = model.fit(X, labels).score(X_test, y_test)
        certified = None
        if hasattr(model, "certified_accuracy"):
            counts = [count_points(budget, len(y), "budgets") for budget in budgets]
            certified = model.fit(X, y).certified_accuracy(X_test, y_test, counts)
        return cls(np.asarray(budgets), curves, type(victim).__name__, certified)

    def plot(self, ax: Any = None) -> SecurityCurveDisplay:
        """Draw the curves on ``ax`` (a new figure by default), with a band of one sample deviation."""
        ax = drawing_axis(ax, FIGURE)
        counts = np.issubdtype(self.budgets.dtype, np.integer)
        x = self.budgets if counts else 100 * self.budgets
        for name, values in self.accuracies.items():
            mean, deviation = values.mean(axis=0), sample_deviation(values, axis=0)
            (line,) = ax.plot(x, mean, marker="o", markersize=4, label=name)
            if len(values) > 1:
                ax.fill_between(x, mean - deviation, mean + deviation, color=line.get_color(), alpha=0.15)
        if self.certified is not None:
            ax.plot(x, self.certified, color="black", linestyle="--", label="certified: no attack goes below")
            ax.fill_between(x, 0, self.certified, color="black", alpha=0.06)
            ax.set_ylim(bottom=0)
        ax.set(
            xlabel="flipped labels" if counts else "flipped labels (%)",
            ylabel="test accuracy",
            title=f"security curve of {self.victim}" if self.victim else "security curve",
        )
        ax.legend(loc="best", fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def sample_deviation(values: Any, axis: int | None = None) -> Any:
    """The sample standard deviation (n - 1 in the denominator) of replications; nan for one.

    Every deviation that the tables, figures and pages show is this one.
    """
    values = np.asarray(values, dtype=float)
    count = values.size if axis is None else values.shape[axis]
    if count < 2:
        return np.full(np.sum(values, axis=axis).shape, np.nan)[()]
    return np.std(values, axis=axis, ddof=1)
