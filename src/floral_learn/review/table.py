"""What a review is about: rows and their given labels, checked; and what is computed from them before any answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_consistent_length

from floral_learn.base.alignment import align
from floral_learn.base.frames import frame_from_parts, frame_parts, is_frame
from floral_learn.base.rows import InputRows, as_items, read_rows, stack_rows
from floral_learn.base.validation import refuse_measurements, refuse_several_labels
from floral_learn.encoders import encoder_for
from floral_learn.labels import judge_labels
from floral_learn.review.beliefs import ReviewData
from floral_learn.review.posterior import Evidence, Problem, infer
from floral_learn.review.questions import POOL, subset
from floral_learn.review.rows import (
    Likeness,
    checked_column,
    compared_rows,
    encoded_labels,
    own_scores,
    without_holes,
)
from floral_learn.review.rules import SAMPLE


@dataclass(frozen=True)
class ReviewTable:
    """Rows and what came with them.

    Attributes
    ----------
    rows : InputRows
        As they were given, and as numbers.
    given : ndarray of shape (n,)
        The given labels.
    classes, codes : ndarrays of shape (M,) and (n,)
        The labels that can be true, sorted, and the number of each given one among them.
    trusted, weight : ndarrays of shape (n,)
        Which labels are known to be right, and what rows count.
    groups : ndarray of shape (n,) or None
        Where labels come from.
    """

    rows: InputRows
    given: np.ndarray
    classes: np.ndarray
    codes: np.ndarray
    trusted: np.ndarray
    weight: np.ndarray
    groups: np.ndarray | None

    @classmethod
    def read(cls, X: Any, y: Any, trusted: Any, groups: Any, sample_weight: Any, classes: Any) -> ReviewTable:
        """Check everything that a caller hands in; what carries an index is matched by it."""
        refuse_several_labels(y)
        y, trusted = align(X, y), align(X, trusted, ("X", "trusted"))
        groups, weight = align(X, groups, ("X", "groups")), align(X, sample_weight, ("X", "sample_weight"))
        rows = read_rows(X, allow_nan=True, min_rows=2, encoder=encoder_for(X), y=y)
        return cls.checked(rows, y, trusted, groups, weight, classes)

    @classmethod
    def checked(
        cls, rows: InputRows, y: Any, trusted: Any, groups: Any, sample_weight: Any, classes: Any
    ) -> ReviewTable:
        """The table of `rows` that are read already."""
        y = np.asarray(y)
        known, codes = encoded_labels(y, classes)
        check_consistent_length(rows.numbers, y)
        if not sparse.issparse(rows.numbers) and np.isnan(rows.numbers).all():
            raise ValueError("X holds missing values only")
        n = len(y)
        trusted = checked_column(trusted, n, "trusted", bool)
        weight = checked_column(sample_weight, n, "sample_weight", float)
        if not weight.any():
            raise ValueError("sample_weight is 0 on every row; give some rows weight")
        groups = None if groups is None else checked_column(groups, n, "groups", None)
        return cls(rows, y, known, codes, trusted, weight, groups)

    @cached_property
    def likeness(self) -> Likeness:
        """Which rows are nearly the same."""
        some = np.linspace(0, len(self.given) - 1, min(SAMPLE, len(self.given)))
        return Likeness.of(self.rows.numbers, some.astype(int))

    def with_more(self, X: Any, y: Any, trusted: Any, groups: Any, sample_weight: Any) -> ReviewTable:
        """The table with further rows below."""
        if (groups is None) != (self.groups is None):
            raise ValueError("groups must be given for the new rows exactly if the review has them")
        as_given = is_frame(X) or encoder_for(X) is not None
        rows = stack_rows(self.rows.given, X if as_given else read_rows(X, allow_nan=True).numbers)
        named = {"y": y, "trusted": trusted, "groups": groups, "sample_weight": sample_weight}
        y, trusted, groups, sample_weight = (align(X, value, ("X", name)) for name, value in named.items())
        refuse_several_labels(y)
        y, count = np.asarray(y), rows.shape[0] - len(self.given)
        refuse_measurements(y, "LabelReview")
        if len(y) != count:
            raise ValueError(f"X has {count} new rows and y has {len(y)} labels; they must match")
        unknown = sorted({str(v) for v in y.tolist()} - {str(c) for c in self.classes.tolist()})
        if unknown:
            raise ValueError(f"y holds labels that the review does not know: {', '.join(unknown)}")
        return ReviewTable.read(
            rows,
            np.concatenate([self.given, y]),
            np.concatenate([self.trusted, checked_column(trusted, count, "trusted", bool)]),
            None if groups is None else np.concatenate([self.groups, checked_column(groups, count, "groups", None)]),
            np.concatenate([self.weight, checked_column(sample_weight, count, "sample_weight", float)]),
            self.classes,
        )

    def state(self) -> dict[str, Any]:
        """As arrays and plain values, for a file."""
        given = self.rows.given
        items = given.tolist() if not is_frame(given) and getattr(given, "ndim", 2) == 1 else None
        if items is not None and not all(isinstance(item, str) for item in items):
            raise ValueError("a review file holds texts and paths of pictures, not the pictures")
        return {
            "X": self.rows.numbers,
            "frame": frame_parts(given) if is_frame(given) else None,
            "items": items,
            "y": self.given,
            "classes": self.classes,
            "trusted": self.trusted,
            "groups": self.groups,
            "sample_weight": self.weight,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> ReviewTable:
        """The table behind `state`: nothing is encoded again but frames."""
        columns = [state[name] for name in ("y", "trusted", "groups", "sample_weight", "classes")]
        if state["items"] is not None:
            return cls.checked(InputRows(state["X"], as_items(state["items"])), *columns)
        return cls.read(state["X"] if state["frame"] is None else frame_from_parts(state["frame"]), *columns)


def prepare(table: ReviewTable, seed: int) -> ReviewData:
    """What does not depend on answers; the same for the same `seed`."""
    X, codes, n, M = table.rows.numbers, table.codes, len(table.given), len(table.classes)
    rng = np.random.default_rng(seed)
    rows = compared_rows(X, codes, M, np.random.default_rng([seed, 1]))
    present = np.unique(codes)
    proba, score, audited = np.zeros((n, M)), np.zeros(n), 0.0
    proba[:, present] = np.bincount(codes)[present] / n
    if len(present) > 1:
        evidence = judge_labels(without_holes(X), codes, random_state=rng)
        flags = evidence.flags(trusted=table.trusted if table.trusted.any() else None)
        proba[:, present], score, audited = evidence.probability, flags.score, float(flags.wrong_share)
    own = np.clip(proba[np.arange(n), codes], 1e-9, 1 - 1e-9)
    against = np.clip(np.log1p(-own) - np.log(own), -4, 4)  # no label is more certain than that before an answer
    # the values of the log-odds in the order of the audit's score, which ranks wrong labels better
    order = np.lexsort((against, score))
    against[order] = np.sort(against)
    problem = Problem(rows, codes, M, against, own_scores(X, codes, M, np.random.default_rng([seed, 2])))
    pool = subset(np.arange(n), POOL, rng)
    before = infer(problem, Evidence(pool[:0], np.zeros(0), np.zeros(0))).probability(pool)
    numbers = None if table.groups is None else np.unique(table.groups, return_inverse=True)[1]
    return ReviewData(problem, proba, audited, before, table.trusted, numbers, pool)
