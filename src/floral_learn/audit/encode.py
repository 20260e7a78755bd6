"""Turn a data frame into numbers in which distances mean something, and say in words what was done to each column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

MANY_VALUES = 50
TEXT_COMPONENTS = 64
_MANY_CHARACTERS = 20_000_000  # above, pairs of words would take minutes and gigabytes
_LONG = 40  # characters: a column of longer texts is prose, not a category


@dataclass(frozen=True)
class Encoded:
    """Numbers (n, d) and one line a step."""

    X: np.ndarray
    notes: list[str]


def encode(frame: Any, *, leave_out: list[str], text: list[str], random_state: int = 0) -> Encoded:
    """Numbers are standardised, categories become indicator columns, `text` columns tf-idf components.

    Missing numbers become the median and missing categories a value of their own; both are counted in the notes.
    Columns that are all missing, constant, dates or names (nearly as many values as rows) are ignored and named.
    """
    blocks, notes, ignored = [], [], []
    numbers, filled, categories, indicators = [], 0, [], 0
    for name in frame.columns:
        if name in leave_out:
            continue
        column = frame[name]
        if name in text:
            block, note = _text(name, column, random_state)
            notes.append(note)
        elif _is_number(column):
            values = column.astype(float).to_numpy()
            bad = ~np.isfinite(values)
            if bad.all() or np.nanmax(values[~bad]) == np.nanmin(values[~bad]):
                ignored.append(f"{name} (constant)")
                continue
            filled += int(bad.sum())
            values = np.where(bad, np.median(values[~bad]), values)
            block = ((values - values.mean()) / values.std())[:, None]
            numbers.append(name)
        else:
            made = _indicators(column)
            if isinstance(made, str):
                ignored.append(f"{name} ({made})")
                continue
            block = made
            categories.append(name)
            indicators += block.shape[1]
        blocks.append(block)
    if not blocks:
        raise ValueError(
            "there is no usable feature column beside the label"
            + (f"; ignored: {', '.join(ignored)}" if ignored else "")
            + ". Name a column of texts with --text"
        )
    if numbers:
        missing = f" ({filled:,} missing or infinite values became the median)" if filled else ""
        notes.insert(0, f"{_count(numbers, 'number column')} standardised{missing}: {_names(numbers)}")
    if categories:
        notes.append(f"{_count(categories, 'category column')} as {indicators} indicators: {_names(categories)}")
    if ignored:
        notes.append(f"ignored: {', '.join(ignored)}")
    return Encoded(np.hstack(blocks), notes)


def _is_number(column: Any) -> bool:
    import pandas as pd

    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column)


def _indicators(column: Any) -> np.ndarray | str:
    """Indicator columns scaled to the weight of one number column, or why there are none."""
    import pandas as pd

    missing = column.isna()
    distinct = column.nunique()
    if distinct == 0:
        return "all missing"
    texts = column.astype(object).where(~missing, "(missing)").astype(str)
    if distinct > MANY_VALUES:
        long = texts.str.len().mean() > _LONG
        return "texts: name it with --text to use it" if long else f"{distinct:,} different values"
    made = pd.get_dummies(texts, dtype=float).to_numpy()
    if made.shape[1] == 1:
        return "constant"
    made = made - made.mean(axis=0)
    return made / np.sqrt((made**2).sum(axis=1).mean())


def _text(name: str, column: Any, random_state: int) -> tuple[np.ndarray, str]:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = column.astype(object).where(column.notna(), "").astype(str)
    empty = int((texts.str.strip() == "").sum())
    brief = int(texts.str.len().sum()) > _MANY_CHARACTERS
    try:
        longest = 1 if brief else 2
        words = TfidfVectorizer(sublinear_tf=True, min_df=2, max_df=0.5, max_features=50_000, ngram_range=(1, longest))
        table = words.fit_transform(texts)
    except ValueError:
        try:
            table = TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\S+").fit_transform(texts)
        except ValueError:
            raise ValueError(f"column {name!r} holds no words to compare rows by") from None
    rank = min(TEXT_COMPONENTS, table.shape[1] - 1, table.shape[0] - 1)
    if rank < 1:
        return table.toarray(), f"text column {name}: one word"
    X = TruncatedSVD(rank, random_state=random_state).fit_transform(table)
    length = np.linalg.norm(X, axis=1, keepdims=True)
    X = X / np.where(length > 0, length, 1)
    what = "words" if brief else "words and pairs"
    note = f"text column {name}: tf-idf of {table.shape[1]:,} {what}, {rank} components (no language model)"
    if empty:
        note += f", {empty:,} empty texts"
    # A text counts as much as a handful of standardised numbers.
    return X * 2.0, note


def _count(names: list[str], what: str) -> str:
    return f"{len(names)} {what}{'s' if len(names) > 1 else ''}"


def _names(names: list[str]) -> str:
    return ", ".join(map(str, names[:12])) + (", ..." if len(names) > 12 else "")
