"""Tables of users: one reader for every kind of file and frame, and copies with other labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from floral_learn.base import Shown
from floral_learn.base.cells import TableError, as_numbers, as_texts, is_missing, merge_alike, objects, short
from floral_learn.base.frames import frame_columns, frame_of, spread_vectors
from floral_learn.base.rows import take_rows

from .source import Source, as_flags, as_labels, open_source

__all__ = ["Table", "read_table"]


@dataclass(frozen=True, repr=False)
class Table(Shown):
    """Rows with their labels: what `read_table` returns.

    Attributes
    ----------
    features : DataFrame of shape (n, d)
        Columns to learn from: floats, dates or text (None where missing), unique names. Never the label, nor a column
        that was given another meaning.
    labels : ndarray of shape (n,) or None
        Integers, floats or text; None where no label was asked for.
    ids, groups : ndarray of str of shape (n,) or None
        Names of rows, and who labelled them.
    weights : ndarray of float of shape (n,) or None
        One number of at least 0 per row.
    trusted : ndarray of bool of shape (n,) or None
        Rows whose label is known to be right.
    rows : ndarray of int of shape (n,)
        The number of each row in the file, counted from 0: rows without a label may have been skipped.
    text : tuple of str
        Feature columns that the caller said are texts.
    name : str
        The file, for messages.
    notes : list of str
        What was found or left out, one line each, for people.
    encoder : transformer or None
        What makes numbers of the features, where it is no `TableEncoder`: of pictures, say.

    Examples
    --------
    >>> import pandas as pd
    >>> from floral_learn.app import read_table
    >>> read_table(pd.DataFrame({"size": [1.0, 2.0], "y": ["no", "yes"]}), label="y")
    <Table the table: 2 rows, 1 feature columns, 2 classes>
    """

    features: Any
    labels: np.ndarray | None
    ids: np.ndarray | None
    groups: np.ndarray | None
    weights: np.ndarray | None
    trusted: np.ndarray | None
    rows: np.ndarray
    text: tuple[str, ...]
    name: str
    notes: list[str]
    label: str | None = None
    source: Source = field(default=None, compare=False)  # type: ignore[assignment]
    position: int | None = None
    encoder: Any = None

    def __len__(self) -> int:
        return len(self.rows)

    def _facts(self) -> dict[str, str]:
        features = ", ".join(frame_columns(self.features)[:8])
        facts = {"rows": f"{len(self):,}", "features": features or "none"}
        if self.labels is not None:
            classes, counts = np.unique(self.labels, return_counts=True)
            first = zip(classes[:8].tolist(), counts, strict=False)
            shown = ", ".join(f"{name} ({n:,})" for name, n in first)
            facts[f"label {self.label}"] = shown + (", ..." if len(classes) > 8 else "")
        return facts | {f"note {number}": text for number, text in enumerate(self.notes[:3], 1)}

    def __repr__(self) -> str:
        classes = "" if self.labels is None else f", {len(np.unique(self.labels))} classes"
        return f"<Table {self.name}: {len(self):,} rows, {self.features.shape[1]} feature columns{classes}>"

    @property
    def classes(self) -> np.ndarray:
        """The labels that occur, sorted."""
        return np.unique(self._labels())

    def column(self, name: str) -> list[str | None]:
        """Any column of the file as text, None where missing."""
        texts = as_texts(self.source.cells(self.source.position(name)))
        return [texts[row] for row in self.rows]

    def check_classes(self, *, least: int = 1) -> Table:
        """Refuse labels of one value, of as many as a measurement, or a class of fewer than `least` rows."""
        labels = self._labels()
        classes, counts = np.unique(labels, return_counts=True)
        where = f"{self.name}: column {short(self.label)}"
        if len(classes) < 2:
            raise TableError(f"{where} has one value only, {short(classes[0])}: at least 2 classes are needed")
        if len(classes) > max(20, len(self) // 4):
            many, name = f"{where} has {len(classes):,} different", "name the column of the classes"
            if labels.dtype.kind == "f":
                raise TableError(f"{many} numbers: this is for classes; bin them (pandas.cut) or name another column")
            what = "a name of rows" if len(classes) == len(labels) else "no class"
            raise TableError(f"{many} values in {len(labels):,} rows, which is {what}: {name}")
        if counts.min() < least:
            raise TableError(
                f"{where}: class {short(classes[counts.argmin()])} has {counts.min()} rows; at least {least} are needed"
            )
        return self

    def relabelled(self, rows: Any, new: Any) -> Any:
        """The file with the labels of `rows` replaced by `new`, all other values as they were (a frame: a copy).

        Parameters
        ----------
        rows : array-like of int
            Rows of this table (positions in `labels`).
        new : array-like
            Their new labels.
        """
        self._labels()
        assert self.position is not None
        numbers = self.rows[np.asarray(rows, dtype=np.intp)]
        return self.source.relabelled(self.position, numbers, np.asarray(new))

    def _labels(self) -> np.ndarray:
        if self.labels is None:
            raise TableError(f"{self.name} was read without a label column")
        return self.labels


def read_table(
    source: str | os.PathLike[str] | Any,
    *,
    label: Any = None,
    text: Sequence[str] = (),
    ids: Any = None,
    groups: Any = None,
    weights: Any = None,
    trusted: Any = None,
    drop: Sequence[Any] = (),
    as_text: Sequence[str] = (),
    sep: str | None = None,
    encoding: str | None = None,
    skip_blank_labels: bool = False,
) -> Table:
    """Read a .csv, .tsv, .txt or .parquet file, or a pandas frame, into features, labels and what else is named.

    The label is found once and taken out by its position, so that it can never be a feature, whatever its column is
    called. A ``;`` or tab as separator, decimal commas, byte order marks and the usual spellings of a missing value
    are understood; `TableError` names what is wrong and the option that fixes it.

    Parameters
    ----------
    source : path or DataFrame
        The table. A named index of a frame, and the index in a Parquet file, count as columns.
    label : str, optional
        Label column. None reads features only.
    text : sequence of str
        Columns of prose; they are kept as text and `TableEncoder(text=...)` reads them.
    ids, groups, weights, trusted : str, optional
        Columns that name the rows, name who labelled them, weigh them, and mark labels known to be right.
    drop : sequence of str
        Columns to leave out.
    as_text : sequence of str
        Columns to keep as text even if all values are numbers (what a fitted encoder took for categories).
    sep, encoding : str, optional
        Of a text file; by default found from its first lines, and UTF-8 or what its byte order mark says.
    skip_blank_labels : bool, default=False
        Leave out rows without a label in place of an error; `Table.rows` has the numbers of those that stay.

    Returns
    -------
    Table
        Features, labels, and the columns with a meaning of their own.

    Raises
    ------
    TableError
        A ValueError: the table cannot be used, and why.

    Examples
    --------
    >>> import pandas as pd
    >>> from floral_learn.app import read_table
    >>> from floral_learn.base import TableEncoder
    >>> frame = pd.DataFrame({"size": [1.5, 2.5, 3.5], "colour": ["red", "blue", "red"], "y": ["no", "yes", ""]})
    >>> table = read_table(frame, label="y", skip_blank_labels=True)
    >>> table.labels.tolist(), list(table.features), table.rows.tolist()
    (['no', 'yes'], ['size', 'colour'], [0, 1])
    >>> TableEncoder().fit_transform(table.features).shape
    (2, 3)
    """
    opened = open_source(source, sep, encoding, label)
    if opened.choice is not None and label is not None:
        label = opened.choice
    taken: dict[int, str] = {}
    named = {"label": label, "id": ids, "group": groups, "weight": weights, "trusted": trusted}
    asked = [(option, column) for option, column in named.items() if column is not None]
    asked += [("drop", column) for column in dict.fromkeys(drop)]
    for option, column in asked:
        place = opened.position(column)
        if place in taken:
            raise TableError(f"column {short(column)} cannot be both {taken[place]} and {option}")
        taken[place] = option
    prose = {opened.position(column) for column in text}
    if both := prose & set(taken):
        column = short(opened.columns[min(both)])
        raise TableError(f"column {column} cannot be both {taken[min(both)]} and text; name the content of the rows")
    places = {option: place for place, option in taken.items() if option != "drop"}
    cells = {option: opened.cells(place) for option, place in places.items()}
    labels, keep = _labels(opened, cells.get("label"), places.get("label"), skip_blank_labels)
    names = _unique(opened.columns)
    plain = prose | {place for place, name in enumerate(names) if name in set(as_text)}
    features, notes = _features(opened, taken, plain, names)
    if labels is not None:
        given = cells["label"]
        kept = [given[row] for row in keep.tolist()]
        notes += _without_copies(opened, features, kept, labels, keep)
        notes += merge_alike(*np.unique(labels, return_counts=True))[1]
        if lost := opened.n_rows - len(keep):
            first = int(np.setdiff1d(np.arange(opened.n_rows), keep)[0])
            notes.append(f"{lost:,} rows without a label skipped (first: row {first})")

    def texts(option: str, missing: str) -> np.ndarray | None:
        if option not in cells:
            return None
        names = as_texts(cells[option])
        return objects(missing if name is None else name for name in names)[keep]

    sure = None
    if trusted is not None:
        sure = as_flags(cells["trusted"], f"{opened.name}: column {short(trusted)}")[keep]
    return Table(
        features=_frame({name: values for name, (_, values) in features.items()}, opened, keep),
        labels=labels,
        ids=texts("id", ""),
        groups=texts("group", "(missing)"),
        weights=_weights(cells.get("weight"), keep, opened.name),
        trusted=sure,
        rows=keep,
        text=tuple(names[place] for place in sorted(prose)),
        name=opened.name,
        notes=[*opened.notes, *notes],
        label=None if label is None else opened.columns[places["label"]],
        source=opened,
        position=places.get("label"),
    )


def _labels(source: Source, cells: Any, place: Any, skip: bool) -> tuple[np.ndarray | None, np.ndarray]:
    """The labels of the rows that have one, and the numbers of these rows."""
    everything = np.arange(source.n_rows)
    if cells is None:
        return None, everything
    labels, blank = as_labels(cells, f"{source.name}: column {short(source.columns[place])}")
    if blank.all():
        raise TableError(f"{source.name} has no labels: every cell is blank")
    if blank.any() and not skip:
        raise TableError(
            f"{source.name} has {int(blank.sum())} missing labels (first: row {int(blank.argmax())}); leave such rows "
            "out with --skip-blank (skip_blank_labels=True)"
        )
    return labels[~blank], everything[~blank]


# name -> place of the column (None: a part of it), and its typed values
Features = dict[str, tuple[int | None, Any]]


def _features(source: Source, taken: dict[int, str], plain: set[int], names: list[str]) -> tuple[Features, list[str]]:
    """The columns that were not taken, and notes on those that cannot be features."""
    columns: Features = {}
    notes = []
    for place, name in enumerate(names):
        if place in taken or place in source.no_features:
            continue
        made = source.typed(place, place in plain)
        if made is not None:
            columns[name] = place, made
        elif (spread := spread_vectors(source.cells(place))) is not None:
            for number, values in enumerate(spread.T):
                columns[f"{name}[{number}]"] = None, values
            notes.append(f"{name} is spread over {spread.shape[1]:,} number columns")
        else:
            notes.append(f"ignored: {name} (nested values)")
    return columns, notes


def _without_copies(
    source: Source, features: Features, given: list[Any], labels: np.ndarray, keep: np.ndarray
) -> list[str]:
    """Take out the columns that repeat the label, as it was typed or cell by cell, and say so.

    In fewer than 20 rows a column can be equal to the label by chance. True becomes 1.0, a long integer a float and a
    time zone is dropped where columns are typed, not where labels are: so cells are compared, too.
    """
    if len(keep) < 20:
        return []
    notes = []
    # The first rows decide for most columns.
    tries = [(keep[:n], as_texts(labels[:n]), as_texts(given[:n])) for n in (1, 20, len(keep))]
    for name, (place, values) in list(features.items()):
        if all(
            (place is not None and as_texts(source.cells(place, rows)) == raw)
            # of texts, cells say all
            or (isinstance(values, np.ndarray) and as_texts(values[rows]) == typed)
            for rows, typed, raw in tries
        ):
            del features[name]
            notes.append(f"ignored: {name} (the same as the label in every row)")
    return notes


def _frame(columns: dict[str, Any], source: Source, keep: np.ndarray) -> Any:
    """The features of the rows in `keep` as a frame."""
    whole = frame_of(columns, source.like, source.n_rows)
    if len(keep) == source.n_rows:
        return whole
    some = take_rows(whole, keep)
    return some.reset_index(drop=True) if hasattr(some, "iloc") else some


def _unique(names: list[str]) -> list[str]:
    """Names as they are, repeated ones with a number: x, x.1, x.2."""
    known, out = set(names), dict[str, None]()
    for name in names:
        spelled, number = name, 0
        while spelled in out or (number and spelled in known):
            number += 1
            spelled = f"{name}.{number}"
        out[spelled] = None
    return list(out)


def _weights(cells: list[Any] | None, keep: np.ndarray, name: str) -> np.ndarray | None:
    if cells is None:
        return None
    texts = ["" if is_missing(cell) else str(cell) for cell in cells]
    found = as_numbers(texts, comma=True)
    values = np.full(1, np.nan) if found is None else found[0][keep]
    if not np.isfinite(values).all() or (values < 0).any() or not values.any():
        raise TableError(f"{name}: the weight column must hold numbers of at least 0, not all 0, none missing")
    return values
