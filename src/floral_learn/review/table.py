"""What a review is about: rows and their given labels, checked; and what is computed from them before any answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_consistent_length

from floral_learn.base.alignment import align
from floral_learn.base.frames import frame_from_parts, frame_parts, is_frame
from floral_learn.base.rows import InputRows, as_items, read_rows, stack_rows
from floral_learn.base.validation import encode_labels, refuse_measurements, refuse_several_labels
from floral_learn.encoders import encoder_for
from floral_learn.labels import judge_labels
from floral_learn.labels.judges import deal_folds, held_out, in_best_scale
from floral_learn.labels.noise import MANY
from floral_learn.labels.rows import Rows, evenly_scaled_rows, standardised_rows
from floral_learn.review.beliefs import ReviewData
from floral_learn.review.posterior import SAMPLE, Evidence, Problem, infer
from floral_learn.review.questions import POOL, subset

# principal components by which rows with more columns are compared; chosen
COMPONENTS = 16
# C of the linear model, up to a hundred columns and above
_FEW_COLUMNS, _MANY_COLUMNS = 1.0, 0.01


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
        unknown = sorted(set(map(str, y.tolist())) - set(map(str, self.classes.tolist())))
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
        if state["items"] is None:
            return cls.read(state["X"] if state["frame"] is None else frame_from_parts(state["frame"]), *columns)
        numbers = read_rows(state["X"], allow_nan=True, min_rows=2).numbers
        return cls.checked(InputRows(numbers, as_items([str(item) for item in state["items"]])), *columns)


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
    # no label is more certain than that before an answer
    against = np.clip(np.log1p(-own) - np.log(own), -4, 4)
    # the values of the log-odds in the order of the audit's score, which ranks wrong labels better
    order = np.lexsort((against, score))
    against[order] = np.sort(against)
    scores = own_scores(X, codes, M, np.random.default_rng([seed, 2]))
    problem = Problem(rows, codes, M, against, scores, shift=np.zeros(n))
    pool = subset(np.arange(n), POOL, rng)
    before = infer(problem, Evidence(pool[:0], np.zeros(0), np.zeros(0))).probability(pool)
    numbers = None if table.groups is None else np.unique(table.groups, return_inverse=True)[1]
    return ReviewData(problem, proba, audited, before, table.trusted, numbers, pool)


@dataclass(frozen=True)
class Likeness:
    """Rows by all of their columns, and how far (squared) the nearest other one typically is."""

    rows: Rows
    typical: float

    @classmethod
    def of(cls, X: Any, some: np.ndarray) -> Likeness:
        """Of rows `X` (n, d); the typical distance is that from `some` of them."""
        # not by principal components: what they leave out may differ
        rows = standardised_rows(X)
        nearest = []
        for row in some.tolist():
            far = rows.distances(np.array([row]), slice(None))[0]
            far[row] = np.inf
            nearest.append(far.min())
        return cls(rows, float(np.median(nearest)))

    def nearest(self, row: int, n: int, nearer: float) -> tuple[np.ndarray, np.ndarray]:
        """The n rows most like `row`, nearest first, and which are within `nearer` of the typical distance."""
        far = self.rows.distances(np.array([row]), slice(None))[0]
        far[row] = np.inf
        near = np.argsort(far, kind="stable")[: min(n, len(far) - 1)]
        # the last term is the rounding of a distance: equal rows are nearly the same where most rows have a twin
        return near, far[near] <= nearer**2 * self.typical + np.finfo(np.float32).eps


def compared_rows(X: Any, codes: np.ndarray, n_classes: int, rng: np.random.Generator) -> Rows:
    """The rows of `X` (n, d) in the scale in which they are compared.

    Dense rows of many columns by their first principal components: in hundreds of columns nothing is near anything.
    """
    if not sparse.issparse(X) and X.shape[1] > COMPONENTS:
        X = _principal_components(standardised_rows(X).values, COMPONENTS)
        # standardised, the last ones would count as much as the first
        return evenly_scaled_rows(X)
    return in_best_scale(X, codes, n_classes, rng)


def _principal_components(values: np.ndarray, count: int) -> np.ndarray:
    """The first `count` principal components of standardised `values` (n, d)."""
    # largest ones first
    directions = np.linalg.eigh((values.T @ values).astype(np.float64))[1][:, ::-1][:, :count]
    return values @ directions.astype(values.dtype)


def without_holes(X: Any) -> Any:
    """`X` with missing values at their column's mean."""
    if sparse.issparse(X) or not np.isnan(X.sum()):
        return X
    holes = np.isnan(X)
    filled = np.where(holes, 0.0, X)
    return np.where(holes, filled.sum(axis=0) / np.maximum((~holes).sum(axis=0), 1), X)


