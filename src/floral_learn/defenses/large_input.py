"""Training input that is read in blocks: files and memory maps in place of a matrix in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.core.choose_gram import DENSE_ROWS
from floral_learn.core.row_blocks import RowBlocks, open_rows, read_column


def is_large(X: Any) -> bool:
    """Whether `X` is a path, a source of blocks, or a memory map of more rows than a dense game takes."""
    if isinstance(X, np.memmap):
        return X.ndim == 2 and len(X) > DENSE_ROWS and X.dtype in (np.float32, np.float64)
    return isinstance(X, str | os.PathLike | RowBlocks)


def open_training(clf: Any, X: Any, y: Any) -> tuple[RowBlocks, np.ndarray]:
    """The rows as blocks and the labels in memory; sets ``n_features_in_`` and ``feature_names_in_``."""
    if clf.kernel == "precomputed" or callable(clf.kernel):
        raise ValueError("X in blocks needs a named kernel other than 'precomputed'")
    if isinstance(y, str | os.PathLike) and Path(y).suffix == ".npy":
        rows, labels = open_rows(X), np.load(y)
    elif isinstance(y, str):
        rows, labels = open_rows(X, without=[y]), read_column(X, y)
    else:
        rows, labels = open_rows(X), np.asarray(y)
    if labels.shape != (len(rows),):
        raise ValueError(f"X has {len(rows):,} rows and y has shape {labels.shape}; y needs one label a row")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity")
    clf.n_features_in_ = rows.shape[1]
    if hasattr(clf, "feature_names_in_"):
        del clf.feature_names_in_
    if rows.names is not None:
        clf.feature_names_in_ = np.array(rows.names, dtype=object)
    return rows, labels


def open_features(clf: Any, X: Any) -> RowBlocks:
    """The rows to predict, as blocks; columns of a Parquet file are those of the fit, by name."""
    names = getattr(clf, "feature_names_in_", None)
    rows = open_rows(X, columns=None if names is None else list(names))
    if rows.shape[1] != clf.n_features_in_:
        raise ValueError(f"X has {rows.shape[1]} features, but the model expects {clf.n_features_in_}")
    return rows
