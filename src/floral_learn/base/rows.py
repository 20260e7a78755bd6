"""Rows as users have them, read once for every door: numbers that we measure on, and the rows for a model behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing, check_array

from floral_learn.base.cells import TableError, objects, reason, short
from floral_learn.base.encoder import TableEncoder
from floral_learn.base.frames import column_at, frame_columns, is_frame, typed_column
from floral_learn.base.validation import check_scale


@dataclass(frozen=True)
class InputRows:
    """n rows: `numbers` for what the library computes, `given` for whoever is trained on them.

    Attributes
    ----------
    numbers : ndarray or CSR matrix of shape (n, d)
        An array as it was given, a frame of nothing but numbers as its values, any other frame encoded.
    given : array, sparse matrix or frame of n rows
        What the caller gave: an array checked, a frame untouched.
    encoder : transformer or None
        What made the numbers of texts, pictures, or a frame that holds more than numbers; None where nothing was made.
    """

    numbers: Any
    given: Any
    encoder: Any = None

    def __len__(self) -> int:
        return self.numbers.shape[0]

    @property
    def notes(self) -> list[str]:
        """What was made of the columns; empty where rows were taken as they are."""
        return [] if self.encoder is None else list(self.encoder.notes_)

    def take(self, rows: Any) -> Any:
        """Some of the given rows, by number or mask, in the caller's own kind."""
        return take_rows(self.given, rows)

    def encode(self, X: Any) -> Any:
        """The numbers of further rows, given in the same form and encoded as the first ones were."""
        if self.encoder is not None:
            return self.encoder.transform(X)
        more = read_rows(X)
        if more.encoder is not None:
            raise TableError("the new rows hold text, dates or missing values, and the first ones held numbers only")
        if more.numbers.shape[1] != self.numbers.shape[1]:
            raise ValueError(f"X has {more.numbers.shape[1]} columns, and {self.numbers.shape[1]} are expected")
        return more.numbers


def read_rows(
    X: Any,
    *,
    text_encoder: Any = None,
    allow_nan: bool = False,
    min_rows: int = 1,
    encoder: Any = None,
    y: Any = None,
) -> InputRows:
    """Read X as numbers that can be compared, whatever it is made of, and keep it as it was given.

    Arrays and sparse matrices, and frames that hold nothing but finite numbers and booleans, are taken as they are. Any
    other pandas, polars or pyarrow frame is encoded by `TableEncoder`: categories, texts, dates and holes.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (n, d)
        The rows.
    text_encoder : transformer, optional
        What makes numbers of prose in a frame; by default tf-idf.
    allow_nan : bool, default=False
        Whether an array may hold NaN; a frame always may.
    min_rows : int, default=1
        Fewer are refused.
    encoder : transformer, optional
        What makes numbers of rows that are neither an array nor a frame, such as texts; fitted on X and `y`.
    y : array-like, optional
        Labels, for encoders that use them.

    Returns
    -------
    InputRows
        Numbers, and the rows as they were given.

    Examples
    --------
    >>> import pandas as pd
    >>> from floral_learn.base.rows import read_rows
    >>> rows = read_rows(pd.DataFrame({"size": [1.0, None, 3.0], "colour": ["red", "blue", "red"]}))
    >>> rows.numbers.shape
    (3, 3)
    >>> rows.notes[1]
    '1 category column as 2 indicators: colour'
    >>> rows.take([0, 2])["colour"].tolist()
    ['red', 'red']
    """
    if encoder is not None:
        return InputRows(encoder.fit_transform(X, y), as_items(X), encoder)
    frame = is_frame(X)
    if not frame and not sparse.issparse(X) and len(shape := np.shape(X)) != 2:
        raise ValueError(
            f"Expected 2D array, got X of shape {shape}: X holds one row for each label; "
            "a single column is X[:, None] or, of a frame, X[['name']]"
        )
    if (n := X.shape[0] if hasattr(X, "shape") else len(X)) < min_rows:
        raise ValueError(f"X has too few rows (n_samples={n}): at least {min_rows} are needed")
    if frame and (plain := _plain_values(X)) is None:
        made = TableEncoder(text_encoder=text_encoder)
        return InputRows(made.fit_transform(X, y), X, made)
    numbers = check_array(
        plain if frame else _of_numbers(X),
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_all_finite="allow-nan" if allow_nan else True,
        input_name="X",
    )
    check_scale(numbers)
    return InputRows(numbers, X if frame else numbers)


