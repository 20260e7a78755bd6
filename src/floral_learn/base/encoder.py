"""Columns of a table as numbers in which distances mean something, learned from training rows.

Each kind of column becomes numbers by scikit-learn's own encoders. Every column has the weight of one standardised
number in a distance (mean squared norm 1 over the training rows, a text 4): else a category of many values, or a text
of hundreds of components, would drown the numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler, normalize
from sklearn.utils.validation import check_is_fitted

from floral_learn.base.cells import TableError, as_numbers, as_texts, objects, short, some
from floral_learn.base.estimator import Estimator, whole_fit
from floral_learn.base.frames import typed_columns
from floral_learn.base.validation import LARGEST_SINGLE

WORDS = 3  # mean words from which a column of many values is prose
LONG = 40  # mean characters from which it is prose too
_UNNAMED = re.compile(r"(Unnamed: [0-9]+|__index_level_[0-9]+__)?")
_IDENTIFIERS = {"id", "index", "idx", "row", "rowid", "row number", "number", "no", "nr", "#", "uid", "key"}
TEXT_WEIGHT = 2.0  # norm of a text's numbers: it counts as much as four standardised numbers
FARTHEST = LARGEST_SINGLE ** (1 / 3)  # standard deviations; cubes of a wild new value stay finite in every kernel
DATE_FORMATS = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%d-%m-%Y",
    "%Y%m%d",
    "%d %b %Y",
    "%b %d, %Y",
    "%Y-%m-%d %H:%M",
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%d/%m/%Y %H:%M",
    "ISO8601",
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TableEncoder(TransformerMixin, Estimator):
    """Turn the columns of a table into standardised numbers for a kernel machine, and say what became of each.

    Numbers are standardised (missing and infinite ones become the median), categories become indicator columns, dates
    a trend and circles of year, week and day, prose tf-idf components. Every column has the weight of one standardised
    number in a distance, a text that of four. Constant columns, row numbers, identifiers and nested values are left
    out. What is learned comes from the rows given to `fit` alone and is stored in model files.

    Parameters
    ----------
    text : sequence of str
        Columns that are prose whatever they look like.
    text_encoder : transformer, optional
        What makes vectors of a list of texts, such as `floral_learn.encoders.TextEncoder`; by default tf-idf and the
        first singular vectors.
    random_state : int, default=0
        Draws the start of the components.

    Attributes
    ----------
    columns_ : dict of str to str
        The role of every column: "number", "category", "date", "text" or "ignored (why)".
    parts_ : list of (transformer, ndarray of int)
        What was learned, and the places of its columns in ``feature_names_in_``.
    notes_ : list of str
        What became of the columns, one line per role, for people.
    feature_names_in_ : ndarray of str
        Columns that `transform` needs.

    Examples
    --------
    >>> import pandas as pd
    >>> from floral_learn.base import TableEncoder
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, None, 4.0], "colour": ["red", "blue", "red", None]})
    >>> encoder = TableEncoder().fit(frame)
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'colour=(missing)', 'colour=blue', 'colour=red']
    >>> encoder.transform(pd.DataFrame({"size": [2.0], "colour": ["never seen"]})).shape
    (1, 4)
    """

    def __init__(
        self,
        *,
        text: Sequence[str] = (),
        text_encoder: Any = None,
        random_state: int = 0,
    ) -> None:
        self.text = text
        self.text_encoder = text_encoder
        self.random_state = random_state

    @whole_fit
    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn roles, medians, categories, formats and words from the training rows of a frame.

        Parameters
        ----------
        X : pandas, polars or pyarrow frame of shape (n, d)
            Training rows; `Table.features` is one.
        y : array-like of shape (n,), optional
            Labels, for a `text_encoder` that uses them.

        Returns
        -------
        TableEncoder
            Itself.
        """
        columns = typed_columns(X)
        words = self.text_encoder or WordVectors(random_state=self.random_state)
        if not hasattr(words, "transform"):
            raise ValueError(f"text_encoder={self.text_encoder!r} must be a transformer of texts, or None for tf-idf")
        if absent := [name for name in self.text if name not in columns]:
            raise TableError(f"text={short(absent[0])} is not a column; the columns are: {some(columns)}")
        kinds = {name: self._kind(name, column) for name, column in columns.items()}
        roles = {name: role for name, (role, _) in kinds.items()}
        used = [name for name, role in roles.items() if not role.startswith("ignored")]
        if not used:
            ignored = ", ".join(f"{short(name)} ({role[9:-1]})" for name, role in list(roles.items())[:12])
            raise TableError(
                "no usable feature column beside the label"
                + (f"; ignored: {ignored}" if ignored else "")
                + ". A column of prose can be named with --text (text=)"
            )
        parts: list[tuple[Any, list[str]]] = [
            (NumberColumns(), _of(roles, "number")),
            (CategoryColumns(), _of(roles, "category")),
            *((DateColumn(name, kinds[name][1]), [name]) for name in _of(roles, "date")),
            *((TextColumn(words), [name]) for name in _of(roles, "text")),
        ]
        # by place: in a model file a list of 100,000 names would be as many objects
        place = {name: number for number, name in enumerate(used)}
        self.parts_ = [
            (part.fit([columns[name] for name in names], y), np.array([place[name] for name in names]))
            for part, names in parts
            if names
        ]
        self.columns_ = roles
        self.feature_names_in_ = np.array(used, dtype=object)
        self.n_features_in_ = len(used)
        self.notes_ = self._notes(sum(int((~np.isfinite(columns[name])).sum()) for name in _of(roles, "number")))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Numbers (n, width) of rows; other columns than those learned are ignored.

        Parameters
        ----------
        X : pandas, polars or pyarrow frame of shape (n, d)
            Rows with at least the columns `feature_names_in_`, in any order.

        Returns
        -------
        ndarray of shape (n, width)
            Standardised numbers.
        """
        check_is_fitted(self)
        columns = typed_columns(X)
        if absent := [name for name in self.feature_names_in_ if name not in columns]:
            raise TableError(
                f"there is no column {short(absent[0])}, which the model was trained on"
                + (f" (nor {len(absent) - 1} more)" if len(absent) > 1 else "")
                + f"; the columns are: {some(columns)}"
            )
        used = [
            _numbers(name, columns[name]) if self.columns_[name] == "number" else columns[name]
            for name in self.feature_names_in_
        ]
        return np.hstack([part.transform([used[place] for place in places]) for part, places in self.parts_])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns that `transform` makes.

        Parameters
        ----------
        input_features : ignored
            For scikit-learn.

        Returns
        -------
        ndarray of str
            One name per column.
        """
        check_is_fitted(self)
        used = self.feature_names_in_
        made = [name for part, places in self.parts_ for name in part.names(used[places].tolist())]
        return np.array(made, dtype=object)

    def describe(self) -> str:
        """What became of the columns, in one line."""
        check_is_fitted(self)
        return "; ".join(self.notes_)

    @property
    def as_text(self) -> list[str]:
        """Columns for `read_table(..., as_text=encoder.as_text)`, which keeps the category 1.50 from being 1.5."""
        check_is_fitted(self)
        return [name for name, role in self.columns_.items() if role in ("category", "text", "date")]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags

    def _kind(self, name: str, column: np.ndarray) -> tuple[str, str | None]:
        """The role of a column (as `typed_column` makes it), and the format of dates."""
        if name in self.text:
            if all(text is None for text in as_texts(column)):
                raise TableError(f"column {short(name)} has no words to compare rows by")
            return "text", None
        if column.dtype.kind == "f":
            return _kind_of_numbers(name, column), None
        present = [text for text in as_texts(column) if text is not None]
        if not present:
            return "ignored (all missing)", None
        distinct = len(set(present))
        if distinct == 1 and len(present) == len(column):
            return "ignored (constant)", None
        if column.dtype.kind == "M":
            return "date", None
        if distinct > 1 and (found := find_date_format(present)) is not None:
            return "date", found
        words = np.mean([len(text.split()) for text in present])
        prose = words >= WORDS or np.mean([len(text) for text in present]) >= LONG
        # In a short table prose may have few values, but then no two of them are alike.
        if distinct <= CategoryColumns().max_categories and not (prose and distinct == len(present)):
            return "category", None
        if prose:
            return "text", None
        if distinct > len(present) / 2:
            return f"ignored ({distinct:,} different values)", None
        return "category", None

    def _notes(self, missing: int) -> list[str]:
        """What became of the columns, a note per role and per text."""
        fitted = {self.feature_names_in_[places[0]]: part for part, places in self.parts_}  # by its first column
        numbers, categories, dates, texts = (_of(self.columns_, r) for r in ("number", "category", "date", "text"))
        notes = []
        if numbers:
            filled = f" ({missing:,} missing or infinite values became the median)" if missing else ""
            notes.append(f"{_count(numbers, 'number column')} standardised{filled}: {_plain(numbers)}")
        if categories:
            width = sum(map(len, fitted[categories[0]].values_))
            notes.append(f"{_count(categories, 'category column')} as {width} indicators: {_plain(categories)}")
        if dates:
            notes.append(f"{_count(dates, 'date column')} as trend and season: {_plain(dates)}")
        notes += [f"text column {name}: {fitted[name].describe()}" for name in texts]
        unused = [(name, role) for name, role in self.columns_.items() if role.startswith("ignored")]
        if unused:
            notes.append(f"ignored: {_plain([f'{name or repr(name)} ({role[9:-1]})' for name, role in unused])}")
        return notes

    def __getstate__(self) -> dict[str, Any]:
        """As attributes, with the names of columns as one text: skops writes a file of its own for each of a list."""
        state = super().__getstate__()
        if "columns_" in state:
            return state | {"columns_": json.dumps(state["columns_"]), "feature_names_in_": None}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "columns_" in state:
            roles = json.loads(state["columns_"])
            used = [name for name, role in roles.items() if not role.startswith("ignored")]
            state = state | {"columns_": roles, "feature_names_in_": np.array(used, dtype=object)}
        super().__setstate__(state)


