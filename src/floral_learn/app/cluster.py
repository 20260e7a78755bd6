"""``floral train --cluster``: the pipeline of floral train, fitted on a dask cluster whose workers read the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.base import TableError
from floral_learn.base.extras import install_line

SAMPLE_ROWS = 20_000  # first rows from which columns are understood: their roles, means, categories and words


def fit_table_on_cluster(
    address: str,
    source: Path,
    columns: Any,
    classifier: Any,
    seed: int,
) -> tuple[Any, str]:
    """The fitted pipeline (encoder, classifier) and one line on what was encoded; rows stay on the workers."""
    from sklearn.pipeline import Pipeline

    from floral_learn.base.encoder import TableEncoder
    from floral_learn.floral.classifier import GameClassifier

    if not isinstance(classifier, GameClassifier):
        raise TableError(f"--cluster is for --method floral; {type(classifier).__name__} runs on one machine")
    try:
        import dask.array as da
        import dask.dataframe as dd
        from dask import delayed
        from dask.distributed import Client
    except ImportError as error:
        raise ImportError(f"--cluster needs dask: {install_line('dask')}") from error
    if not source.exists():
        raise TableError(f"cannot read {source}: no such file or folder")
    label, leave_out = columns.label, [name for name in (*columns.drop, columns.row_id) if name]
    text = source.suffix.lower() in (".csv", ".tsv", ".txt")
    separator = columns.sep or ("\t" if source.suffix.lower() == ".tsv" else ",")
    try:
        client = Client(address, timeout=10, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise TableError(f"no dask scheduler answers at --cluster {address}") from error
    with client, client.as_current():
        if text:
            table = dd.read_csv(str(source), sep=separator, encoding=columns.encoding or "utf-8")
        else:
            table = dd.read_parquet(str(source))
        for name in (label, *leave_out):
            if name not in table.columns:
                raise TableError(f"{source} has no column {name!r}; its columns are: {', '.join(table.columns[:12])}")
        sample = table.head(SAMPLE_ROWS, npartitions=-1)
        # Tf-idf: the workers may not have MiniLM, and every worker would load it.
        encoder = TableEncoder(random_state=seed)
        width = encoder.fit_transform(_features(sample, [label, *leave_out])).shape[1]
        encoded, given = delayed(_encode, pure=True), delayed(_labels, pure=True)
        parts = table.to_delayed()
        shared = delayed(encoder)
        rows = [da.from_delayed(encoded(part, shared), (np.nan, width), dtype=float) for part in parts]
        labels = [da.from_delayed(given(part, label), (np.nan,), dtype=object) for part in parts]
        joined = (da.concatenate(blocks, allow_unknown_chunksizes=True) for blocks in (rows, labels))
        classifier.fit(*joined)
    return Pipeline([("columns", encoder), ("classifier", classifier)]), encoder.describe()


def _features(part: Any, leave_out: list[str]) -> Any:
    from floral_learn.app.tables.table import read_table

    return read_table(part.reset_index(drop=True), drop=leave_out).features


def _encode(part: Any, encoder: Any) -> np.ndarray:
    from floral_learn.app.tables.table import read_table

    return encoder.transform(read_table(part.reset_index(drop=True), as_text=encoder.as_text).features)


def _labels(part: Any, label: str) -> np.ndarray:
    if part[label].isna().any():
        raise ValueError(f"column {label!r} has rows without a label")
    return np.asarray(part[label].to_numpy())
