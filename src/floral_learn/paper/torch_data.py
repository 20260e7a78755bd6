"""A torch Dataset or DataLoader in the place of X: its rows and, where it has them, its labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

_LABELS = ("labels", "label")
_ROWS = ("input_ids", "text", "pixel_values", "image", "x")


def is_torch_data(X: Any) -> bool:
    """Whether X is a Dataset or a DataLoader."""
    return isinstance(X, Dataset | DataLoader)


def rows_and_labels(X: Any, y: Any) -> tuple[Any, Any]:
    """Rows and labels of ``fit(X, y)``: X and y themselves, or those of a Dataset or DataLoader in the place of X.

    A `y` that is given counts, whatever the data set holds: other labels for its rows, in its order.
    """
    if not is_torch_data(X):
        return X, y
    rows, labels = read_torch_data(X)
    if y is not None:
        return rows, y
    if labels is None:
        raise ValueError(f"y is missing, and the items of {type(X).__name__} hold no labels: give fit(X, y) both")
    return rows, labels


def rows_only(X: Any) -> Any:
    """Rows of ``predict(X)``; labels of a data set have no say."""
    return read_torch_data(X)[0] if is_torch_data(X) else X


def read_torch_data(X: Any) -> tuple[Any, np.ndarray | None]:
    """Rows and labels (or None) of a Dataset or DataLoader, all in memory, in the order of the data set.

    Items are rows, pairs (row, label), or dicts such as {"text": ..., "label": ...} or {"input_ids": ...,
    "attention_mask": ..., "labels": ...}. Of a DataLoader the data set is read: batches, a random order and its own
    collating do not matter here. Rows that are tensors or arrays become one array, texts a list.
    """
    source = X.dataset if isinstance(X, DataLoader) else X
    if isinstance(source, IterableDataset):
        items = list(source)
    elif hasattr(source, "__len__"):
        items = [source[number] for number in range(len(source))]
    else:
        raise ValueError(
            f"X is a {type(source).__name__} without __len__: give it a length, make it an IterableDataset, or pass "
            "arrays"
        )
    if not items:
        raise ValueError(f"X is a {type(source).__name__} without items")
    found = [_split(item, number) for number, item in enumerate(items)]
    labelled = {label is not None for _, label in found}
    if len(labelled) > 1:
        raise ValueError("some items of X have labels and some have none")
    labels = np.array([_plain(label) for _, label in found]) if labelled == {True} else None
    return _joined([row for row, _ in found]), labels


def _split(item: Any, number: int) -> tuple[Any, Any]:
    """Row and label (or None) of an item."""
    if isinstance(item, Mapping):
        names = [name for name in _ROWS if name in item]
        if not names:
            raise ValueError(
                f"item {number} of X has the keys {sorted(map(str, item))}; one of {list(_ROWS)} is needed"
            )
        label = next((item[name] for name in _LABELS if name in item), None)
        if names[0] != "input_ids":
            return item[names[0]], label
        ids = np.asarray(item["input_ids"]).reshape(-1)
        mask = item.get("attention_mask")
        return (ids if mask is None else ids[np.asarray(mask).reshape(-1) > 0]).tolist(), label
    if isinstance(item, tuple | list) and len(item) == 2:
        return item[0], item[1]
    if isinstance(item, tuple | list) and len(item) == 1:  # a TensorDataset of rows alone
        return item[0], None
    if isinstance(item, tuple | list):
        raise ValueError(f"item {number} of X has {len(item)} parts; a row, (row, label) or a dict was expected")
    return item, None


def _plain(label: Any) -> Any:
    if isinstance(label, torch.Tensor):
        label = label.detach().cpu().numpy()
    if isinstance(label, np.ndarray):
        if label.size != 1:
            raise ValueError(f"a label of X has shape {label.shape}; one label per row is expected")
        return label.item()
    return label


def _joined(rows: list[Any]) -> Any:
    """Texts and token numbers stay a list; everything else becomes one array."""
    if isinstance(rows[0], str | list):
        return rows
    arrays = [row.detach().cpu().numpy() if isinstance(row, torch.Tensor) else np.asarray(row) for row in rows]
    if len({array.shape for array in arrays}) > 1:
        shapes = sorted({array.shape for array in arrays})[:3]
        raise ValueError(f"rows of X have different shapes, such as {shapes}: resize them in the data set")
    if arrays[0].dtype.kind not in "biuf":
        raise ValueError(f"rows of X are of type {type(rows[0]).__name__}; tensors, arrays or texts are expected")
    return np.stack(arrays)
