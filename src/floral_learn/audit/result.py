"""What an audit found, as tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.audit.decisions import Decision
from floral_learn.audit.words import headline, overlapping_classes, sentences
from floral_learn.base.extras import install_line
from floral_learn.files.atomic_files import write_atomically

THRESHOLD = 0.5
REASONS = ("model", "neighbours", "twin", "small class", "source")
_PRIOR_ROWS = 20  # a group's rate is shrunk towards the overall one as if it had this many rows more
_HEAD = 10


def pandas() -> Any:
    """Import pandas, or say how to get it."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(f"an audit's tables need pandas: {install_line('cli')}") from error
    return pd


@dataclass(frozen=True, repr=False)
class AuditResult:
    """Every label's suspicion and the evidence for it; rows are in the order of the data.

    Attributes
    ----------
    classes : ndarray of shape (M,)
        The labels.
    given, suggested : int ndarray of shape (n,)
        Class numbers of the given label and of the most probable other one.
    suspicion : ndarray of shape (n,)
        A score in [0, 1], not a probability; labels of at least 0.5 are flagged.
    probabilities : ndarray of shape (n, M)
        What the held-out judge says of each row.
    disagreement, neighbour_disagreement : ndarray of shape (n,)
        Probability of any other label by the model; share of the neighbours with another label.
    holds : bool ndarray of shape (n, 5)
        Which reasons hold: the model disagrees, most neighbours disagree, a nearly equal row has another label, the
        class is too small to judge, other labels of the same source do not fit either.
    neighbours : int ndarray of shape (n, shown)
        Positions of the nearest rows.
    twins : int ndarray of shape (pairs, 2)
        Positions of nearly equal rows with different labels.
    place : ndarray of shape (n, 2)
        Positions on a map.
    map_name : str
        How the map was made.
    gain : float
        Share of the log loss of guessing by class shares that the held-out predictions save.
    informative : bool
        Whether they are better than guessing by class shares; if not, nothing is flagged.
    apart : bool
        Whether contradicted labels form a group of their own. If not, classes overlap or few labels are wrong, and
        labels should not be replaced without a look.
    agreement : float
        Share of the judged labels that the held-out predictions repeat.
    alike : list of (int, int, int)
        Pairs of classes that cannot be told apart in some rows, and in how many.
    names : list of str
        Classes of a few rows and names that mean the same class: what to look at before anything else.
    rows : int ndarray of shape (n,)
        The number of each row in its file.
    index : pandas.Index or None
        The index of the frame that was audited.
    ids : list of str or None
        Names of the rows.
    groups : ndarray of shape (n,) or None
        Who gave each label.
    authors : DataFrame or None
        How well the labels of each of them fit the rest, as `VoteAggregation.annotators`; see `group_ranking`.
    trusted : bool ndarray of shape (n,) or None
        Labels that were known to be right.
    decisions : list of Decision
        Earlier decisions that the audit took into account.
    shown : DataFrame or None
        Columns that the page shows.
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
    ['row', 'given', 'suggested', 'suspicion', 'flagged', 'reasons']
    >>> len(found.group_ranking()), found.cleaned().shape
    (2, (200,))
    """

    classes: np.ndarray
    given: np.ndarray
    suggested: np.ndarray
    suspicion: np.ndarray
    probabilities: np.ndarray
    disagreement: np.ndarray
    neighbour_disagreement: np.ndarray
    holds: np.ndarray
    neighbours: np.ndarray
    twins: np.ndarray
    place: np.ndarray
    map_name: str
    gain: float
    informative: bool
    apart: bool
    agreement: float
    alike: list[tuple[int, int, int]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    rows: np.ndarray | None = None
    index: Any = None
    ids: list[str] | None = None
    groups: np.ndarray | None = None
    authors: Any = None
    trusted: np.ndarray | None = None
    decisions: list[Decision] = field(default_factory=list)
    shown: Any = None
    notes: list[str] = field(default_factory=list)

    @property
    def n(self) -> int:
        """How many rows were looked at."""
        return len(self.given)

    @property
    def numbers(self) -> np.ndarray:
        """The number of each row in its file, (n,)."""
        return np.arange(self.n) if self.rows is None else self.rows

    @property
    def order(self) -> np.ndarray:
        """Positions of the rows, most suspicious first."""
        return np.argsort(-self.suspicion, kind="stable")

    @property
    def wrong_share(self) -> float:
        """Share of the labels that are flagged: an estimate of the share of wrong ones where they stand `apart`."""
        return float((self.suspicion >= THRESHOLD).mean())

    def flagged(self, threshold: float = THRESHOLD) -> np.ndarray:
        """Positions of the rows with a suspicion of at least `threshold`, most suspicious first."""
        return self.order[: int((self.suspicion >= threshold).sum())]

    def label_issues(self) -> Any:
        """Return a DataFrame of all rows, most suspicious first, with the index of the audited frame.

        Returns
        -------
        DataFrame
            row, (id,) given, suggested, suspicion, flagged, reasons.
        """
        order = self.order
        frame = pandas().DataFrame(
            {
                "row": self.numbers[order],
                "given": self.classes[self.given[order]],
                "suggested": self.classes[self.suggested[order]],
                "suspicion": self.suspicion[order],
                "flagged": self.suspicion[order] >= THRESHOLD,
                "reasons": [", ".join(r for r, true in zip(REASONS, row) if true) for row in self.holds[order]],
            },
            index=None if self.index is None else self.index[order],
        )
        if self.ids is not None:
            frame.insert(1, "id", [self.ids[position] for position in order])
        return frame

    def near_duplicates(self) -> Any:
        """Return a DataFrame of pairs of nearly equal rows with different labels, the nearest first.

        Returns
        -------
        DataFrame
            row, given, other_row, other_given.
        """
        one, other = self.twins.reshape(-1, 2).T
        return pandas().DataFrame(
            {
                "row": self.numbers[one],
                "given": self.classes[self.given[one]],
                "other_row": self.numbers[other],
                "other_given": self.classes[self.given[other]],
            }
        )

    def cleaned(self, threshold: float = THRESHOLD) -> np.ndarray:
        """Return the labels, those with a suspicion of at least `threshold` replaced by the suggestion."""
        return self.classes[np.where(self.suspicion >= threshold, self.suggested, self.given)]

    def why_not_cleaned(self) -> str | None:
        """Return why flagged labels should not be replaced unseen, or None where they may be."""
        if not self.informative:
            return "the labels cannot be judged"
        if not self.apart:
            return "classes overlap or few labels stand out"
        return overlapping_classes(self)

    def confusion(self, threshold: float = THRESHOLD) -> np.ndarray:
        """Count flagged rows by given (row) and suggested (column) class, (M, M)."""
        rows = self.flagged(threshold)
        m = len(self.classes)
        return np.bincount(m * self.given[rows] + self.suggested[rows], minlength=m * m).reshape(m, m)

    def group_ranking(self, threshold: float = THRESHOLD) -> Any:
        """Return a DataFrame of annotators or sources, the most suspicious first; None without groups.

        ``rate`` is the share of a group's labels that are flagged, ``score`` the same shrunk towards the overall rate
        (as if each group had twenty more rows of it, so that a group of three rows does not lead the list), ``ratio``
        the score over the overall rate. ``fit`` is the estimated share of the group's labels that are right, ``low``
        and ``high`` a 95 % interval for it: few rows leave a wide one. A low fit has many innocent causes, hard rows
        among them.
        """
        if self.groups is None:
            return None
        names, code = np.unique(self.groups, return_inverse=True)
        rows = np.bincount(code)
        flagged = np.bincount(code, weights=self.suspicion >= threshold).astype(int)
        overall = flagged.sum() / self.n
        score = (flagged + _PRIOR_ROWS * overall) / (rows + _PRIOR_ROWS)
        frame = pandas().DataFrame(
            {"group": names, "rows": rows, "flagged": flagged, "rate": flagged / rows, "score": score}
        )
        frame["ratio"] = frame["score"] / overall if overall else 1.0
        if self.authors is not None:
            fit = self.authors.set_index("annotator").reindex(names)
            frame["fit"], frame["low"], frame["high"] = (fit[c].to_numpy() for c in ("reliability", "low", "high"))
        return frame.sort_values("score", ascending=False, kind="stable", ignore_index=True)

    def summary(self) -> list[str]:
        """Return the result in sentences: what the classes' names say, what is known, and what is not."""
        return [*self.names, *sentences(self)]

    def to_html(self, path: str | Path | None = None, **details: Any) -> str | None:
        """Write the page to `path`, or return it without one; `details` go to `floral_learn.audit.page.render`."""
        from floral_learn.audit.page import render

        html = render(self, **details)
        if path is None:
            return html
        write_atomically(path, html)
        return None

    def __repr__(self) -> str:
        lines = [f"AuditResult: {self.n:,} rows, {len(self.classes)} classes", *self.names, headline(self)]
        return "\n  ".join(lines)

    def _repr_html_(self) -> str:
        from html import escape

        table = self.label_issues().head(_HEAD).to_html(float_format="{:.3f}".format, border=0)
        return "".join(f"<p>{escape(line)}</p>" for line in self.summary()) + table


def look_alikes(probabilities: np.ndarray, known: np.ndarray) -> list[tuple[int, int, int]]:
    """Pairs of classes, the second at least half as probable as the first, and in how many rows; most rows first."""
    top = np.argsort(-probabilities, axis=1)[:, :2]
    at = np.arange(len(top))
    close = 2 * probabilities[at, top[:, 1]] >= probabilities[at, top[:, 0]]
    pairs, counts = np.unique(np.sort(known[top[close]], axis=1), axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [(int(pairs[i, 0]), int(pairs[i, 1]), int(counts[i])) for i in order]
