"""Hugging Face data sets as tables: a `datasets.Dataset`, or the folder that its `save_to_disk` wrote."""

from __future__ import annotations

import io
import os
from typing import Any

from floral_learn.base.cells import TableError, reason
from floral_learn.base.extras import install_line

from .source import Source


def dataset_source(dataset: Any, name: str = "the data set", folder: bool = False) -> Source:
    """A Dataset; class labels are read by their names, none where there is none (-1)."""
    if hasattr(dataset, "keys"):
        raise TableError(f"{name} has the splits {', '.join(dataset)}; give one of them, such as {next(iter(dataset))}")
    table = dataset.with_format("arrow")[:]
    columns = table.column_names
    classes = {place: dataset.features[c].names for place, c in enumerate(columns) if _has_names(dataset, c)}
    for place, names in classes.items():
        codes = table.column(place).to_pylist()
        table = table.set_column(
            place, columns[place], [[None if code is None or code < 0 else names[code] for code in codes]]
        )

    def write(place: int, values: list[Any]) -> Any:
        column, names = columns[place], classes.get(place)
        if names is not None:
            values = [-1 if value is None else names.index(value) for value in values]
        changed = dataset.remove_columns([column]).add_column(column, values)
        changed = changed.cast_column(column, dataset.features[column]).select_columns(columns)
        if not folder:
            return changed
        stream = io.BytesIO()
        changed.to_parquet(stream)
        return stream.getvalue()

    return Source(name, table, write)


def read_dataset_folder(path: str | os.PathLike[str]) -> Source:
    """The Dataset that was saved to a folder."""
    try:
        import datasets
    except ImportError:
        raise ImportError(f"a folder of Hugging Face datasets needs them: {install_line('datasets')}") from None
    try:
        found = datasets.load_from_disk(str(path))
    except Exception as error:  # the library raises what pyarrow, json and fsspec raise
        raise TableError(f"{path} is not a readable folder of Hugging Face datasets ({reason(error)})") from None
    return dataset_source(found, str(path), folder=True)


def _has_names(dataset: Any, column: str) -> bool:
    return getattr(dataset.features[column], "names", None) is not None
