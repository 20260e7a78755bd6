"""Which poisoned labels the in-loop attacker flips back, round by round (the paper's appendix on recovery).

A poisoned label that the attacker of the game flips is, for that round, the true one again. The share of such labels is
the paper's recovery rate; where the poisoned rows are known (planted or published), it can be computed from any fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_learn.base.extras import drawing_axis


@dataclass(frozen=True, repr=False)
class Recovery:
    """Recovery of m poisoned labels over the rounds of a fit."""

    poisoned: np.ndarray  # (m,), row numbers
    per_round: np.ndarray  # (rounds,), share of the poisoned labels flipped back in a round
    ever: np.ndarray  # (rounds,), share flipped back at least once so far
    per_label: np.ndarray  # (m,), share of the attacked rounds in which each was flipped back
    precision: np.ndarray  # (rounds,), share of a round's flips that hit a poisoned label (NaN without flips)

    def __repr__(self) -> str:
        ever = 100 * float(self.ever[-1]) if len(self.ever) else 0.0
        return (
            f"Recovery({len(self.poisoned):,} poisoned labels over {len(self.per_round):,} rounds: "
            f"{100 * self.mean:.0f} % flipped back per round, {ever:.0f} % at least once)"
        )

    @property
    def mean(self) -> float:
        """Recovery rate averaged over the attacked rounds (the paper's bar)."""
        attacked = ~np.isnan(self.precision)
        return float(self.per_round[attacked].mean()) if attacked.any() else 0.0


def recovery(clf: Any, poisoned: Any) -> Recovery:
    """Compute how often known poisoned labels were flipped back in a fit.

    For more than two classes "flipped" counts whatever the new class is: the game does not keep it.

    `poisoned` are the row numbers of the poisoned labels, or a boolean mask.

    Examples
    --------
    >>> from floral_learn import FloralClassifier, load_moon, poison
    >>> from floral_bench.recovery import recovery
    >>> moon = load_moon(n_train=200, n_val=1, n_test=1)
    >>> bad = poison(moon.X_train, moon.y_train, budget=0.1, random_state=0)
    >>> clf = FloralClassifier(gamma=1.0, budget=0.2, n_rounds=100, tol=None, random_state=0).fit(moon.X_train, bad.y)
    >>> recovery(clf, bad.mask).per_round.shape
    (100,)
    """
    if not hasattr(clf, "history_"):
        raise ValueError("recovery needs a fitted FloralClassifier: call fit first")
    n = len(clf.flip_rate_)
    rows = np.asarray(poisoned)
    if rows.dtype == bool:
        if rows.shape != (n,):
            raise ValueError(f"poisoned is a mask of shape {rows.shape}; the fit had {n} rows")
        rows = np.flatnonzero(rows)
    if not len(rows):
        raise ValueError("poisoned names no row")
    if rows.min() < 0 or rows.max() >= n:
        raise ValueError(f"poisoned names row {int(rows.max())}; the fit had rows 0 to {n - 1}")
    flips = np.asarray(clf.history_["flips"])
    flips = flips.reshape(len(flips), -1)
    position = np.full(n + 1, -1)  # the last place stands for the -1 of an empty flip
    position[rows] = np.arange(len(rows))
    hits = position[flips]
    hit = np.zeros((len(flips), len(rows)), dtype=bool)
    round_of, _ = np.nonzero(hits >= 0)
    hit[round_of, hits[hits >= 0]] = True
    made = (flips >= 0).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(made > 0, hit.sum(axis=1) / np.maximum(made, 1), np.nan)
    attacked = max(int((made > 0).sum()), 1)
    ever = np.logical_or.accumulate(hit, axis=0).mean(axis=1)
    return Recovery(rows, hit.mean(axis=1), ever, hit.sum(axis=0) / attacked, precision)


class RecoveryDisplay:
    """Draw a `Recovery`: its course over the rounds, or (``plot_points``) which points were flipped back how often."""

    def __init__(self, found: Recovery) -> None:
        self.found = found

    def plot(self, ax: Any = None, label: str = "poisoned labels flipped back") -> RecoveryDisplay:
        """Draw the share per round, smoothed over 25 rounds, and the share flipped back at least once."""
        ax = self._axis(ax)
        window = np.ones(min(25, len(self.found.per_round)))
        count = np.convolve(np.ones(len(self.found.per_round)), window, mode="same")
        smooth = np.convolve(self.found.per_round, window, mode="same") / count
        (line,) = ax.plot(100 * smooth, label=f"{label}: {100 * self.found.mean:.0f} % per round")
        ax.plot(100 * self.found.ever, linestyle=":", color=line.get_color(), label="at least once so far")
        ax.set(xlabel="round", ylabel="poisoned labels (%)", ylim=(0, 130), yticks=range(0, 101, 20))
        ax.legend(fontsize="small", frameon=False, loc="upper left")
        return self

    def plot_points(self, X: np.ndarray, ax: Any = None) -> RecoveryDisplay:
        """Draw two features of all rows in grey and the poisoned ones coloured by their recovery rate."""
        ax = self._axis(ax)
        X = np.asarray(X)[:, :2]
        ax.scatter(*X.T, s=4, color="0.8")
        at = X[self.found.poisoned]
        dots = ax.scatter(*at.T, s=18, c=100 * self.found.per_label, cmap="viridis", vmin=0, edgecolor="black", lw=0.3)
        ax.figure.colorbar(dots, ax=ax, label="rounds flipped back (%)")
        ax.set(xticks=[], yticks=[])
        return self

    def _axis(self, ax: Any) -> Any:
        ax = drawing_axis(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return ax
