"""Pictures of an attack: where the flips are, and what they cost a victim."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_learn.core.validation import generator
from floral_learn.extras import install_line

from .base import LabelAttack, PoisonResult
from .surrogates import fresh


@dataclass
class PoisonDisplay:
    """A 2-D scatter of the labels, flipped rows marked.

    Parameters
    ----------
    X : ndarray of shape (n, 2)
        Rows.
    y : ndarray of shape (n,)
        Labels after the attack.
    flipped : bool ndarray of shape (n,)
        Where the label changed.
    title : str
        Title of the axis.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import PoisonDisplay, poison
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> ax = PoisonDisplay.from_result(X, poison(X, y, budget=0.1)).plot()
    >>> ax.get_title()
    '10 of 100 labels flipped'
    """

    X: np.ndarray
    y: np.ndarray
    flipped: np.ndarray
    title: str = ""

    @classmethod
    def from_result(cls, X: Any, result: PoisonResult, title: str | None = None) -> "PoisonDisplay":
        """Take what is to be drawn from ``X`` (n, 2) and an attack's result; nothing is drawn yet."""
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != 2:
            raise ValueError(f"the scatter needs two features, X has shape {X.shape}; project the rows first (PCA)")
        if len(X) != len(result.y):
            raise ValueError(f"X has {len(X)} rows, the result {len(result.y)} labels")
        n, m = len(result.y), len(result.indices)
        return cls(X, result.y, result.mask, f"{m} of {n} labels flipped" if title is None else title)

    def plot(self, ax: Any = None) -> Any:
        """Draw on ``ax`` (a new figure by default): colour is the given label, a black ring marks a flip."""
        ax = _axis(ax)
        for number, label in enumerate(np.unique(self.y)):
            here = self.y == label
            ax.scatter(*self.X[here].T, s=14, color=f"C{number}", alpha=0.6, linewidths=0, label=f"label {label}")
        ax.scatter(
            *self.X[self.flipped].T, s=42, facecolors="none", edgecolors="black", linewidths=0.9, label="flipped"
        )
        ax.set(xlabel="feature 0", ylabel="feature 1", title=self.title)
        ax.legend(loc="best", fontsize="small")
        return ax


@dataclass
class SecurityCurveDisplay:
    """Test accuracy of a victim against the number of flips, one curve an attack: mean and standard deviation.

    Parameters
    ----------
    budgets : ndarray of shape (n_budgets,)
        Shares (floats) or counts (ints) of flipped labels.
    accuracies : dict
        Attack's name -> array of shape (n_repeats, n_budgets).
    victim : str
        Name for the title.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from floral_learn import SecurityCurveDisplay, load_moon
    >>> from floral_learn.attacks import Farthest, RandomFlips
    >>> moon = load_moon(n_train=100, n_val=1, n_test=200)
    >>> curves = SecurityCurveDisplay.from_estimator(
    ...     SVC(C=10, gamma=1), moon.X_train, moon.y_train, moon.X_test, moon.y_test,
    ...     attacks={"random": RandomFlips(), "farthest": Farthest()}, budgets=(0.0, 0.2), random_state=0,
    ... )
    >>> bool(curves.accuracies["farthest"][0, 1] < curves.accuracies["random"][0, 1])
    True
    >>> ax = curves.plot()
    """

    budgets: np.ndarray
    accuracies: Mapping[str, np.ndarray]
    victim: str = ""

    @classmethod
    def from_estimator(
        cls,
        victim: Any,
        X: Any,
        y: Any,
        X_test: Any,
        y_test: Any,
        *,
        attacks: Mapping[str, LabelAttack],
        budgets: Sequence[float] = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25),
        n_repeats: int = 1,
        random_state: Any = None,
    ) -> "SecurityCurveDisplay":
        """Poison (X, y) at every budget, train the victim on it and score it on clean test rows."""
        from dataclasses import replace

        rng = generator(random_state)
        model = fresh(victim, rng)
        curves = {name: np.empty((n_repeats, len(budgets))) for name in attacks}
        for name, attack in attacks.items():
            for repeat in range(n_repeats):
                seed = int(rng.integers(2**31 - 1))
                for position, budget in enumerate(budgets):
                    labels = replace(attack, budget=budget, random_state=seed).poison(X, y).y
                    curves[name][repeat, position] = model.fit(X, labels).score(X_test, y_test)
        return cls(np.asarray(budgets), curves, type(victim).__name__)

    def plot(self, ax: Any = None) -> Any:
        """Draw the curves on ``ax`` (a new figure by default), with a band of one standard deviation."""
        ax = _axis(ax)
        counts = np.issubdtype(self.budgets.dtype, np.integer)
        x = self.budgets if counts else 100 * self.budgets
        for name, values in self.accuracies.items():
            mean, deviation = values.mean(axis=0), values.std(axis=0)
            (line,) = ax.plot(x, mean, marker="o", markersize=4, label=name)
            if len(values) > 1:
                ax.fill_between(x, mean - deviation, mean + deviation, color=line.get_color(), alpha=0.15)
        ax.set(
            xlabel="flipped labels" if counts else "flipped labels (%)",
            ylabel="test accuracy",
            title=f"security curve of {self.victim}" if self.victim else "security curve",
        )
        ax.legend(loc="best", fontsize="small")
        return ax


def _axis(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"plots need matplotlib: {install_line('plot')}") from error
    return plt.subplots(figsize=(5, 4), layout="constrained")[1]
