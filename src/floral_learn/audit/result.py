"""What was found about labels, as tables and in sentences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import beta

from floral_learn.audit.decisions import Decision
from floral_learn.base import Shown
from floral_learn.base.frames import same_kind
from floral_learn.labels.evidence import Authors
from floral_learn.labels.noise import PRIOR_ROWS

SHOWN = 6  # neighbours that a page shows
REASONS = ("model", "neighbours", "twin", "small class", "source")


@dataclass(frozen=True, repr=False)
class LabelIssues(Shown):
    """Every label's score, flag and the evidence for it; rows are in the order of the data.

    Attributes
    ----------
    classes : ndarray of shape (M,)
        The labels.
    given, suggested : int ndarray of shape (n,)
        Class numbers of the given label and of the most probable other one.
    score : ndarray of shape (n,)
        Estimate of how probable it is that each label is wrong, too low where errors were chosen; ranks the labels.
    flagged : bool ndarray of shape (n,)
        Labels to look at: the set with the largest expected F1.
    wrong_share : float
        Estimated share of wrong labels, too low where errors were chosen.
    probability : ndarray of shape (n, M)
        What held-out judges say of each row.
    reasons : bool ndarray of shape (n, 5)
        Which reasons hold: the judges disagree, most neighbours disagree, a nearly equal row has another label, the
        class is too small to judge, other labels of the same source do not fit either.
    neighbour_disagreement : ndarray of shape (n,)
        Share of the nearest rows with another label.
    neighbours : int ndarray of shape (n, shown)
        Positions of the nearest rows.
    near_duplicate_pairs : int ndarray of shape (pairs, 2)
        Positions of nearly equal rows with different labels.
    map_position : ndarray of shape (n, 2)
        Positions on a map.
    map_method : str
        How the map was made.
    informative : bool
        Whether held-out predictions are better than guessing by class shares; if not, nothing is flagged.
    class_notes : list of str
        Classes of a few rows and names that mean the same class: what to look at before anything else.
    row_numbers : int ndarray of shape (n,)
        The number of each row in its file.
    index : pandas.Index or None
        The index of the frame that was given.
    ids : list of str or None
        Names of the rows.
    groups : ndarray of shape (n,) or None
        Who gave each label.
    authors : Authors or None
        How well the labels of each of them fit the rest; see `group_ranking`.
    trusted : bool ndarray of shape (n,) or None
        Labels that were known to be right.
    decisions : list of Decision
        Earlier decisions that were taken into account.
    columns : DataFrame or None
        Columns that the page shows.
    notes : list of str
        What was done to the columns.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import find_label_issues
    >>> X, y = make_moons(200, noise=0.15, random_state=0)
    >>> y[:15] = 1 - y[:15]
    >>> issues = find_label_issues(X, y, groups=["ann", "bob"] * 100, random_state=0)
    >>> list(issues.to_frame().columns)
    ['row', 'given', 'suggested', 'score', 'flagged', 'contradicted', 'reasons']
    >>> len(issues.group_ranking()), issues.cleaned_labels().shape
    (2, (200,))
    """

    classes: np.ndarray
    given: np.ndarray
    suggested: np.ndarray
    score: np.ndarray
    flagged: np.ndarray
    probability: np.ndarray
    reasons: np.ndarray
    neighbour_disagreement: np.ndarray
    neighbours: np.ndarray
    near_duplicate_pairs: np.ndarray
    map_position: np.ndarray
    wrong_share: float = float("nan")
    map_method: str = "nothing"
    informative: bool = True
    class_notes: list[str] = field(default_factory=list)
    row_numbers: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=int))
    index: Any = None
    ids: list[str] | None = None
    groups: np.ndarray | None = None
    authors: Authors | None = None
    trusted: np.ndarray | None = None
    decisions: list[Decision] = field(default_factory=list)
    columns: Any = None
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.given)

    @property
    def contradicted(self) -> np.ndarray:
        """All labels than which held-out predictions find another class more probable, (n,): many of them are right."""
        return self.reasons[:, REASONS.index("model")]

    @property
    def ranking(self) -> np.ndarray:
        """Positions of the rows, the most doubtful first."""
        return np.argsort(-self.score, kind="stable")

    def to_frame(self) -> Any:
        """Return a DataFrame of all rows, the most doubtful first, with the index of the given frame.

        Returns
        -------
        DataFrame
            row, (id,) given, suggested, score, flagged, contradicted, reasons.
        """
        import pandas as pd

        order = self.ranking
        frame = pd.DataFrame(
            {
                "row": self.row_numbers[order],
                "given": self.classes[self.given[order]],
                "suggested": self.classes[self.suggested[order]],
                "score": self.score[order],
                "flagged": self.flagged[order],
                "contradicted": self.contradicted[order],
                "reasons": [", ".join(r for r, true in zip(REASONS, row) if true) for row in self.reasons[order]],
            },
            index=None if self.index is None else self.index[order],
        )
        if self.ids is not None:
            frame.insert(1, "id", [self.ids[position] for position in order])
        return same_kind(frame, self.columns)

    def near_duplicates(self) -> Any:
        """Return a DataFrame of pairs of nearly equal rows with different labels, the nearest first.

        Returns
        -------
        DataFrame
            row, given, other_row, other_given.
        """
        import pandas as pd

        one, other = self.near_duplicate_pairs.reshape(-1, 2).T
        named = {"row": self.row_numbers, "given": self.classes[self.given]}
        pair = {name: values[one] for name, values in named.items()}
        pair |= {f"other_{name}": values[other] for name, values in named.items()}
        return same_kind(pd.DataFrame(pair), self.columns)

    def cleaned_labels(self) -> np.ndarray:
        """Return the labels, those that are flagged and more probably wrong than right replaced by the suggestion.

        See `why_not_cleaned` before you train on them.
        """
        replaced = self.flagged & (self.score > 0.5)
        return self.classes[np.where(replaced, self.suggested, self.given)]

    def why_not_cleaned(self) -> str | None:
        """Return why flagged labels should not be replaced unseen, or None where they may be."""
        if not self.informative:
            return "the labels cannot be judged"
        overlap = 2 * self.wrong_share < self.contradicted.mean()
        return "classes overlap, and most of the contradicted labels are estimated right" if overlap else None

    def confusion(self) -> np.ndarray:
        """Count flagged rows by given (row) and suggested (column) class, (M, M)."""
        rows, m = np.flatnonzero(self.flagged), len(self.classes)
        return np.bincount(m * self.given[rows] + self.suggested[rows], minlength=m * m).reshape(m, m)

    def group_ranking(self) -> Any:
        """Return a DataFrame of annotators or sources, the most doubtful first; None without groups.

        ``rate`` is the share of a group's labels that are flagged, ``score`` the same shrunk towards the overall rate
        (as if each group had ten more rows of it, so that a group of three rows does not lead the list), ``ratio``
        the score over the overall rate. ``fit`` is the estimated share of the group's labels that are right, ``low``
        and ``high`` a 95 % interval for it: few rows leave a wide one. A low fit has many innocent causes, hard rows
        among them.
        """
        import pandas as pd

        if self.groups is None:
            return None
        names, code = np.unique(self.groups, return_inverse=True)
        rows = np.bincount(code)
        flagged = np.bincount(code, weights=self.flagged).astype(int)
        overall = flagged.sum() / len(self)
        score = (flagged + PRIOR_ROWS * overall) / (rows + PRIOR_ROWS)
        frame = pd.DataFrame({"group": names, "rows": rows, "flagged": flagged, "rate": flagged / rows, "score": score})
        frame["ratio"] = frame["score"] / overall if overall else 1.0
        if self.authors is not None:
            at = np.minimum(np.searchsorted(self.authors.names, names), len(self.authors.names) - 1)
            # not of sources none of whose labels could be judged
            known = self.authors.names[at] == names
            for column in ("reliability", "low", "high"):
                values = getattr(self.authors, column)[at]
                frame["fit" if column == "reliability" else column] = np.where(known, values, np.nan)
        return same_kind(frame.sort_values("score", ascending=False, kind="stable", ignore_index=True), self.columns)

    def summary(self) -> list[str]:
        """Return the result in sentences: what the classes' names say, what is known, and what is not."""
        return [*self.class_notes, *sentences(self)]

    def _facts(self) -> dict[str, str]:
        names = {"names": "; ".join(self.class_notes)} if self.class_notes else {}
        return {"labels": f"{len(self):,}, {len(self.classes)} classes", **names, "found": headline(self)}


