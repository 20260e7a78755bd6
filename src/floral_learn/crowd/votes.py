"""Votes in any of the shapes that people keep them in, as one long list of (item, annotator, answer)."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from floral_learn.base.alignment import align, index_of
from floral_learn.base.cells import is_missing, objects
from floral_learn.base.frames import column_named, without_columns

LONG_COLUMNS = ("task", "worker", "label")


@dataclass(frozen=True)
class Votes:
    """V votes on n items by A annotators: integer codes, and the names behind them.

    A label is the code of a class, 0 to K - 1, or K + c for the vote "not class c". `weight` is 1 except where one
    person gave several answers to one item: these share one vote.
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
    def negative(self) -> np.ndarray:
        """(V,) votes that say what an item is not."""
        return self.label >= len(self.classes)

    @cached_property
    def answers(self) -> list[str]:
        """What can be voted, in words: the classes, and where somebody votes so, "not" each of them."""
        names = [str(name) for name in self.classes]
        return names + [f"not {name}" for name in names] if self.negative.any() else names

    def right(self, label: np.ndarray) -> np.ndarray:
        """(V,) whether each vote is right if `label` (V,) are the classes of the voted items."""
        return (self.label % len(self.classes) == label) != self.negative

    def belief(self, posterior: np.ndarray) -> np.ndarray:
        """(V,) probability that each vote is right, from those of the voted items' classes (V, K)."""
        named = posterior[np.arange(len(self)), self.label % len(self.classes)]
        return np.where(self.negative, 1 - named, named)

    @cached_property
    def per_item(self) -> np.ndarray:
        """Number of votes on each item, (n,)."""
        return np.bincount(self.item, self.weight, minlength=len(self.items))

    @cached_property
    def per_annotator(self) -> np.ndarray:
        """Number of votes of each annotator, (A,)."""
        return self.per_person(np.ones(len(self)))

    def per_person(self, values: np.ndarray) -> np.ndarray:
        """(A,) sums of `values` (V,) over the votes of each annotator."""
        return np.bincount(self.annotator, self.weight * values, minlength=len(self.annotators))

    @cached_property
    def shares(self) -> np.ndarray:
        """(n, K) number of votes for each class; "not c" is shared by all other classes."""
        n, _, k = self.shape
        wide = len(self.answers)
        counts = np.bincount(self.item * wide + self.label, self.weight, minlength=n * wide).reshape(n, wide)
        named, against = counts[:, :k], counts[:, k:]
        if not against.shape[1]:
            return named
        return named + (against.sum(axis=1, keepdims=True) - against) / (k - 1)

    def some(self, chosen: np.ndarray) -> Votes:
        """The votes `chosen`, a mask, with all items, people and classes."""
        parts = {name: getattr(self, name)[chosen] for name in ("item", "annotator", "label", "weight")}
        return replace(self, **parts)


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
    negations: bool = False,
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
    negations : bool
        Whether a text that begins with "!", such as "!spam", is a vote for "not spam"; refused otherwise. A text that
        `classes` holds as it is stays a class.
    """
    if groups is not None and np.ndim(votes) != 1:
        raise ValueError("groups names who gave each label of a 1-D array of labels; these votes already have names")
    columns = (task, worker, label)
    read = _from_long if _is_long(votes, columns) else _from_table
    item, annotator, said, items = read(votes, groups, X, missing, columns)
    if not len(said):
        raise ValueError("votes: there is no vote at all; every entry is missing")
    known, said = _encode(said, classes, negations)
    # Votes of 0, 1, 2, ... with some -1 almost surely mean "no vote" by -1: ask rather than guess.
    if classes is None and missing is None and known.tolist()[:2] == [-1, 0]:
        raise ValueError(
            "votes hold -1 beside 0, 1, ...: pass missing=-1 if it means no vote, or classes= if it is a class"
        )
    annotators, annotator = _names(annotator, "people")
    return _merged(Votes(item, annotator, said, np.ones(len(said)), items, annotators, known))


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
    # with a column of tasks
    wide = lacking == [columns[1], columns[2]] and columns[1:] == LONG_COLUMNS[1:]
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
        values[name] = {str(v).removeprefix("!") for v in given[~_is_missing(given, None)].tolist()}
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


def _item_names(X: Any, task: Any) -> np.ndarray:
    """The names of X's rows: its column of tasks where it is a frame that has one, else its index, else numbers."""
    named = column_named(X, task)
    if named is not None:
        return objects(named)
    return np.arange(_n_rows(X)) if index_of(X) is None else np.asarray(index_of(X), dtype=object)


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=6)


