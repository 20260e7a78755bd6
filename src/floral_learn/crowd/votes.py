"""Votes in any of the shapes that people keep them in, as one long list of (item, annotator, class)."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from floral_learn.base.alignment import align, index_of
from floral_learn.base.frames import column_named, without_columns

LONG_COLUMNS = ("task", "worker", "label")


@dataclass(frozen=True)
class Votes:
    """V votes on n items by A annotators: integer codes, and the names behind them.

    `weight` is 1 except where one person gave several answers to one item: these share one vote.
    """

    item: np.ndarray
    annotator: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    items: np.ndarray = field(repr=False)
    annotators: np.ndarray = field(repr=False)
    classes: np.ndarray

    @property
    def shape(self) -> tuple[int, int, int]:
        """Items, annotators, classes."""
        return len(self.items), len(self.annotators), len(self.classes)

    def __len__(self) -> int:
        return len(self.item)

    @cached_property
    def per_item(self) -> np.ndarray:
        """Number of votes on each item, (n,)."""
        return np.bincount(self.item, self.weight, minlength=len(self.items))

    @cached_property
    def per_annotator(self) -> np.ndarray:
        """Number of votes of each annotator, (A,)."""
        return np.bincount(self.annotator, self.weight, minlength=len(self.annotators))

    @cached_property
    def shares(self) -> np.ndarray:
        """(n, K) number of votes for each class."""
        n, _, k = self.shape
        return np.bincount(self.item * k + self.label, self.weight, minlength=n * k).reshape(n, k)

    def share_of(self, people: np.ndarray) -> float:
        """Share of the votes that these people, a mask (A,), gave."""
        return float(self.per_annotator[people].sum() / self.per_annotator.sum())

    def people(self, names: Any) -> np.ndarray:
        """(A,) mask of the annotators with these names; an error where somebody of them did not vote."""
        wanted = {names} if isinstance(names, str) else set(names)
        if odd := sorted(map(repr, wanted - set(self.annotators.tolist()))):
            raise ValueError(f"annotators: nobody called {', '.join(odd[:5])} voted")
        return np.isin(self.annotators, list(wanted))

    def some(self, chosen: np.ndarray) -> Votes:
        """Return the votes `chosen`, a mask or numbers, with all items, people and classes."""
        item, annotator, label = self.item[chosen], self.annotator[chosen], self.label[chosen]
        return Votes(item, annotator, label, self.weight[chosen], self.items, self.annotators, self.classes)

    def reweighted(self, weight: np.ndarray) -> Votes:
        """Return the same votes with other weights."""
        return Votes(self.item, self.annotator, self.label, weight, self.items, self.annotators, self.classes)


def read_votes(
    votes: Any,
    *,
    groups: Any = None,
    X: Any = None,
    classes: Any = None,
    missing: Any = None,
    task: Any = "task",
    worker: Any = "worker",
    label: Any = "label",
) -> Votes:
    """Read votes given as a table, a long frame or one label per row.

    Parameters
    ----------
    votes : array or frame (n, annotators), long frame with columns task, worker, label, or array (n,)
        NaN, None, empty text, masked entries and `missing` are no vote.
    groups : array-like (n,), optional
        With one label per row: who gave it.
    X : array or frame with n rows, optional
        Items that the votes must match: by row, or for a frame that names its tasks by X's column `task` or its index.
    classes : array-like, optional
        All classes; a vote for anything else is refused. By default the classes that occur.
    missing : scalar, optional
        A value that means "no vote", such as -1.
    task, worker, label : str
        The columns of a long frame: what was voted on, who voted, and the vote. A frame (n, annotators) may have the
        column `task`, too.
    """
    if groups is not None and np.ndim(votes) != 1:
        raise ValueError("groups names who gave each label of a 1-D array of labels; these votes already have names")
    columns = (task, worker, label)
    if classes is None:
        _refuse_hidden_missing(votes, missing, label)
    if _is_long(votes, columns):
        item, annotator, said, items = _from_long(votes, X, missing, columns)
    else:
        item, annotator, said, items = _from_table(votes, groups, X, missing, columns)
    if not len(said):
        raise ValueError("votes: there is no vote at all; every entry is missing")
    known, said = _encode(said, classes, missing)
    annotators, annotator = _names(annotator, "people")
    return _merged(item, annotator, said, items, annotators, known)


def n_rows(X: Any) -> int:
    """Return the number of rows of an array, frame or sparse matrix."""
    shape = getattr(X, "shape", None)
    if shape is None:
        shape = np.shape(X)
    if len(shape) != 2:
        raise ValueError(f"X must have two dimensions (items, features), got shape {tuple(shape)}")
    return int(shape[0])


def _is_long(votes: Any, columns: tuple[Any, Any, Any]) -> bool:
    """Whether a frame has the three columns; an error where it was said to, or looks as if it should."""
    if not hasattr(votes, "columns"):
        if columns != LONG_COLUMNS:
            raise ValueError("task, worker and label name the columns of a long frame; these votes are not a frame")
        return False
    given = list(votes.columns)
    lacking = [name for name in columns if name not in given]
    if not lacking:
        return True
    wide = lacking == [columns[1], columns[2]] and columns[1:] == LONG_COLUMNS[1:]  # with a column of tasks
    if len(lacking) == 1 or (columns != LONG_COLUMNS and not wide):
        raise ValueError(f"votes have no column {lacking[0]!r}; their columns are {', '.join(map(repr, given[:12]))}")
    if odd := _no_votes(votes, [name for name in given if name != columns[0]]):
        raise ValueError(
            f"votes: column {odd!r} holds other values than the rest, so these are not votes of one person per column. "
            "A long frame has one vote per row, and task=, worker= and label= name its columns; in a wide one every "
            "column but that of task= is a person (.to_numpy() if they are people all the same)"
        )
    return False


def _no_votes(votes: Any, names: list[Any]) -> Any:
    """A column with values that no other has: columns of a wide frame share their classes."""
    values = {}
    for name in names:
        given = np.asarray(votes[name], dtype=object)
        values[name] = {str(v) for v in given[~_is_missing(given, None)].tolist()}
    values = {name: mine for name, mine in values.items() if mine}
    for name, mine in values.items():
        others = set().union(*(values[other] for other in values if other != name))
        if len(values) > 1 and len(mine) > 1 and (not mine & others or len(mine - others) > max(20, 2 * len(others))):
            return name
    return None


def _matched(names: np.ndarray, X: Any, columns: tuple[Any, Any, Any]) -> tuple[np.ndarray, np.ndarray]:
    """The row of X that each name of a task stands for, and the names of all rows."""
    if column_named(X, columns[2]) is not None:
        _warn(f"X: column {columns[2]!r} is called like the votes and is read as a feature; drop it if it is the truth")
    index = _item_names(X, columns[0])
    place = {value: row for row, value in enumerate(index.tolist())}
    if len(place) != len(index):
        raise ValueError("X: its index names some tasks twice, so that votes cannot be matched to rows")
    codes = np.array([place.get(value, -1) for value in names.tolist()], dtype=np.intp)
    if (unknown := codes < 0).any():
        some = ", ".join(repr(v) for v in dict.fromkeys(names[unknown].tolist()[:1000]))[:80]
        raise ValueError(f"votes: {int(unknown.sum())} votes are on tasks that X's index does not hold, such as {some}")
    return codes, index


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=6)


def _warn_of_lost(one: str, several: str, everybody: np.ndarray, voted: np.ndarray) -> None:
    """Say which names stand beside blank votes only."""
    there = set(voted.tolist())
    if lost := [name for name in dict.fromkeys(everybody.tolist()) if name not in there]:
        are = f"1 {one} is" if len(lost) == 1 else f"{len(lost)} {several} are"
        _warn(f"votes: {are} left out, since all of these votes are blank, such as {lost[0]!r}")


def _from_long(
    votes: Any, X: Any, missing: Any, columns: tuple[Any, Any, Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    task, worker, label = (np.asarray(votes[name], dtype=object) for name in columns)
    given = ~_is_missing(label, missing)
    for name, values in ((columns[0], task), (columns[1], worker)):
        if lost := int((_is_missing(values[given], None)).sum()):
            raise ValueError(f"votes: column {name!r} is empty in {lost} rows that hold a vote")
    _warn_of_lost("person", "people", worker, worker[given])
    if X is None:
        _warn_of_lost("task", "tasks", task, task[given])
        items, codes = _names(task[given], "tasks")
    else:
        codes, items = _matched(task[given], X, columns)
    return codes, worker[given], label[given], items


def _item_names(X: Any, task: Any) -> np.ndarray:
    """The names of X's rows: its column of tasks where it is a frame that has one, else its index, else numbers."""
    named = column_named(X, task)
    if named is not None:
        return np.array([*named, None], dtype=object)[:-1]
    if hasattr(X, "index") and not callable(X.index):
        return np.asarray(X.index, dtype=object)
    return np.arange(n_rows(X))


