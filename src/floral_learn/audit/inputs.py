"""What a caller hands over, array or table, as one thing: numbers, labels and what is known of each row.

And what the names of the classes say: classes of a few rows, and names that mean the same class.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.decomposition import TruncatedSVD

from floral_learn.base.alignment import align
from floral_learn.base.cells import as_texts, merge_alike, name_of
from floral_learn.base.encoder import TableEncoder
from floral_learn.base.frames import column_at, frame_columns, is_frame, place_of, without_columns
from floral_learn.base.rows import InputRows, read_rows
from floral_learn.base.validation import check_trusted
from floral_learn.encoders import TextEncoder, encoder_for
from floral_learn.labels.evidence import read_labels, read_names
from floral_learn.labels.judges import FOLDS

# below that, held-out models are trained on too few rows to contradict a label
LEAST_ROWS = 4 * FOLDS


@dataclass(frozen=True)
class Rows:
    """n rows, ready to be judged."""

    # as numbers, and as a model of the caller's own gets them; None without rows
    rows: InputRows | None
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
    text, drop = _several(text), _several(drop)
    if hasattr(X, "features") and hasattr(X, "labels"):
        encoder = X.encoder or TableEncoder(text=X.text, text_encoder=_prose(text_encoder))
        rows = _encoded(encoder, X.features, X.labels, X.features)
        notes = [*X.notes, *encoder.notes_]
        return _united(rows, X.labels, X.ids, X.groups, X.trusted, numbers=X.rows, columns=X.features, notes=notes)
    y = align(X, y)
    first, name = (y, "y") if X is None else (X, "X")
    roles = {"ids": ids, "groups": groups, "trusted": trusted}
    known = {
        role: value if isinstance(value, str) else align(first, value, (name, role)) for role, value in roles.items()
    }
    if X is not None and is_frame(X):
        return _from_frame(X, y, label, known, text, drop, text_encoder)
    named = {"label": label, "text": text or None, "drop": drop or None}
    named |= {role: value for role, value in known.items() if isinstance(value, str)}
    if wrong := [option for option, value in named.items() if value is not None]:
        raise ValueError(f"{wrong[0]}={named[wrong[0]]!r} names a column; X must be a DataFrame, of pandas or polars")
    if y is None:
        raise ValueError("y is missing: give the labels, or a DataFrame and label=, its label column")
    if X is None and rows_needed:
        raise ValueError("X is missing: give rows, or pred_probs=, probabilities of your own")
    return _united(None if X is None else _from_array(X, y, text_encoder), y, **known)


def _from_array(X: Any, y: Any, text_encoder: str) -> InputRows:
    """Rows of numbers, sparse ones made dense: 100 components of them."""
    rows = read_rows(X, allow_nan=True, encoder=encoder_for(X, text_encoder), y=y)
    width = rows.numbers.shape[1]
    if not issparse(rows.numbers):
        return rows
    if width > 1:
        with np.errstate(invalid="ignore"):  # rows of zeros have no variance to explain
            return InputRows(TruncatedSVD(min(100, width - 1), random_state=0).fit_transform(rows.numbers), rows.given)
    return InputRows(rows.numbers.toarray(), rows.given)


def _from_frame(
    frame: Any, y: Any, label: Any, roles: dict[str, Any], text: list[str], drop: list[str], text_encoder: str
) -> Rows:
    if (label is None) == (y is None):
        raise ValueError("give either y=, the labels, or label=, the name of their column in X")
    named = {role: name for role, name in roles.items() if isinstance(name, str)} | {"label": label}
    places = {name: place_of(frame_columns(frame), name, "X") for name in (*named.values(), *text, *drop) if name}
    values = {role: column_at(frame, places[name]).to_list() for role, name in named.items() if name}
    # for a model of the caller's own: untouched
    given = without_columns(frame, *named.values(), *drop)
    labels = values.pop("label", y)
    copies = [] if label is None else _copies(given, labels)
    features = without_columns(given, *copies)
    encoder = TableEncoder(text=text, text_encoder=_prose(text_encoder))
    rows = _encoded(encoder, features, labels, given)
    notes = [*(f"ignored: {name} (the same as the label in every row)" for name in copies), *encoder.notes_]
    # The index names rows; it is not something to learn from.
    index = frame.index if hasattr(frame, "iloc") else None
    return _united(rows, labels, **(roles | values), index=index, columns=features, notes=notes)


def _encoded(encoder: TableEncoder, features: Any, labels: Any, given: Any) -> InputRows:
    _refuse_few_rows(features.shape[0])
    return InputRows(encoder.fit_transform(features, labels), given, encoder)


def _united(
    rows: InputRows | None, labels: Any, ids: Any, groups: Any, trusted: Any, *, numbers: Any = None, **more: Any
) -> Rows:
    """Everything known of the rows, checked; `numbers` are those of the rows in their file."""
    n = len(np.asarray(labels)) if rows is None else len(rows)
    _refuse_few_rows(n)
    classes, codes = read_labels(labels, most=max(LEAST_ROWS, n // FOLDS))
    if len(codes) != n:
        raise ValueError(f"y has {len(codes)} labels; X has {n} rows")
    doubtful = check_trusted(None if trusted is None else np.asarray(trusted), n)
    return Rows(
        rows=rows,
        labels=classes[codes],
        row_numbers=np.arange(n) if numbers is None else numbers,
        ids=None if ids is None else read_names(ids, n, "ids"),
        groups=None if groups is None else np.array(read_names(groups, n, "groups")),
        trusted=None if doubtful is None else ~doubtful,
        **({"notes": [] if rows is None else rows.notes} | more),
    )


def _prose(name: str) -> Any:
    """What makes vectors of prose, by its name; None is tf-idf."""
    return None if name == "tfidf" else TextEncoder(name)


def _copies(frame: Any, labels: Any) -> list[str]:
    """The columns of a frame that are equal to the labels in every row."""
    known = as_texts(labels)
    found = []
    for place, name in enumerate(frame_columns(frame)):
        column = column_at(frame, place)
        if as_texts(column.head(LEAST_ROWS).to_list()) == known[:LEAST_ROWS] and as_texts(column.to_list()) == known:
            found.append(name)
    return found


def _refuse_few_rows(n: int) -> None:
    if n < LEAST_ROWS:
        raise ValueError(f"there are {n} rows; an audit needs at least {LEAST_ROWS}")


def _several(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


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
    """Find classes that repeat another's name or have too few rows: not one for each held-out fold.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.audit.inputs import look_at_names
    >>> found = look_at_names(np.array(["Stays", "leaves", "stays"]), np.array([1, 40, 60]))
    >>> found.merged.tolist(), found.lines
    ([2, 1, 2], ["'Stays' (1 row) and 'stays' (60 rows) differ only in case or spaces: probably one class"])
    """
    merged, lines = merge_alike(classes, counts)
    total = np.bincount(merged, weights=counts, minlength=len(classes))
    few = np.flatnonzero((merged == np.arange(len(classes))) & (total > 0) & (total < FOLDS))
    lines += [
        f"class {name_of(classes, counts, int(c))} is too small to judge: its labels are not audited" for c in few
    ]
    return ClassNames(merged, few, lines)