class NumberColumns(TransformerMixin, BaseEstimator):
    """Standardised numbers; missing and infinite ones become the training median."""

    def fit(self, X: Any, y: Any = None) -> NumberColumns:
        """Learn medians, means and deviations; also where values are near the ends of what a float holds."""
        peak = np.nanmax(np.abs(_finite(X)), axis=0, initial=0.0)
        self.peak_ = np.where(peak > 0, peak, 1.0)
        self.imputer_ = SimpleImputer(strategy="median").fit(_finite(X, self.peak_))
        self.scaler_ = StandardScaler().fit(self.imputer_.transform(_finite(X, self.peak_)))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """One standardised column each."""
        filled = self.imputer_.transform(_finite(X, self.peak_))
        return np.clip(self.scaler_.transform(filled), -FARTHEST, FARTHEST)

    def names(self, columns: list[str]) -> list[str]:
        """Names of the columns made."""
        return columns


class CategoryColumns(TransformerMixin, BaseEstimator):
    """One indicator per frequent value and one for the rest, centred; missing is a value of its own."""

    def __init__(self, max_categories: int = 50) -> None:
        self.max_categories = max_categories

    def fit(self, X: Any, y: Any = None) -> CategoryColumns:
        """Learn the values, the most frequent ones where there are too many, and their shares."""
        self.indicators_ = OneHotEncoder(
            max_categories=self.max_categories + 1, handle_unknown="infrequent_if_exist", sparse_output=False
        )
        made = self.indicators_.fit_transform(_texts(X))
        self.mean_ = made.mean(axis=0)
        widths = [len(values) for values in self.values_]
        starts = np.cumsum([0, *widths[:-1]])
        spread = np.add.reduceat(((made - self.mean_) ** 2).mean(axis=0), starts)  # of a column's indicators together
        self.scale_ = np.repeat(np.where(spread > 0, np.sqrt(spread), 1.0), widths)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Indicators, centred and scaled; an unknown value belongs to the rest, or to nothing."""
        return (self.indicators_.transform(_texts(X)) - self.mean_) / self.scale_

    @property
    def values_(self) -> list[list[str]]:
        """The values of each column that have an indicator, "(other)" for the rest."""
        rare = self.indicators_.infrequent_categories_
        return [
            list(known) if few is None else [*(value for value in known if value not in few), "(other)"]
            for known, few in zip(self.indicators_.categories_, rare, strict=True)
        ]

    def names(self, columns: list[str]) -> list[str]:
        """Names of the columns made."""
        return [f"{name}={value}" for name, values in zip(columns, self.values_, strict=True) for value in values]


class DateColumn(TransformerMixin, BaseEstimator):
    """When in time, standardised, and when in the year, the week and the day, as points on circles."""

    def __init__(self, name: str, date_format: str | None = None) -> None:
        self.name = name
        self.date_format = date_format

    def fit(self, X: Any, y: Any = None) -> DateColumn:
        """Learn the span of time, and which circles say more than one thing."""
        days = self._days(X)
        self.time_ = NumberColumns().fit(days.T)
        self.parts_ = [part for part, made in _circles(days).items() if np.nanstd(made, axis=0).max() > 1e-6]
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Time, then sine and cosine of each circle; a missing date is the median date, on no circle."""
        days = self._days(X)
        circles, share = _circles(days), 1 / np.sqrt(max(len(self.parts_), 1))
        turns = [np.nan_to_num(circles[part]) * share for part in self.parts_]
        return np.hstack([self.time_.transform(days.T), *turns])

    def names(self, columns: list[str]) -> list[str]:
        """Names of the columns made."""
        (name,) = columns
        return [name, *(f"{name} {wave} of {part}" for part in self.parts_ for wave in ("sine", "cosine"))]

    def _days(self, X: Any) -> np.ndarray:
        """Days since 1970 (n, 1), NaN where missing."""
        found = parse_dates(X[0], self.date_format)
        if found is None:
            raise TableError(
                f"column {short(self.name)} has values that are not dates in the format of the training rows"
            )
        return found[:, None]