def overlapping_pairs(probability: np.ndarray) -> list[tuple[int, int, int]]:
    """Pairs of classes, the second at least half as probable as the first, and in how many rows; most rows first."""
    top = np.sort(np.argpartition(-probability, 1, axis=1)[:, :2], axis=1)
    two = np.take_along_axis(probability, top, axis=1)
    # rows without any were not judged
    close = (2 * two.min(axis=1) >= two.max(axis=1)) & two.any(axis=1)
    pairs, rows = np.unique(top[close], axis=0, return_counts=True)
    return [(*pairs[k].tolist(), int(rows[k])) for k in np.argsort(-rows, kind="stable")]


def headline(result: LabelIssues) -> str:
    """What was found, in one sentence."""
    n, flagged = len(result), int(result.flagged.sum())
    if not result.informative:
        return "Stop: the columns used here do not predict the label, so no label can be called wrong from them."
    if not flagged:
        return f"No label of {n:,} stands out as wrong."
    found = f"{flagged:,} of {n:,} labels ({100 * flagged / n:.1f} %) look wrong"
    share = f"about {100 * result.wrong_share:.1f} % of all labels are estimated wrong"
    return f"{found}, and {share}. Held-out predictions contradict {result.contradicted.sum():,}."


def sentences(result: LabelIssues, least: float = 0.05) -> list[str]:
    """The result in a few sentences, the most important first; classes that overlap in `least` of the rows."""
    said = [headline(result)]
    if not result.informative:
        said.append(
            "Held-out predictions are no better than the shares of the classes. Nothing is flagged. Use other columns "
            "(--text COLUMN reads prose, --drop leaves one out) or, in Python, another judge (model=, pred_probs=)."
        )
        return said + _twins(result)
    said.append(f"Held-out predictions agree with {100 * (1 - result.contradicted.mean()):.1f} % of the labels.")
    said += [
        f"{str(result.classes[a])!r} and {str(result.classes[b])!r} look alike in {rows:,} rows: their labels there "
        "cannot be judged from these columns."
        for a, b, rows in overlapping_pairs(result.probability)[:3]
        if rows >= least * len(result)
    ]
    said += _twins(result) + _sources(result)
    said.append(
        "Errors that somebody chose to look plausible can hide from any such list; the command floral review finds "
        "them by asking about a few rows."
    )
    return said