def _warn_of_lost(one: str, several: str, everybody: np.ndarray, voted: np.ndarray) -> None:
    """Say which names stand beside blank votes only."""
    there = set(voted.tolist())
    if lost := [name for name in dict.fromkeys(everybody.tolist()) if name not in there]:
        are = f"1 {one} is" if len(lost) == 1 else f"{len(lost)} {several} are"
        _warn(f"votes: {are} left out, since all of these votes are blank, such as {lost[0]!r}")


# items (codes), people, votes (V,); names of items (n,)
Read = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _from_long(votes: Any, groups: Any, X: Any, missing: Any, columns: tuple[Any, Any, Any]) -> Read:
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


def _from_table(votes: Any, groups: Any, X: Any, missing: Any, columns: tuple[Any, Any, Any]) -> Read:
    votes, groups, items = _rows_of_table(votes, groups, X, columns[0])
    mask = np.ma.getmaskarray(votes)
    values = np.asarray(np.ma.getdata(votes) if mask.any() else votes)
    if values.ndim not in (1, 2) or not len(values):
        raise ValueError(f"votes must be a table (tasks, annotators) or one label per task, got shape {values.shape}")
    by_name = items is not None and X is not None
    if X is not None and not by_name and _n_rows(X) != len(values):
        raise ValueError(
            f"votes are on {len(values)} tasks and X has {_n_rows(X)} rows; they must match row by row "
            "(a long frame has one vote per row, and task=, worker= and label= name its columns)"
        )
    if items is None:
        index = index_of(X) if index_of(votes) is None else index_of(votes)
        items = np.arange(len(values)) if index is None else np.asarray(index, dtype=object)
    given = ~(_is_missing(values, missing) | mask)
    if values.ndim == 1:
        row = np.flatnonzero(given)
        return row, _who_gave(groups, values.shape, given)[row], values[row].astype(object), items
    row, column = np.nonzero(given)
    names = np.asarray(votes.columns, dtype=object) if hasattr(votes, "columns") else np.arange(values.shape[1])
    if hasattr(votes, "columns"):
        _warn_of_lost("person", "people", names, names[column])
    if by_name:
        codes, items = _matched(items, X, columns)
        row = codes[row]
    return row, names[column], values[given].astype(object), items


def _rows_of_table(votes: Any, groups: Any, X: Any, task: Any) -> tuple[Any, Any, np.ndarray | None]:
    """The table without its column of tasks, groups in its order, and the names in that column where it has one."""
    named = column_named(votes, task) if hasattr(votes, "columns") else None
    if named is None:
        votes = align(X, votes, ("X", "votes"))
        first, whose = (votes, "votes") if index_of(X) is None else (X, "X")
        return votes, align(first, groups, (whose, "groups")), None
    if len(set(named)) < len(named):
        twice = next(name for place, name in enumerate(named) if name in named[:place])
        raise ValueError(f"votes: column {task!r} names {twice!r} twice; a wide frame has a row per task")
    return without_columns(votes, task), groups, objects(named)


def _who_gave(groups: Any, shape: tuple[int, ...], given: np.ndarray) -> np.ndarray:
    """(n,) who gave each label of a list: one person where nobody is named."""
    if groups is None:
        return np.zeros(shape, dtype=object)
    who = np.asarray(groups, dtype=object)
    if who.shape != shape:
        raise ValueError(f"groups must name one annotator per label: {shape[0]}, got shape {who.shape}")
    if lost := int(_is_missing(who[given], None).sum()):
        raise ValueError(f"groups: {lost} rows that hold a label name nobody")
    return who