class WordVectors(TransformerMixin, BaseEstimator):
    """Vectors of length one by the words of texts: tf-idf and its first singular vectors; zero without a known word."""

    def __init__(self, components: int = 100, random_state: int = 0) -> None:
        self.components = components
        self.random_state = random_state

    def fit(self, texts: Any, y: Any = None) -> WordVectors:
        """Learn words that two texts have, or any sign where there are too few; a ValueError where there is nothing."""
        for pattern, least in ((r"(?u)\b\w\w+\b", 2), (r"(?u)\S+", 1)):
            self.tfidf_ = TfidfVectorizer(sublinear_tf=True, min_df=least, max_features=20_000, token_pattern=pattern)
            try:
                table = self.tfidf_.fit_transform(texts)
            except ValueError:  # no word occurs so often
                continue
            rank = min(self.components, table.shape[1] - 1, table.shape[0] - 1)
            self.vectors_ = TruncatedSVD(rank, random_state=self.random_state) if rank >= 1 else None
            if self.vectors_ is not None:
                with np.errstate(invalid="ignore", divide="ignore"):  # the share of a variance that may be none
                    self.vectors_.fit(table)
                return self
        if hasattr(self, "vectors_"):  # one word, or one text
            return self
        raise ValueError("no words to compare rows by")

    def transform(self, texts: Any) -> np.ndarray:
        """Vectors (n, components)."""
        table = self.tfidf_.transform(texts)
        return normalize(table.toarray() if self.vectors_ is None else self.vectors_.transform(table))


