"""Kinds of columns and the numbers that are made of each, on scikit-learn's own encoders; X is a list of columns.

Every column has the weight of one standardised number in a distance (mean squared norm 1 over the training rows, a text
4): else a category of many values, or a text of hundreds of components, would drown the numbers.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler, normalize

from floral_learn.base.cells import TableError, as_texts, objects, short
from floral_learn.base.validation import LARGEST_SINGLE

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
            [value for value in known if few is None or value not in few] + ([] if few is None else ["(other)"])
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
        return np.hstack([self.time_.transform(days.T), *(np.nan_to_num(circles[p]) * share for p in self.parts_)])

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
    return {part: np.hstack([np.sin(2 * np.pi * turn), np.cos(2 * np.pi * turn)]) for part, turn in turns.items()}


def _texts(X: Any, missing: str = "(missing)") -> np.ndarray:
    """The cells (n, d) of d columns as texts."""
    return np.array([[missing if t is None else t for t in as_texts(column)] for column in X], dtype=object).T


def _finite(X: Any, scale: Any = 1.0) -> np.ndarray:
    """The numbers (n, d) of d columns in units of `scale`, NaN where missing or infinite."""
    with np.errstate(over="ignore"):
        values = np.column_stack(X) / scale
    return np.where(np.isfinite(values), values, np.nan)