def _twins(result: LabelIssues) -> list[str]:
    pairs = len(result.near_duplicate_pairs)
    return [f"{pairs:,} pair{'s' if pairs > 1 else ''} of nearly equal rows carry different labels."] if pairs else []


def _sources(result: LabelIssues) -> list[str]:
    """Sources whose labels surely fit less often than those of the rest, in words that do not accuse.

    One in twenty honest lists names somebody. The level is shared by all sources (Bonferroni): with thirty of them one
    interval in forty would name many in vain.
    """
    people = result.authors
    if people is None:
        return []
    usual, seen = float(np.median(people.reliability)), people.labels + PRIOR_ROWS
    below = beta.cdf(usual, people.reliability * seen, (1 - people.reliability) * seen)
    low = np.flatnonzero(1 - below < 0.05 / len(seen))
    low = low[np.argsort(people.reliability[low], kind="stable")]
    if not len(low):
        return []
    some = ", ".join(f"{people.names[a]} ({100 * people.low[a]:.0f} to {100 * people.high[a]:.0f} %)" for a in low[:3])
    more = f" and {len(low) - 3} more" if len(low) > 3 else ""
    return [
        f"Labels of {some}{more} fit the rest of the data less often than is usual here ({100 * usual:.0f} %); each of "
        "their labels is weighed by that. Hard rows and other instructions look the same: look before you conclude."
    ]
