"""What a caller hands over, array or table, as one thing: numbers, labels and what is known of each row.

And what the names of the classes say: classes of a few rows, and names that mean the same class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.decomposition import TruncatedSVD

from floral_learn.base.alignment import align
from floral_learn.base.cells import as_texts, merge_alike, name_of, plain_name
from floral_learn.base.encoder import TableEncoder
from floral_learn.base.frames import column_at, frame_columns, is_frame, place_of, without_columns
from floral_learn.base.rows import InputRows, read_rows
from floral_learn.base.validation import check_trusted, refuse_several_labels
from floral_learn.encoders import encoder_for
from floral_learn.labels.evidence import read_labels, read_names

LEAST_ROWS = 20  # below that, held-out models are trained on too few rows to contradict a label
FEWEST = 5  # rows of a class below which nobody can learn what it looks like


@dataclass(frozen=True)
class Rows:
    """n rows, ready to be judged."""

    rows: InputRows | None  # as numbers, and as a model of the caller's own gets them; None without rows
    labels: np.ndarray  # (n,)
    row_numbers: np.ndarray  # (n,), the number of each row in its file or array
    index: Any = None  # the frame's index, (n,)
    ids: list[str] | None = None
    groups: np.ndarray | None = None  # (n,), texts
    trusted: np.ndarray | None = None  # (n,), bool
    columns: Any = None  # frame of columns that a page shows
    notes: list[str] = field(default_factory=list)


def read_arguments(
    X: Any,
    y: Any,
    *,
    label: Any = None,
    text: Any = (),
    ids: Any = None,
    groups: Any = None,
    trusted: Any = None,
    drop: Any = (),
    text_encoder: str = "auto",
    rows_needed: bool = True,
) -> Rows:
    """Check and unite the arguments of `find_label_issues`; `X` may also be a `Table` that has been read."""
    if hasattr(X, "features") and hasattr(X, "labels"):
        return _from_table(X, text_encoder)
    y = align(X, y)
    ids, groups, trusted = (
        value if isinstance(value, str) else align(y if X is None else X, value, ("y" if X is None else "X", name))
        for name, value in (("ids", ids), ("groups", groups), ("trusted", trusted))
    )
    if X is not None and is_frame(X):
        return _from_frame(X, y, label, _several(text), ids, groups, trusted, _several(drop), text_encoder)
    named = {"label": label, "text": _several(text) or None, "drop": _several(drop) or None}
    named |= {k: v for k, v in (("ids", ids), ("groups", groups), ("trusted", trusted)) if isinstance(v, str)}
    if wrong := [name for name, value in named.items() if value is not None]:
        raise ValueError(f"{wrong[0]}={named[wrong[0]]!r} names a column; X must be a DataFrame, of pandas or polars")
    if y is None:
        raise ValueError("y is missing: give the labels, or a DataFrame and label=, its label column")
    rows = None
    if X is not None:
        encoder = encoder_for(X, text_encoder)
        rows = read_rows(X, allow_nan=True, encoder=encoder, y=y)
        if issparse(rows.numbers) and rows.numbers.shape[1] == 1:
            rows = InputRows(rows.numbers.toarray(), rows.given)
        elif issparse(rows.numbers):
            components = TruncatedSVD(min(100, rows.numbers.shape[1] - 1), random_state=0)
            with np.errstate(invalid="ignore"):  # rows of zeros have no variance to explain
                rows = InputRows(components.fit_transform(rows.numbers), rows.given)
    elif rows_needed:
        raise ValueError("X is missing: give rows, or pred_probs=, probabilities of your own")
    n = len(np.asarray(y)) if rows is None else len(rows)
    _refuse_few_rows(n)
    return Rows(
        rows=rows,
        labels=check_labels(y, n),
        row_numbers=np.arange(n),
        ids=None if ids is None else read_names(ids, n, "ids"),
        groups=None if groups is None else np.array(read_names(groups, n, "groups")),
        trusted=_known_right(trusted, n),
        notes=[] if rows is None else rows.notes,
    )


def _from_frame(
    frame: Any,
    y: Any,
    label: Any,
    text: list[str],
    ids: Any,
    groups: Any,
    trusted: Any,
    drop: list[str],
    text_encoder: str,
) -> Rows:
    if (label is None) == (y is None):
        raise ValueError("give either y=, the labels, or label=, the name of their column in X")
    named = {"label": label, "ids": ids, "groups": groups, "trusted": trusted}
    named = {option: name for option, name in named.items() if option == "label" or isinstance(name, str)}
    places = {name: place_of(frame_columns(frame), name, "X") for name in (*named.values(), *text, *drop) if name}
    values = {option: column_at(frame, places[name]).to_list() for option, name in named.items() if name}
    given = without_columns(frame, *named.values(), *drop)  # for a model of the caller's own: untouched
    labels = y if label is None else values["label"]
    copies = [] if label is None else _copies(given, labels)
    features = without_columns(given, *copies)
    _refuse_few_rows(n := features.shape[0])
    encoder = TableEncoder(text=text, text_encoder=_prose(text_encoder))
    numbers = encoder.fit_transform(features, labels)
    ids, groups, trusted = (values.get(option, value) for option, value in zip(_ROLES, (ids, groups, trusted)))
    return Rows(
        rows=InputRows(numbers, given, encoder),
        labels=check_labels(labels, n),
        row_numbers=np.arange(n),
        # The index names rows; it is not something to learn from.
        index=frame.index if hasattr(frame, "iloc") else None,
        ids=None if ids is None else read_names(ids, n, "ids"),
        groups=None if groups is None else np.array(read_names(groups, n, "groups")),
        trusted=_known_right(None if trusted is None else np.asarray(trusted), n),
        columns=features,
        notes=[*(f"ignored: {name} (the same as the label in every row)" for name in copies), *encoder.notes_],
    )


def _from_table(table: Any, text_encoder: str) -> Rows:
    """Rows of a `Table` that was read from a file."""
    n = len(table.features)
    _refuse_few_rows(n)
    encoder = table.encoder or TableEncoder(text=table.text, text_encoder=_prose(text_encoder))
    return Rows(
        rows=InputRows(encoder.fit_transform(table.features, table.labels), table.features, encoder),
        labels=check_labels(table.labels, n),
        row_numbers=table.rows,
        ids=None if table.ids is None else list(table.ids),
        groups=table.groups,
        trusted=table.trusted,
        columns=table.features,
        notes=[*table.notes, *encoder.notes_],
    )


_ROLES = ("ids", "groups", "trusted")


def _prose(name: str) -> Any:
    """What makes vectors of prose, by its name; None is tf-idf."""
    if name == "tfidf":
        return None
    from floral_learn.encoders import TextEncoder

    return TextEncoder(name)


def _copies(frame: Any, labels: Any) -> list[str]:
    """The columns of a frame that are equal to the labels in every row."""
    known = as_texts(labels)
    found = []
    for place, name in enumerate(frame_columns(frame)):
        column = column_at(frame, place)
        if as_texts(column.head(LEAST_ROWS).to_list()) == known[:LEAST_ROWS] and as_texts(column.to_list()) == known:
            found.append(name)
    return found


def check_labels(y: Any, n: int) -> np.ndarray:
    """Labels (n,) of any kind that sorts, none missing, and of fewer classes than there are rows."""
    refuse_several_labels(y)
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y has shape {labels.shape}; X has {n} rows, so it must be ({n},)")
    classes, codes = read_labels(labels, most=max(LEAST_ROWS, n // FEWEST))
    return classes[codes]


def _refuse_few_rows(n: int) -> None:
    if n < LEAST_ROWS:
        raise ValueError(f"there are {n} rows; an audit needs at least {LEAST_ROWS}")


def _several(names: Any) -> list[str]:
    if isinstance(names, str):
        return [names]
    if not isinstance(names, Sequence):
        raise ValueError(f"text= and drop= take a column name or a list of them, not {names!r}")
    return list(names)


def _known_right(trusted: Any, n: int) -> np.ndarray | None:
    doubtful = check_trusted(trusted, n)
    return None if doubtful is None else ~doubtful


@dataclass(frozen=True)
class ClassNames:
    """What the names and sizes of the classes say.

    Attributes
    ----------
    merged : int ndarray of shape (M,)
        For each class, the class whose name it repeats (its own number for most): differs in case, spaces or the like.
    few : int ndarray
        Classes of fewer than five rows after merging: their rows are not judged.
    lines : list of str
        The finds in words.
    """

    merged: np.ndarray
    few: np.ndarray
    lines: list[str]


def look_at_names(classes: np.ndarray, counts: np.ndarray) -> ClassNames:
    """Find classes that repeat another's name, look like a slip of the pen, or have too few rows.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.audit.inputs import look_at_names
    >>> found = look_at_names(np.array(["Stays", "leaves", "stays"]), np.array([1, 40, 60]))
    >>> found.merged.tolist(), found.lines
    ([2, 1, 2], ["'Stays' (1 row) and 'stays' (60 rows) differ only in case or spaces: probably one class"])
    """
    merged, lines = merge_alike(classes, counts)
    names = [str(c) if isinstance(c, str) else None for c in classes.tolist()]
    total = np.bincount(merged, weights=counts, minlength=len(classes))
    few = np.array([c for c in range(len(classes)) if merged[c] == c and total[c] < FEWEST], dtype=int)
    for c in few:
        like = next((d for d in range(len(classes)) if d not in few and _slip(names[c], names[d])), None)
        hint = "" if like is None else f"; perhaps {str(classes[like])!r} is meant"
        lines.append(f"class {name_of(classes, counts, c)} is too small to judge: its labels are not audited{hint}")
    return ClassNames(merged, few, lines)


def _slip(one: str | None, other: str | None, shortest: int = 4) -> bool:
    """Whether two names differ by one letter added, left out, replaced or swapped with its neighbour; digits count."""
    # of `shortest` letters or more, since short names differ in one letter for a reason
    if one is None or other is None:
        return False
    a, b = plain_name(one), plain_name(other)
    if min(len(a), len(b)) < shortest or abs(len(a) - len(b)) > 1:
        return False
    start = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    x, y = a[start:], b[start:]
    if any(character.isdigit() for character in x[:1] + y[:1]):
        return False
    return x[1:] == y[1:] or x[1:] == y or x == y[1:] or (x[:2] == y[1::-1] and x[2:] == y[2:])
