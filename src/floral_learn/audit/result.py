"""What an audit found, as tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.core.suspicion import reason_texts

THRESHOLD = 0.5
_PRIOR_ROWS = 20  # a group's rate is shrunk towards the overall one as if it had this many rows more


def pandas() -> Any:
    """Import pandas, or say how to get it."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("an audit's tables need pandas: pip install 'floral-learn[pandas]'") from error
    return pd


@dataclass(frozen=True)
class AuditResult:
    """Every label's suspicion and the evidence for it; rows are in the order of the data.

    Attributes
    ----------
    classes : ndarray of shape (M,)
        The labels.
    given, suggested : int ndarray of shape (n,)
        Class numbers of the given label and of the best other one.
    suspicion : ndarray of shape (n,)
        Estimate of the probability that a label is wrong.
    raw : ndarray of shape (n,)
        The score before calibration.
    disagreement, neighbour_disagreement, flip_rate : ndarray of shape (n,)
        What the score is made of: the games' models, the neighbours, the attacker.
    holds : bool ndarray of shape (n, 4)
        Which reasons hold.
    neighbours : int ndarray of shape (n, shown)
        Row numbers of the nearest rows.
    place : ndarray of shape (n, 2)
        Positions on a map.
    map_name : str
        How the map was made.
    wrong_share : float
        Estimated share of wrong labels.
    path : list of dict
        Budget, issues and agreement along a path of budgets.
    groups : ndarray of shape (n,) or None
        Who gave each label.
    notes : list of str
        What was done to the columns.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.audit import audit
    >>> X, y = make_moons(200, noise=0.15, random_state=0)
    >>> y[:15] = 1 - y[:15]
    >>> found = audit(X, y, groups=["ann", "bob"] * 100, random_state=0)
    >>> list(found.label_issues().columns)
    ['row', 'given', 'suggested', 'suspicion', 'reasons']
    >>> len(found.group_ranking()), found.cleaned(threshold=0.5).shape
    (2, (200,))
    """

    classes: np.ndarray  # (M,)
    given: np.ndarray  # (n,), class numbers
    suggested: np.ndarray  # (n,), the best other class
    suspicion: np.ndarray  # (n,), estimate of P(label is wrong)
    raw: np.ndarray  # (n,), the score before calibration
    disagreement: np.ndarray  # (n,), of the games' models
    neighbour_disagreement: np.ndarray  # (n,)
    flip_rate: np.ndarray  # (n,)
    holds: np.ndarray  # (n, reasons), bool
    neighbours: np.ndarray  # (n, shown), row numbers
    place: np.ndarray  # (n, 2), for a map
    map_name: str
    wrong_share: float  # estimated share of wrong labels
    path: list[dict[str, float]]  # budget, issues, agreement
    groups: np.ndarray | None = None  # (n,), texts
    notes: list[str] = field(default_factory=list)

    @property
    def n(self) -> int:
        """How many rows were looked at."""
        return len(self.given)

    @property
    def order(self) -> np.ndarray:
        """Row numbers, most suspicious first."""
        return np.argsort(-self.suspicion, kind="stable")

    def flagged(self, threshold: float = THRESHOLD) -> np.ndarray:
        """Row numbers with a suspicion of at least `threshold`, most suspicious first."""
        return self.order[: int((self.suspicion >= threshold).sum())]

    def label_issues(self) -> Any:
        """Return a DataFrame of all rows: row, given, suggested, suspicion, reasons; most suspicious first."""
        order = self.order
        return pandas().DataFrame(
            {
                "row": order,
                "given": self.classes[self.given[order]],
                "suggested": self.classes[self.suggested[order]],
                "suspicion": self.suspicion[order],
                "reasons": reason_texts(self.holds[order]),
            }
        )

    def cleaned(self, threshold: float = THRESHOLD) -> np.ndarray:
        """Return the labels, those with a suspicion of at least `threshold` replaced by the suggestion."""
        return self.classes[np.where(self.suspicion >= threshold, self.suggested, self.given)]

    def confusion(self, threshold: float = THRESHOLD) -> np.ndarray:
        """Count flagged rows by given (row) and suggested (column) class, (M, M)."""
        rows = self.flagged(threshold)
        m = len(self.classes)
        return np.bincount(m * self.given[rows] + self.suggested[rows], minlength=m * m).reshape(m, m)

    def group_ranking(self, threshold: float = THRESHOLD) -> Any:
        """Return a DataFrame of annotators or sources, the most suspicious first; None without groups.

        ``wrong`` is the expected number of wrong labels (the sum of suspicions), ``rate`` its share of the group's
        rows, ``score`` the rate shrunk towards the overall one (so that a group of three rows does not lead the list),
        ``ratio`` the score over the overall rate.
        """
        if self.groups is None:
            return None
        names, code = np.unique(self.groups, return_inverse=True)
        rows = np.bincount(code)
        wrong = np.bincount(code, weights=self.suspicion)
        flagged = np.bincount(code, weights=self.suspicion >= threshold).astype(int)
        overall = max(float(self.suspicion.mean()), 1e-12)
        score = (wrong + _PRIOR_ROWS * overall) / (rows + _PRIOR_ROWS)
        frame = pandas().DataFrame(
            {"group": names, "rows": rows, "flagged": flagged, "wrong": wrong, "rate": wrong / rows, "score": score}
        )
        frame["ratio"] = frame["score"] / overall
        return frame.sort_values("score", ascending=False, kind="stable", ignore_index=True)

    def to_html(self, path: str | Path | None = None, **details: Any) -> str:
        """Return (and, with a `path`, write) the page; `details` go to `floral_learn.audit.page.render`."""
        from floral_learn.audit.page import render

        html = render(self, **details)
        if path is not None:
            Path(path).write_text(html, encoding="utf-8")
        return html

    def __repr__(self) -> str:
        flagged = len(self.flagged())
        return (
            f"AuditResult({self.n:,} rows, {len(self.classes)} classes, {flagged:,} flagged, "
            f"about {100 * self.wrong_share:.1f} % wrong)"
        )