class TextColumn(TransformerMixin, BaseEstimator):
    """Vectors of one length, made by `encoder`: `WordVectors`, or what is passed in."""

    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder

    def fit(self, X: Any, y: Any = None) -> TextColumn:
        """Learn what `encoder` learns of texts (and labels)."""
        self.encoder_ = clone(self.encoder).fit(_texts(X, "")[:, 0].tolist(), y)
        self.width_ = self.transform(X).shape[1]
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Vectors of one length; an empty text is zero."""
        texts = _texts(X, "")[:, 0].tolist()
        made = normalize(np.asarray(self.encoder_.transform(texts), dtype=float))
        return TEXT_WEIGHT * np.where([[bool(text.strip())] for text in texts], made, 0.0)

    def names(self, columns: list[str]) -> list[str]:
        """Names of the columns made."""
        return [f"{columns[0]}~{number}" for number in range(self.width_)]

    def describe(self) -> str:
        """What is done to the text, for people."""
        if isinstance(self.encoder_, WordVectors):
            return f"tf-idf of {len(self.encoder_.tfidf_.vocabulary_):,} words, {self.width_} components"
        return f"{type(self.encoder).__name__}, {self.width_} numbers"


def _of(roles: dict[str, str], role: str) -> list[str]:
    return [name for name, found in roles.items() if found == role]


def _kind_of_numbers(name: str, column: np.ndarray) -> str:
    finite = column[np.isfinite(column)]
    if not len(finite) or finite.min() == finite.max():
        return "ignored (constant)" if len(finite) else "ignored (all missing)"
    return "ignored (row numbers)" if _identifies(name, finite, len(column)) else "number"


def _identifies(name: str, values: np.ndarray, n: int) -> bool:
    """Row numbers and keys: a column without a name, or named so, of whole numbers that are all different."""
    plain = name.strip().lower()
    named = bool(_UNNAMED.fullmatch(name.strip())) or plain in _IDENTIFIERS or plain.endswith("_id")
    return named and len(values) == n and len(np.unique(values)) == n and bool((values == np.floor(values)).all())


def _numbers(name: str, column: np.ndarray) -> np.ndarray:
    """A column that was numbers in training as numbers; a cell that is none is an error with its row."""
    if column.dtype.kind == "f":
        return column
    texts = as_texts(column)
    if all(text is None for text in texts):
        return np.full(len(texts), np.nan)
    found = as_numbers(["" if text is None else text for text in texts], comma=True)
    if found is None:
        known = [(row, text) for row, text in enumerate(texts) if text is not None]
        odd = next(row for row, text in known if as_numbers([text], comma=True) is None)
        raise TableError(
            f"column {short(name)} was numbers in training and has other values here (row {odd} is {short(texts[odd])})"
        )
    return found[0]


def _count(names: list[str], what: str) -> str:
    return f"{len(names)} {what}{'s' if len(names) > 1 else ''}"


def _plain(names: list[str]) -> str:
    """The first twelve names, without quotes, and how many more there are."""
    shown = ", ".join(name if len(name) <= 60 else f"{name[:57]}..." for name in names[:12])
    return shown + (f" and {len(names) - 12:,} more" if len(names) > 12 else "")


def parse_dates(column: np.ndarray, date_format: str | None) -> np.ndarray | None:
    """Days since 1970 (n,), NaN where missing; None where a value is no date of that format."""
    if column.dtype.kind == "M":
        days = (column.astype("datetime64[us]") - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        return days.astype(float)
    texts = as_texts(column)
    if all(text is None for text in texts):
        return np.full(len(texts), np.nan)
    if date_format is None:
        return None
    read: dict[str | None, float] = {None: np.nan}
    for text in set(texts) - {None}:
        assert text is not None
        try:
            iso = date_format == "ISO8601"
            found = datetime.fromisoformat(text) if iso else datetime.strptime(text, date_format)
        except ValueError:
            return None
        if found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
        read[text] = (found - _EPOCH) / timedelta(days=1)
    return np.array([read[text] for text in texts])


def find_date_format(texts: list[str]) -> str | None:
    """The first known format that fits every text of a column."""
    first = texts[0] if texts else ""
    if not 6 <= len(first) <= 35 or not any(c.isdigit() for c in first):
        return None
    values = objects(texts)
    for known in DATE_FORMATS:
        if parse_dates(values[:20], known) is not None and parse_dates(values, known) is not None:
            return known
    return None


def _circles(days: np.ndarray) -> dict[str, np.ndarray]:
    turns = {"year": days / 365.2425, "week": np.floor(days) / 7, "day": days}
    angles = {part: 2 * np.pi * turn for part, turn in turns.items()}
    return {part: np.hstack([np.sin(angle), np.cos(angle)]) for part, angle in angles.items()}


def _texts(X: Any, missing: str = "(missing)") -> np.ndarray:
    """The cells (n, d) of d columns as texts."""
    return np.array([[missing if t is None else t for t in as_texts(column)] for column in X], dtype=object).T


def _finite(X: Any, scale: Any = 1.0) -> np.ndarray:
    """The numbers (n, d) of d columns in units of `scale`, NaN where missing or infinite."""
    with np.errstate(over="ignore"):
        values = np.column_stack(X) / scale
    return np.where(np.isfinite(values), values, np.nan)
