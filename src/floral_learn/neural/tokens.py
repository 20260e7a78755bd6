"""What a text model is given, checked: texts or token numbers as `Tokens`, labels, weights and beliefs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_learn.base.cells import is_missing


@dataclass(frozen=True)
class Tokens:
    """Token numbers of n texts, padded at the end: what a suite computes once and every model of one tokenizer takes.

    ``ids`` is (n, width) integers, ``lengths`` (n,); entries after a row's length are padding.
    """

    ids: np.ndarray
    lengths: np.ndarray
    pad: int

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, rows: Any) -> Tokens:
        return Tokens(self.ids[rows], self.lengths[rows], self.pad)


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


def check_texts(texts: Any, name: str = "X") -> list[str]:
    """`texts` as a list of strings; what is missing, empty or no string is named by its place."""
    if isinstance(texts, str):
        raise ValueError(f"{name} is one string; give a list of texts, even for one: [{name}]")
    if getattr(texts, "ndim", 1) != 1:
        raise ValueError(f"{name} must be a flat list of texts, its shape is {tuple(texts.shape)}")
    try:
        if isinstance(texts, Mapping | Set):  # no order, or no values
            raise TypeError
        out = list(texts)
    except TypeError:
        raise ValueError(f"{name} must be a list of texts, not {type(texts).__name__}") from None
    if not out:
        raise ValueError(f"{name} is empty: at least one text is needed")
    for number, text in enumerate(out):
        if not isinstance(text, str):
            kind = "missing" if is_missing(text) else f"no string but {type(text).__name__}"
            raise ValueError(f"{name}[{number}] is {kind} ({text!r}); every row must be a text")
        if not text.strip():
            raise ValueError(f"{name}[{number}] is an empty text; leave such rows out or fill them")
    return [str(text) for text in out]


def check_labels(y: Any, name: str) -> np.ndarray:
    """`y` as a flat array of labels, none of them missing."""
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"{name} must be a flat list of labels, its shape is {y.shape}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"{name} contains NaN or infinity")
    if y.dtype.kind == "O" and any(is_missing(label) for label in y):
        raise ValueError(f"{name} has missing labels")
    return y


def check_weights(weight: Any, n: int) -> np.ndarray:
    """`weight` as n finite numbers of at least 0, some of them above 0."""
    weight = np.asarray(weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has the shape {weight.shape}; one weight per text, ({n},), is needed")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight must hold finite numbers of at least 0")
    if not weight.any():
        raise ValueError("sample_weight is 0 for every text; at least one must count")
    return weight


def check_belief(belief: Any, n: int, n_classes: int) -> np.ndarray:
    """`belief` as n rows of probabilities of the classes, all a little above 0: a loss stays finite."""
    belief = np.asarray(belief, dtype=np.float64)
    if belief.shape != (n, n_classes):
        raise ValueError(
            f"belief has the shape {belief.shape}; one row per text and one column per class, "
            f"({n}, {n_classes}), are needed"
        )
    if not np.isfinite(belief).all() or (belief < 0).any() or not np.allclose(belief.sum(axis=1), 1.0, atol=1e-3):
        raise ValueError("belief must hold probabilities: numbers from 0 to 1 whose sum is 1 in each row")
    return np.clip(belief, 1e-6, 1.0)


def length_batches(tokens: Tokens, batch_size: int) -> Iterator[np.ndarray]:
    """Row numbers in batches of texts of about the same length, longest first: little padding, and the memory that
    the first batch takes is the most that will be needed."""
    order = np.argsort(-tokens.lengths, kind="stable")
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]
