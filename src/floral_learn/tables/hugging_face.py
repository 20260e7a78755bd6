"""Hugging Face data sets as tables: a `datasets.Dataset`, or the folder that its `save_to_disk` wrote."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from floral_learn.base.extras import install_line

from . import TableError
from .frames import FrameSource
from .source import pairs, reason


class DatasetSource(FrameSource):
    """A Dataset; class labels are read by their names, images and other nested columns are no features."""

    def __init__(self, dataset: Any, name: str = "the data set", folder: bool = False) -> None:
        if hasattr(dataset, "keys"):
            raise TableError(
                f"{name} has the splits {', '.join(dataset)}; give one of them, such as {next(iter(dataset))}"
            )
        self.dataset, self.folder = dataset, folder
        super().__init__(dataset.with_format("arrow")[:], name)
        self.like = None  # features are pandas frames

    def _names(self, position: int) -> Any:
        return getattr(self.dataset.features[self.columns[position]], "names", None)

    def cells(self, position: int) -> list[Any]:
        """Python values; the names of class labels, None where there is none (-1)."""
        values, names = super().cells(position), self._names(position)
        if names is None:
            return values
        return [None if value is None or value < 0 else names[value] for value in values]

    def typed(self, position: int, as_text: bool = False) -> np.ndarray | None:
        """Numbers and dates as they are, class labels by name, everything else as text."""
        if self._names(position) is None:
            return super().typed(position, as_text)
        return np.array([*self.cells(position), None], dtype=object)[:-1]

    def relabelled(self, position: int, rows: np.ndarray, new: np.ndarray) -> Any:
        """A Dataset with new labels and the same features; where it came from a folder, the bytes of a Parquet file."""
        column, names = self.columns[position], self._names(position)
        values = list(self.dataset[column])
        for row, label in pairs(rows, new):
            values[row] = label if names is None else names.index(label)
        changed = self.dataset.remove_columns([column]).add_column(column, values)
        changed = changed.cast_column(column, self.dataset.features[column]).select_columns(self.columns)
        if not self.folder:
            return changed
        stream = io.BytesIO()
        changed.to_parquet(stream)
        return stream.getvalue()


def read_dataset_folder(path: str | os.PathLike[str]) -> DatasetSource:
    """The Dataset that was saved to a folder."""
    try:
        import datasets
    except ImportError:
        raise ImportError(f"a folder of Hugging Face datasets needs them: {install_line('datasets')}") from None
    try:
        found = datasets.load_from_disk(str(path))
    except Exception as error:  # the library raises what pyarrow, json and fsspec raise
        raise TableError(f"{path} is not a readable folder of Hugging Face datasets ({reason(error)})") from None
    return DatasetSource(found, str(path), folder=True)