def _is_missing(values: np.ndarray, missing: Any) -> np.ndarray:
    if values.dtype.kind == "f":
        absent = np.isnan(values)
    elif values.dtype.kind == "O":
        flat = [is_missing(v) or (isinstance(v, str) and not v.strip()) for v in values.ravel().tolist()]
        absent = np.array(flat, dtype=bool).reshape(values.shape)
    else:
        absent = values == "" if values.dtype.kind == "U" else np.zeros(values.shape, dtype=bool)
    if missing is not None and missing == missing:
        absent = absent | (values == missing)
    return absent


def _encode(label: np.ndarray, classes: Any, negations: bool) -> tuple[np.ndarray, np.ndarray]:
    """All classes, and the code of each vote: that of its class, or K more where it says "not" this class."""
    listed = set() if classes is None else set(np.asarray(classes).tolist())
    against = np.array([isinstance(v, str) and len(v) > 1 and v[0] == "!" and v not in listed for v in label.tolist()])
    plain, denied = label[~against].tolist(), [v[1:].strip() for v in label[against].tolist()]
    if not denied:
        return _encode_classes(plain, classes)
    text = f"!{denied[0]}"
    if not negations:
        raise ValueError(
            f"votes: {text!r} would say what a task is not, which only aggregate_votes and CrowdClassifier read; if it "
            "is a class, name all of them (classes=)"
        )
    there = {str(v) for v in _encode_classes(plain, None)[0].tolist()} if plain else set()
    new = [name for name in dict.fromkeys(denied) if name not in there]
    known = _encode_classes([*plain, *new], None)[0] if classes is None else np.unique(np.asarray(classes))
    if len(known) < 2:
        raise ValueError(f"votes: {text!r} names the only class; name the others (classes=)")
    place = {str(name): code for code, name in enumerate(known.tolist())}
    if odd := [name for name in dict.fromkeys(denied) if name not in place]:
        raise ValueError(f"votes hold '!{odd[0]}', and {odd[0]!r} is not among the classes {known.tolist()[:12]}")
    codes = np.empty(len(label), dtype=np.intp)
    codes[~against] = _encode_classes(plain, known)[1] if plain else []
    not_class = np.array([place[name] for name in denied])
    # of two classes it is the other
    codes[against] = 1 - not_class if len(known) == 2 else len(known) + not_class
    return known, codes


def _encode_classes(values: list[Any], classes: Any) -> tuple[np.ndarray, np.ndarray]:
    """All classes in order, and the code of each value."""
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
    place = {name: code for code, name in enumerate(known.tolist())}
    if odd := [v for v in found.tolist() if v not in place]:
        raise ValueError(f"votes hold {odd[:8]}, which classes={known.tolist()[:12]} does not; drop or rename them")
    return known, np.array([place[v] for v in found.tolist()], dtype=np.intp)[codes]


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
    return objects(several), np.array([place[value] for value in values.tolist()], dtype=np.intp)


def _merged(votes: Votes) -> Votes:
    """One vote per person and item: the same answer twice counts once, several answers share the one vote."""
    _, people, k = votes.shape
    key = (votes.item.astype(np.int64) * people + votes.annotator) * 2 * k + votes.label
    unique = np.unique(key)
    pair, label = np.divmod(unique, 2 * k)
    _, position, count = np.unique(pair, return_inverse=True, return_counts=True)
    if repeated := len(key) - len(count):
        warnings.warn(
            f"votes: {repeated} times a person voted again on the same task; equal votes count once, differing ones "
            "share one vote",
            UserWarning,
            stacklevel=4,
        )
    item, annotator = np.divmod(pair, people)
    return replace(votes, item=item, annotator=annotator, label=label, weight=1.0 / count[position])