def _of_numbers(X: Any) -> Any:
    """An array as it is, unless it holds text that is no number."""
    values = X if sparse.issparse(X) else np.asarray(X)
    if values.dtype.kind not in "OUS":
        return X
    try:
        return values.astype(float)
    except ValueError as error:
        raise ValueError(
            f"X is an array that holds text ({reason(error)}); give a pandas or polars DataFrame, whose columns of "
            "text, categories and dates are encoded"
        ) from None


def as_items(X: Any) -> np.ndarray:
    """Texts, pictures or other single things as an array of them, which can be indexed; an array as it is."""
    return X if isinstance(X, np.ndarray) else objects(X)


def take_rows(X: Any, rows: Any) -> Any:
    """Some rows of an array, list, sparse matrix or frame, by number or mask, in the same kind."""
    rows = np.asarray(rows)
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows
    if is_frame(X) and not hasattr(X, "iloc"):
        return nw.from_native(X, eager_only=True)[rows.tolist()].to_native()
    return _safe_indexing(X, rows)


def stack_rows(first: Any, more: Any) -> Any:
    """The rows of `first`, then those of `more`, which are given in the same kind."""
    kind = "a frame" if is_frame(more) else "sparse" if sparse.issparse(more) else "an array"
    if is_frame(first) != is_frame(more) or sparse.issparse(first) != sparse.issparse(more):
        raise ValueError(f"X is {kind} and the review's rows are not; give both alike")
    if is_frame(first):
        before, after = (nw.from_native(X, eager_only=True) for X in (first, more))
        if lost := [name for name in before.columns if name not in after.columns]:
            raise TableError(f"X has no column {short(lost[0])}, which the review's rows have")
        try:
            return nw.concat([before, after.select(before.columns)], how="vertical").to_native()
        except Exception as error:  # each library has exceptions of its own
            raise TableError(f"the new rows do not fit below the others: {reason(error)}") from None
    if getattr(first, "ndim", 2) != 2:  # texts or pictures
        return np.concatenate([first, as_items(more)])
    if first.shape[1] != more.shape[1]:
        raise ValueError(f"X has {more.shape[1]} columns and the review has {first.shape[1]}")
    return sparse.vstack([first, more]).tocsr() if sparse.issparse(first) else np.vstack([first, more])


def explain_refusal(error: Exception, X: Any, estimator: Any) -> Exception:
    """`error` of a model that was handed X untouched; names the columns that are no numbers, and what helps."""
    if not isinstance(error, ValueError | TypeError) or estimator is None or hasattr(estimator, "steps"):
        return error
    who = f"{type(estimator).__name__} cannot be trained on"
    if not is_frame(X):
        if getattr(X, "ndim", 2) == 2 or (X.ndim == 1 and X.dtype.kind in "biuf"):
            return error
        return ValueError(
            f"{who} texts or pictures ({reason(error)}); put TextEncoder() or ImageEncoder() of floral_learn.encoders "
            "in front of it, with make_pipeline"
        )
    odd = []
    for position, name in enumerate(frame_columns(X)):
        typed = typed_column(column_at(X, position))
        kind = "O" if typed is None else typed.dtype.kind
        if kind != "f" or not np.isfinite(typed).all():  # type: ignore[arg-type]
            what = {"f": "missing values", "M": "dates"}.get(kind, "text or categories")
            odd.append(f"{short(name)} ({what})")
    if not odd:
        return error
    return ValueError(
        f"{who} X ({reason(error)}): columns that are no plain numbers: {', '.join(odd[:6])}"
        f"{', ...' if odd[6:] else ''}; put TableEncoder() or a ColumnTransformer in front of it, with make_pipeline"
    )


def _plain_values(X: Any) -> Any:
    """The values of a frame that holds nothing but finite numbers and booleans; None of any other."""
    if hasattr(X, "sparse") and X.shape[1] and all(str(kind).startswith("Sparse") for kind in X.dtypes):
        return sparse.csr_matrix(X.sparse.to_coo())
    series = [column_at(X, position) for position in range(len(frame_columns(X)))]
    if not all(one.dtype.is_numeric() or isinstance(one.dtype, nw.Boolean | nw.Unknown) for one in series):
        return None
    if hasattr(X, "iloc") and {kind.kind for kind in X.dtypes if isinstance(kind, np.dtype)} == {"f"}:
        values = X.to_numpy()  # one block, in its own precision
        if values.dtype.kind == "f":
            return values if np.isfinite(values).all() else None
    columns = [typed_column(one) for one in series]
    if any(one is None or one.dtype.kind != "f" or not np.isfinite(one).all() for one in columns):
        return None
    return np.column_stack(columns) if columns else np.zeros((X.shape[0], 0))  # type: ignore[arg-type]
