"""Columns of a table as numbers that a kernel machine can use: numbers, categories and text, each in its way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler

MANY_VALUES = 50  # different texts up to which a column is a category
WORDS = 3  # mean words from which a column with more values is text, not an identifier
TEXT_WIDTH = 100  # numbers made from one text column
MISSING = "(missing)"


@dataclass(frozen=True)
class Roles:
    """Which columns are what; ``ignored`` have no use (constant, empty, or a different short text in every row)."""

    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    texts: tuple[str, ...]
    ignored: tuple[str, ...]

    @property
    def used(self) -> tuple[str, ...]:
        """The columns that are encoded."""
        return (*self.numbers, *self.categories, *self.texts)

    def describe(self) -> str:
        """One line for people."""
        parts = []
        for names, what in (
            (self.numbers, "as numbers (missing: median; standardised)"),
            (self.categories, "as categories (one column a value)"),
            (self.texts, f"as text (tf-idf, {TEXT_WIDTH} components at most)"),
            (self.ignored, "ignored"),
        ):
            if names:
                shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
                parts.append(f"{shown} {what}")
        return "; ".join(parts)


def roles_of(frame: Any, leave_out: Sequence[str] = ()) -> Roles:
    """Guess the role of every column of a pandas frame; a ValueError where nothing is usable."""
    import pandas as pd

    found: dict[str, list[str]] = {"numbers": [], "categories": [], "texts": [], "ignored": []}
    for name in frame.columns:
        if name in leave_out:
            continue
        column = frame[name]
        if column.nunique(dropna=True) < 2:
            role = "ignored"
        elif pd.api.types.is_numeric_dtype(column):
            role = "numbers"
            if not np.isfinite(column.dropna().to_numpy(dtype=float)).all():
                raise ValueError(f"column {name!r} has infinite values")
        elif pd.api.types.is_datetime64_any_dtype(column):
            role = "ignored"
        elif column.nunique() <= MANY_VALUES:
            role = "categories"
        else:
            words = column.dropna().astype(str).str.split().str.len().mean()
            role = "texts" if words >= WORDS else "ignored"
        found[role].append(name)
    roles = Roles(**{role: tuple(names) for role, names in found.items()})
    if not roles.used:
        raise ValueError("there is no usable feature column beside the label")
    return roles


def prepare(frame: Any, roles: Roles) -> Any:
    """The used columns in the types that the encoder expects; a ValueError names a column that does not fit."""
    import pandas as pd

    if missing := [name for name in roles.used if name not in frame.columns]:
        raise ValueError(f"there is no column {missing[0]!r}, which the model was trained on")
    out = {}
    for name in roles.numbers:
        try:
            out[name] = pd.to_numeric(frame[name]).astype(float)
        except (ValueError, TypeError):
            raise ValueError(f"column {name!r} was numbers in training and has other values here") from None
        if np.isinf(out[name].to_numpy()).any():
            raise ValueError(f"column {name!r} has infinite values")
    for name in (*roles.categories, *roles.texts):
        out[name] = frame[name].map(lambda value: MISSING if pd.isna(value) else str(value)).astype(object)
    return pd.DataFrame(out)


def make_encoder(prepared: Any, roles: Roles, seed: int = 0) -> ColumnTransformer:
    """The unfitted encoder for frames from `prepare`; its output is dense."""
    steps: list[tuple[str, Any, Any]] = []
    if roles.numbers:
        numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
        steps.append(("numbers", numbers, list(roles.numbers)))
    if roles.categories:
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        steps.append(("categories", encoder, list(roles.categories)))
    for name in roles.texts:
        tfidf = TfidfVectorizer(sublinear_tf=True, min_df=2, max_features=20_000, stop_words=None)
        try:
            width = len(tfidf.fit(prepared[name]).vocabulary_)
        except ValueError:
            raise ValueError(f"column {name!r} looks like text, but no word occurs twice in it") from None
        components = max(1, min(TEXT_WIDTH, width - 1, len(prepared) - 1))
        svd = TruncatedSVD(components, random_state=seed)
        tfidf = TfidfVectorizer(sublinear_tf=True, min_df=2, max_features=20_000)
        steps.append((f"text {name}", make_pipeline(tfidf, svd, Normalizer()), name))
    return ColumnTransformer(steps, sparse_threshold=0.0)


def roles_behind(encoder: ColumnTransformer) -> Roles:
    """The roles that a fitted encoder was made for."""
    found: dict[str, tuple[str, ...]] = {"numbers": (), "categories": (), "texts": (), "ignored": ()}
    for name, _, columns in encoder.transformers:
        if name in ("numbers", "categories"):
            found[name] = tuple(columns)
        else:
            found["texts"] = (*found["texts"], columns)
    return Roles(**found)
