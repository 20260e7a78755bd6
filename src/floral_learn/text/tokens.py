"""What a text model is given, checked: texts, their token numbers, labels and weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_learn.base.cells import is_missing
from floral_learn.encoders.text import as_list


@dataclass(frozen=True)
class Tokens:
    """Token numbers of n texts, padded at the end: made once, for every model of one tokenizer.

    ``ids`` is (n, width) integers, ``lengths`` (n,); entries after a row's length are padding.
    """

    ids: np.ndarray
    lengths: np.ndarray
    pad: int

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, rows: Any) -> Tokens:
        return Tokens(self.ids[rows], self.lengths[rows], self.pad)


def tokenize(tokenizer: Any, texts: Sequence[str], max_length: int) -> Tokens:
    """Token numbers of `texts`, cut after `max_length`."""
    rows = tokenizer(list(texts), truncation=True, max_length=max_length, padding=False, verbose=False)["input_ids"]
    lengths = np.array([len(row) for row in rows])
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
    ids = np.full((len(rows), int(lengths.max())), pad, dtype=np.int32)
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = np.concatenate([np.asarray(row) for row in rows])
    return Tokens(ids, lengths, pad)


def some_rows(texts: Any, places: Any) -> Any:
    """Those of the texts, or `Tokens`, at `places`."""
    return texts[places] if isinstance(texts, Tokens) else [texts[place] for place in places]


def check_texts(texts: Any, name: str = "X") -> Any:
    """`texts` as a list of strings, or `Tokens` as they are; what is missing, empty or no string is named."""
    if isinstance(texts, Tokens):
        return texts
    found = as_list(texts, name)
    if not found:
        raise ValueError(f"{name} is empty: at least one text is needed")
    for number, text in enumerate(found):
        if not text.strip():
            raise ValueError(f"{name}[{number}] is missing or an empty text; leave such rows out or fill them")
    return found


def check_labels(y: Any, n: int, name: str = "y") -> np.ndarray:
    """`y` as a flat array of n labels, none of them missing."""
    if y is None:
        raise ValueError(f"{name} requires labels: TextClassifier requires y to be passed, but the target y is None")
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"{name} must be a flat list of labels, its shape is {y.shape}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"{name} contains NaN or infinity")
    if y.dtype.kind == "O" and any(is_missing(label) for label in y):
        raise ValueError(f"{name} has missing labels")
    if len(y) != n:
        raise ValueError(f"there are {n} texts but {name} has {len(y)} labels")
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


def length_batches(tokens: Tokens, batch_size: int) -> Iterator[np.ndarray]:
    """Row numbers in batches of texts of about the same length, longest first: little padding, and the memory that
    the first batch takes is the most that will be needed."""
    order = np.argsort(-tokens.lengths, kind="stable")
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]