def _from_table(
    votes: Any, groups: Any, X: Any, missing: Any, columns: tuple[Any, Any, Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    named = column_named(votes, columns[0]) if hasattr(votes, "columns") else None
    index = np.asarray(votes.index, dtype=object) if hasattr(votes, "index") and not callable(votes.index) else None
    if named is not None:
        index, votes = np.array([*named, None], dtype=object)[:-1], without_columns(votes, columns[0])
        if len(set(named)) < len(named):
            twice = next(name for place, name in enumerate(named) if name in named[:place])
            raise ValueError(f"votes: column {columns[0]!r} names {twice!r} twice; a wide frame has a row per task")
    names = np.asarray(votes.columns, dtype=object) if hasattr(votes, "columns") else None
    if named is None:
        votes = align(X, votes, ("X", "votes"))
        first, whose = (votes, "votes") if index_of(X) is None else (X, "X")
        groups = align(first, groups, (whose, "groups"))
    if index is not None and named is None:
        index = np.asarray(votes.index, dtype=object)
    elif index is None and (names_of_rows := index_of(X)) is not None and names_of_rows.is_unique:
        index = np.asarray(names_of_rows, dtype=object)
    mask = np.ma.getmaskarray(votes) if np.ma.isMaskedArray(votes) else None
    values = np.asarray(np.ma.getdata(votes) if mask is not None else votes)
    if values.ndim not in (1, 2) or not len(values):
        raise ValueError(f"votes must be a table (tasks, annotators) or one label per task, got shape {values.shape}")
    if X is not None and named is None and n_rows(X) != len(values):
        raise ValueError(
            f"votes are on {len(values)} tasks and X has {n_rows(X)} rows; they must match row by row "
            "(a long frame has one vote per row, and task=, worker= and label= name its columns)"
        )
    absent = _is_missing(values, missing) if mask is None else _is_missing(values, missing) | mask
    items = index if index is not None else np.arange(len(values))
    if values.ndim == 1:
        if groups is None:
            who = np.zeros(len(values), dtype=object)
        else:
            who = np.asarray(groups, dtype=object)
            if who.shape != values.shape:
                raise ValueError(f"groups must name one annotator per label: {len(values)}, got shape {who.shape}")
            if lost := int(_is_missing(who[~absent], None).sum()):
                raise ValueError(f"groups: {lost} rows that hold a label name nobody")
        row = np.flatnonzero(~absent)
        return row, who[row], values[row].astype(object), items
    row, column = np.nonzero(~absent)
    who = names if names is not None else np.arange(values.shape[1])
    if names is not None:
        _warn_of_lost("person", "people", names, names[column])
    said = values[row, column].astype(object)
    if named is None or X is None:
        return row, who[column], said, items
    codes, items = _matched(items, X, columns)
    return codes[row], who[column], said, items


def _refuse_hidden_missing(votes: Any, missing: Any, label: Any) -> None:
    """Votes of 0, 1, 2, ... with some -1 almost surely mean "no vote" by -1: ask rather than guess."""
    if missing is not None or np.ma.isMaskedArray(votes):
        return
    if hasattr(votes, "columns") and column_named(votes, label) is not None:
        votes = votes[label]
    elif np.ndim(votes) != 2:
        return
    values = np.asarray(votes)
    if values.dtype.kind == "O":
        values = np.array([v for v in values.ravel().tolist() if isinstance(v, int | float)], dtype=float)
    if values.dtype.kind not in "if" or not (values == -1).any():
        return
    rest = values[(values != -1) & (values == values)]
    if len(rest) and rest.min() == 0:
        raise ValueError(
            "votes hold -1 beside 0, 1, ...: pass missing=-1 if it means no vote, or classes= if it is a class"
        )


def _is_missing(values: np.ndarray, missing: Any) -> np.ndarray:
    if values.dtype.kind == "f":
        absent = np.isnan(values)
    elif values.dtype.kind in "biuUS":
        absent = values == "" if values.dtype.kind == "U" else np.zeros(values.shape, dtype=bool)
    else:
        flat = [v is None or v != v or (isinstance(v, str) and not v.strip()) or _is_na(v) for v in values.ravel()]
        absent = np.array(flat, dtype=bool).reshape(values.shape)
    if missing is not None and missing == missing:
        absent = absent | (values == missing)
    return absent


def _is_na(value: Any) -> bool:
    return type(value).__name__ in ("NAType", "NaTType")


def _encode(label: np.ndarray, classes: Any, missing: Any) -> tuple[np.ndarray, np.ndarray]:
    values = label.tolist()
    if any(isinstance(v, float) for v in values) and all(isinstance(v, int | float) for v in values):
        if not np.isfinite(np.array(values, dtype=float)).all():
            raise ValueError("votes: infinity is not a class")
        if all(float(v).is_integer() for v in values):
            values = [int(v) for v in values]  # a table with missing entries turns 3 into 3.0
    label = np.array(values)
    if label.dtype.kind not in "biufU" or (label.dtype.kind == "U" and not all(isinstance(v, str) for v in values)):
        raise ValueError("votes mix numbers and text; all classes must be of one kind")
    found, codes = np.unique(label, return_inverse=True)
    if classes is None:
        if len(found) > max(100, len(label) // 4):
            raise ValueError(f"votes hold {len(found)} different values among {len(label)}: not classes")
        return found, codes.astype(np.intp)
    known = np.unique(np.asarray(classes))
    return known, _places(found, known)[codes].astype(np.intp)


def _places(found: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Where each of the classes `found` stands among those that the user names."""
    place = np.searchsorted(known, found) if known.dtype.kind == found.dtype.kind or known.dtype.kind in "iuf" else None
    if place is None or (place >= len(known)).any() or (known[np.minimum(place, len(known) - 1)] != found).any():
        odd = [v for v in found.tolist() if v not in known.tolist()]
        raise ValueError(f"votes hold {odd[:8]}, which classes={known.tolist()[:12]} does not; drop or rename them")
    return place


def _names(values: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Distinct names in order and the code of each value; 1 and "1" are two names, and that is said."""
    try:
        names, codes = np.unique(values, return_inverse=True)
        return names, codes.astype(np.intp)
    except TypeError:
        several = sorted(dict.fromkeys(values.tolist()), key=lambda name: (str(name), type(name).__name__))
    alike = [f"{a!r} and {b!r}" for a, b in itertools.pairwise(several) if str(a) == str(b)]
    if alike:
        _warn(f"votes: {kind} {', '.join(alike[:3])} are two names: make them one if they mean the same")
    place = {name: code for code, name in enumerate(several)}
    names = np.array([*several, None], dtype=object)[:-1]
    return names, np.array([place[value] for value in values.tolist()], dtype=np.intp)


def _merged(
    item: np.ndarray, annotator: np.ndarray, label: np.ndarray, items: np.ndarray, annotators: np.ndarray, classes: Any
) -> Votes:
    """One vote per person and item: the same answer twice counts once, several answers share the one vote."""
    n_annotators, k = len(annotators), len(classes)
    key = (item.astype(np.int64) * n_annotators + annotator) * k + label
    unique = np.unique(key)
    pair = unique // k
    _, position, count = np.unique(pair, return_inverse=True, return_counts=True)
    if len(unique) < len(key) or (count > 1).any():
        repeated = len(key) - len(count)
        warnings.warn(
            f"votes: {repeated} times a person voted again on the same task; equal votes count once, differing ones "
            "share one vote",
            UserWarning,
            stacklevel=4,
        )
    weight = 1.0 / count[position]
    return Votes(
        item=(pair // n_annotators).astype(np.intp),
        annotator=(pair % n_annotators).astype(np.intp),
        label=(unique % k).astype(np.intp),
        weight=weight,
        items=items,
        annotators=annotators,
        classes=classes,
    )
