"""Token numbers in the place of texts: lists, arrays, tensors, or what a tokenizer returns."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_learn.neural.encoders import Tokens, check_texts


@dataclass(frozen=True)
class TokenIds:
    """Rows of token numbers as they were given, not yet held against a tokenizer.

    `padded` says that the rows come from a matrix without a mask: padding at their ends still counts as tokens.
    """

    rows: Sequence[np.ndarray]
    padded: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, places: Any) -> TokenIds:
        return TokenIds([self.rows[place] for place in np.arange(len(self.rows))[places]], self.padded)

    def tokens(self, pad: int, vocabulary: int, max_length: int) -> Tokens:
        """Padded to one width and cut after `max_length`; numbers that the model does not know are an error."""
        rows = [_without_padding(row, pad) if self.padded else row for row in self.rows]
        for number, row in enumerate(rows):
            if not len(row):
                raise ValueError(f"X[{number}] has no tokens")
            if row.min() < 0 or row.max() >= vocabulary:
                strange = int(row[(row < 0) | (row >= vocabulary)][0])
                raise ValueError(f"X[{number}] has the token {strange}; this model has tokens 0 to {vocabulary - 1}")
        lengths = np.array([min(len(row), max_length) for row in rows])
        ids = np.full((len(rows), int(lengths.max())), pad, dtype=np.int32)
        ids[np.arange(ids.shape[1]) < lengths[:, None]] = np.concatenate([row[:max_length] for row in rows])
        return Tokens(ids, lengths, pad)


def read_rows(X: Any, name: str = "X") -> Any:
    """The texts of X, or its token numbers: `Tokens` as they are, `TokenIds`, or a list of str; all checked."""
    if isinstance(X, Tokens | TokenIds):
        return X
    if "torch" in sys.modules:  # else nobody can have made a Dataset
        from floral_learn.neural.torch_data import rows_only

        X = rows_only(X)
    found = read_token_ids(X, name)
    return check_texts(X, name) if found is None else found


def some_rows(texts: Any, places: Any) -> Any:
    """Those of `read_rows` at `places`."""
    return [texts[place] for place in places] if isinstance(texts, list) else texts[places]


def read_token_ids(X: Any, name: str = "X") -> TokenIds | None:
    """Token numbers where X holds them, None where it holds something else (texts, say).

    A dict (or what a tokenizer returns) has ``input_ids`` and, if rows are padded, ``attention_mask``; a matrix of
    integers is padded at its ends by the tokenizer's padding token; a list of lists has rows of any length.
    """
    if isinstance(X, Mapping):  # a BatchEncoding is one, too
        return _masked(X["input_ids"], X.get("attention_mask"), name) if "input_ids" in X else None
    if getattr(X, "ndim", 0) == 1 and getattr(X.dtype, "kind", "") == "O":  # a Series of lists
        X = list(X)
    matrix = _array(X)
    if matrix is not None:
        if matrix.ndim != 2 or matrix.dtype.kind not in "iu":
            return None
        return TokenIds(list(matrix.astype(np.int64)), padded=True)
    if isinstance(X, list | tuple) and len(X) and not isinstance(X[0], str) and _is_row(X[0]):
        return TokenIds([_row(row, f"{name}[{number}]") for number, row in enumerate(X)])
    return None


def _masked(ids: Any, mask: Any, name: str) -> TokenIds:
    found = read_token_ids(ids if _array(ids) is None else _array(ids), f"{name}['input_ids']")
    if found is None:
        raise ValueError(f"{name}['input_ids'] must be integers, one row per text")
    if mask is None:
        return found
    matrix = _array(mask)
    masks = [np.asarray(row).reshape(-1) for row in (mask if matrix is None else matrix)]
    if [len(row) for row in masks] != [len(row) for row in found.rows]:
        raise ValueError(f"{name}['attention_mask'] and {name}['input_ids'] differ in shape")
    return TokenIds([row[keep > 0] for row, keep in zip(found.rows, masks, strict=True)])


def _array(X: Any) -> np.ndarray | None:
    """A numpy array of what is one, or a tensor."""
    if isinstance(X, np.ndarray):
        return X
    return np.asarray(X.detach().cpu()) if hasattr(X, "detach") else None


def _is_row(row: Any) -> bool:
    array = _array(row)
    if array is not None:
        return array.ndim == 1 and array.dtype.kind in "iu"
    return isinstance(row, list | tuple) and all(isinstance(token, int | np.integer) for token in row)


def _row(row: Any, name: str) -> np.ndarray:
    if not _is_row(row):
        raise ValueError(f"{name} must be a list of token numbers, as the rows before it are, got {row!r:.60}")
    found = _array(row)
    return np.asarray(row if found is None else found, dtype=np.int64)


def _without_padding(row: np.ndarray, pad: int) -> np.ndarray:
    """A row up to its last token that is not padding."""
    real = np.flatnonzero(row != pad)
    return row[: real[-1] + 1] if len(real) else row[:0]