def own_scores(X: Any, codes: np.ndarray, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Places (n,) from -2 to 2 by the held-out log-odds of each given label, those of a linear model.

    An attack that flips what lies far from a boundary, or near to it, flips a stretch of these, in any number of
    columns and classes.
    """
    values = standardised_rows(X).values
    model = LogisticRegression(C=_FEW_COLUMNS if X.shape[1] <= 100 else _MANY_COLUMNS, max_iter=300)
    fold = deal_folds(codes, rng)
    some = None
    if len(codes) > MANY:
        some = np.zeros(len(codes), dtype=bool)
        some[subset(np.arange(len(codes)), MANY, rng)] = True
    shares = held_out(model, values, codes, np.arange(n_classes), fold, train_on=some)
    own = np.clip(shares[np.arange(len(codes)), codes], 1e-6, 1 - 1e-6)
    return evenly_placed(np.log(own) - np.log1p(-own))


def evenly_placed(values: np.ndarray) -> np.ndarray:
    """Places from -2 to 2 by the ranks of `values`, (n,)."""
    return 4.0 * np.argsort(np.argsort(values, kind="stable"), kind="stable") / len(values) - 2.0


def encoded_labels(y: np.ndarray, classes: Any) -> tuple[np.ndarray, np.ndarray]:
    """The classes, sorted, and the code of each label among them."""
    if y.ndim != 1:
        raise ValueError(f"y must have one dimension, and has shape {y.shape}")
    if classes is None:
        return encode_labels(y, "LabelReview")
    known = np.asarray(classes)
    if known.ndim != 1 or len(np.unique(known)) < 2:
        raise ValueError(f"classes={classes!r} must list at least two different labels")
    if (known.dtype.kind in "OUS") != (y.dtype.kind in "OUS"):
        raise ValueError(f"classes={classes!r} and y must be of one kind: {known.dtype} and {y.dtype} are not")
    if unknown := sorted(set(map(str, np.unique(y).tolist())) - set(map(str, known.tolist()))):
        raise ValueError(f"y holds labels that classes does not list: {', '.join(unknown)}")
    found, codes = encode_labels(np.concatenate([y, known]), "LabelReview")
    return found, codes[: len(y)]


def checked_column(values: Any, n: int, name: str, kind: Any) -> np.ndarray:
    """`values` as one entry per row; None is False, or one."""
    if values is None:
        return np.zeros(n, bool) if kind is bool else np.ones(n)
    values = np.asarray(values)
    if values.shape != (n,):
        raise ValueError(f"{name} must have one entry per row, shape ({n},), and has shape {values.shape}")
    if kind is bool and values.dtype != bool:
        raise ValueError(f"{name} must hold True and False, and has dtype {values.dtype}")
    if kind is float:
        values = values.astype(float)
        if (values < 0).any() or not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite and not negative")
    if kind is None and (missing := sum(value is None or value != value for value in values.tolist())):
        raise ValueError(f"{name} has {missing} missing entries; every row needs one")
    return values


def is_integer(value: Any) -> bool:
    """Whether a parameter is an integer; True and False are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
