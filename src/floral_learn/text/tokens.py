"""What a text model is given, checked: texts, their token numbers, and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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
    cut = tokenizer(list(texts), truncation=True, max_length=max_length, padding=False, verbose=False)
    rows = cut["input_ids"]
    lengths = np.array([len(row) for row in rows])
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
    ids = np.full((len(rows), int(lengths.max())), pad, dtype=np.int32)
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = np.concatenate(rows)
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
    """`y` as an array of n labels."""
    if y is None:
        raise ValueError(f"{name} requires labels: TextClassifier requires y to be passed, but the target y is None")
    y = np.asarray(y)
    if len(y) != n:
        raise ValueError(f"there are {n} texts but {name} has {len(y)} labels")
    return y
