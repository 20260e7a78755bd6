"""Training and test rows from wherever they are: arrays, CSR matrices, torch tensors, files in blocks, a dask cluster.

Each kind is checked here and becomes a `TrainingInput`; nothing is set on the estimator on the way.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from floral_learn.base.extras import install_line
from floral_learn.base.validation import encode_labels, refuse_several_labels
from floral_learn.floral.settings import Settings
from floral_learn.game.arrays import NumpyBackend, backend_for, is_tensor
from floral_learn.game.choose_gram import DENSE_ROWS
from floral_learn.game.gram import DenseGram
from floral_learn.game.row_blocks import ArrayBlocks, RowBlocks

if TYPE_CHECKING:
    from floral_learn.floral.classifier import GameClassifier


def as_host(x: Any) -> Any:
    """Labels, weights and masks go to main memory; anything that is not a tensor is returned as it is."""
    if not is_tensor(x):
        return x
    x = x.detach().cpu()
    return (x.float() if x.dtype.is_floating_point and x.itemsize < 4 else x).numpy()  # numpy has no bfloat16


def check_training_tensor(X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """`X` and `y` with scikit-learn's checks, made on the device."""
    X = _checked(X)
    y = np.asarray(as_host(y))
    if y.ndim != 1 or len(y) != len(X):
        raise ValueError(f"X has {len(X):,} rows and y has shape {y.shape}; y needs one label per row")
    if len(X) < 2:
        raise ValueError(f"Found array with {len(X)} sample(s) while a minimum of 2 is required")
    return X, y


def check_query_tensor(X: Any, n_features: int) -> Any:
    """Rows to predict, checked on their device."""
    X = _checked(X)
    if X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} features, but the model expects {n_features} features as input")
    return X


def _checked(X: Any) -> Any:
    import torch

    if X.ndim != 2:
        raise ValueError(f"Expected a tensor of shape (rows, features), got shape {tuple(X.shape)}")
    if min(X.shape) == 0:
        raise ValueError(f"Found a tensor of shape {tuple(X.shape)}; at least one row and one feature are required")
    if X.is_complex():
        raise ValueError(f"X has dtype {X.dtype}; use a tensor of real numbers")
    X = X.detach()
    if X.dtype not in (torch.float32, torch.float64):  # half precision loses nothing in float32, large integers would
        X = X.to(torch.float32 if X.dtype.is_floating_point else torch.float64)
    if not bool(torch.isfinite(X).all()):
        raise ValueError("Input X contains NaN or infinity")
    return X


def as_tensors_of(fitted: dict[str, Any], X: Any) -> dict[str, Any]:
    """Fitted arrays as tensors beside `X`, where that is one and scikit-learn was told to dispatch by array API.

    Classes stay as they are, since they may be words.
    """
    if not is_tensor(X) or not get_config()["array_api_dispatch"]:
        return fitted
    return {k: tensor_of(v, X) if isinstance(v, np.ndarray) and k != "classes_" else v for k, v in fitted.items()}


def tensor_of(values: np.ndarray, X: Any) -> Any:
    """`values` as a tensor beside `X` where that is one and the values are numbers."""
    if not is_tensor(X) or values.dtype.kind not in "biuf":
        return values
    import torch

    return torch.as_tensor(values, device=X.device)


@dataclass(frozen=True)
class TrainingInput:
    """Checked rows and labels, and where the game on them is played."""

    X: Any  # matrix, CSR matrix, tensor, RowBlocks, or rows on a cluster
    y: np.ndarray  # (n,), as given
    labels: np.ndarray  # (n,), class numbers
    classes: np.ndarray  # (M,)
    n_features: int
    feature_names: np.ndarray | None
    backend: NumpyBackend

    def take(self, rows: np.ndarray) -> Any:
        """Rows in memory, as copies."""
        return self.X.take(rows) if isinstance(self.X, RowBlocks) else as_host(self.X[rows])

    def keep(self, rows: np.ndarray | slice) -> Any:
        """The same kind of rows with only `rows` in it."""
        if isinstance(rows, slice):
            return self.X
        return self.X.keep(rows) if isinstance(self.X, RowBlocks) else self.X[rows]


def is_dask(X: Any) -> bool:
    """Whether `X` is a dask collection; dask is not imported to find out."""
    return callable(getattr(X, "__dask_graph__", None))


def is_blocks(X: Any) -> bool:
    """Whether `X` is a path, a source of blocks, or a memory map of more rows than a dense game takes."""
    if isinstance(X, np.memmap):
        return X.ndim == 2 and len(X) > DENSE_ROWS and X.dtype in (np.float32, np.float64)
    return isinstance(X, str | os.PathLike | RowBlocks)


def stays_on_device(settings: Settings, X: Any) -> bool:
    """Whether `X` is a tensor that need not pass through numpy."""
    return is_tensor(X) and not settings.needs_matrix and (X.device.type != "cpu" or settings.device is not None)


def backend_of(settings: Settings, X: Any) -> NumpyBackend:
    """Where the game is played: as the engine says, else where a tensor lies."""
    if settings.device is None and stays_on_device(settings, X):
        return backend_for(str(X.device))
    return backend_for(settings.device)


def read_training(clf: BaseEstimator, settings: Settings, X: Any, y: Any) -> TrainingInput:
    """Rows and labels for ``clf.fit(X, y)`` on one machine; `clf` itself is asked for its name and tags only."""
    names, y = None, as_host(y)
    if is_blocks(X):
        X, y, names = _open_training(settings, X, y)
    elif stays_on_device(settings, X):
        X, y = check_training_tensor(X, y)
    else:
        draft = copy.copy(clf)  # scikit-learn's check writes on what it is given
        draft.__dict__.pop("feature_names_in_", None)
        refuse_several_labels(y)
        checks = _matrix_checks(settings) | {"ensure_min_samples": 2}
        with _naming_columns(X, settings.name):
            X, y = validate_data(draft, as_host(X), y, dtype=[np.float64, np.float32], **checks)
        names = getattr(draft, "feature_names_in_", None)
    classes, labels = encode_labels(y, settings.name)
    return TrainingInput(X, y, labels, classes, int(X.shape[1]), names, backend_of(settings, X))


def read_query(clf: GameClassifier, settings: Settings, X: Any) -> Any:
    """Rows for ``clf.predict(X)`` that fit in memory."""
    if stays_on_device(settings, X):
        return check_query_tensor(X, clf.n_features_in_)
    with _naming_columns(X, settings.name):
        return validate_data(clf, as_host(X), dtype=[np.float64, np.float32], reset=False, **_matrix_checks(settings))


@contextmanager
def _naming_columns(X: Any, name: str) -> Iterator[None]:
    """Where rows hold texts, categories or dates, say which columns and what to do about them."""
    try:
        yield
    except (TypeError, ValueError) as error:
        strange = _not_numbers(X)
        if strange is None and "could not convert string to float" not in str(error):
            raise
        what = "X holds texts" if strange is None else f"column {strange!r} of X does not hold numbers"
        raise ValueError(
            f"{what} ({error}). {name} takes numbers, as SVC does: put floral_learn.TableEncoder() or scikit-learn's "
            f"ColumnTransformer in front, such as make_pipeline(TableEncoder(), {name}())"
        ) from error


def _not_numbers(X: Any) -> Any:
    """The first column of a data frame that does not hold numbers; None where there is none, or no frame."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return None
    for column, kind in zip(X.columns, X.dtypes):
        words = str(kind).lower()
        if not words.startswith(("int", "uint", "float", "bool", "decimal", "sparse")):
            return column
    return None


def open_query(clf: GameClassifier, X: Any) -> RowBlocks:
    """The rows to predict, as blocks; columns of a Parquet file are those of the fit, by name."""
    names = getattr(clf, "feature_names_in_", None)
    rows = open_rows(X, columns=None if names is None else list(names))
    if rows.shape[1] != clf.n_features_in_:
        raise ValueError(f"X has {rows.shape[1]} features, but the model expects {clf.n_features_in_}")
    return rows


def _matrix_checks(settings: Settings) -> dict[str, Any]:
    return {"accept_sparse": False if settings.needs_matrix else "csr"}


def _open_training(settings: Settings, X: Any, y: Any) -> tuple[RowBlocks, np.ndarray, np.ndarray | None]:
    """The rows as blocks, the labels in memory, and the names of the columns."""
    if settings.needs_matrix:
        raise ValueError("X in blocks needs a named kernel other than 'precomputed'")
    if isinstance(y, str | os.PathLike) and Path(y).suffix == ".npy":
        rows, labels = open_rows(X), np.load(y)
    elif isinstance(y, str):
        rows, labels = open_rows(X, without=[y]), read_column(X, y)
    else:
        rows, labels = open_rows(X), np.asarray(y)
    if labels.shape != (len(rows),):
        raise ValueError(f"X has {len(rows):,} rows and y has shape {labels.shape}; y needs one label per row")
    if len(rows) < 2:
        raise ValueError(f"Found array with {len(rows)} sample(s) while a minimum of 2 is required")
    return rows, labels, None if rows.names is None else np.array(rows.names, dtype=object)


def check_callable(kernel: Any, rows: np.ndarray) -> None:
    """Refuse a function that is not a kernel on a first few rows: not symmetric, or not finite."""
    values = np.asarray(kernel(rows[:64], rows[:64]), dtype=float)
    if values.shape != (len(rows[:64]),) * 2:
        raise ValueError(f"the kernel callable returned shape {values.shape} for {len(rows[:64])} and as many rows")
    if not np.isfinite(values).all():
        raise ValueError("the kernel callable returned values that are not finite")
    if not np.allclose(values, values.T, rtol=0, atol=1e-6 * (np.abs(values).max() or 1.0)):
        raise ValueError("the kernel callable is not symmetric: kernel(A, A) differs from its transpose")


def check_precomputed(K: np.ndarray) -> None:
    """Refuse a matrix that is no Gram matrix: not square, not symmetric, or with a negative eigenvalue."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"a precomputed kernel must be a square matrix for fit; got shape {K.shape}")
    n, tile = len(K), 512
    scale = max(abs(float(K.max())), abs(float(K.min()))) or 1.0
    for start in range(0, n, tile):  # tile by tile: the transpose of a large matrix does not fit in a cache
        stop = start + tile
        if np.abs(K[start:stop, start:] - K[start:, start:stop].T).max() > 1e-6 * scale:
            raise ValueError("the precomputed kernel is not symmetric")
    tolerance = 1e-6 * max(float(np.trace(K)), scale)
    if n <= 4000:
        try:
            np.linalg.cholesky(K.astype(float) + tolerance * np.eye(n))
            return
        except np.linalg.LinAlgError:
            lowest = float(np.linalg.eigvalsh(K)[0])
    else:
        # A negative estimate proves the point; a matrix of this size is not factorised only to be checked.
        lowest = DenseGram(np.ascontiguousarray(K)).eigenvalue("SA", steps=5, tol=1e-3)
    if lowest < -tolerance:
        raise ValueError(f"the precomputed kernel is not positive semi-definite: it has an eigenvalue of {lowest:.3g}")


class ParquetBlocks(RowBlocks):
    """The numeric columns of a Parquet file, or of all Parquet files of a folder, in order of their names."""

    def __init__(
        self, path: str | os.PathLike[str], without: Sequence[str] = (), columns: Sequence[str] | None = None
    ) -> None:
        self.files = [_parquet().ParquetFile(name) for name in parquet_files(path)]
        schema = self.files[0].schema_arrow
        missing = [name for name in (*without, *(columns or ())) if name not in schema.names]
        if missing:
            raise ValueError(f"{path} has no column {missing[0]!r}; it has {', '.join(schema.names)}")
        self.names = [name for name in columns or schema.names if name not in without]
        types = [np.dtype(_numeric(schema.field(name), path)) for name in self.names]
        self.dtype = np.result_type(np.float32, *types)
        self.starts = np.cumsum([0, *(file.metadata.num_rows for file in self.files)])
        self.shape = (int(self.starts[-1]), len(self.names))

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """(first row, block) over all rows, in order."""
        start = 0
        for file in self.files:
            for batch in file.iter_batches(batch_size=self.block_rows, columns=self.names):
                yield start, self._matrix(batch)
                start += batch.num_rows

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The given rows, in the given order; only the row groups that hold them are read."""
        rows = np.asarray(rows, dtype=np.int64)
        out = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        for file, begin in zip(self.files, self.starts):
            for group in range(file.num_row_groups):
                end = begin + file.metadata.row_group(group).num_rows
                here = (rows >= begin) & (rows < end)
                if here.any():
                    table = file.read_row_group(group, columns=self.names)
                    out[here] = self._matrix(table.take(rows[here] - begin))
                begin = end
        return out

    def _matrix(self, batch: Any) -> np.ndarray:
        columns = [batch.column(name).to_numpy(zero_copy_only=False) for name in self.names or ()]
        return np.stack(columns, axis=1).astype(self.dtype, copy=False)


def open_rows(source: Any, without: Sequence[str] = (), columns: Sequence[str] | None = None) -> RowBlocks:
    """`RowBlocks` of a path (.npy, .parquet or a folder of Parquet files), a memory map or an array.

    Of Parquet files, `columns` are the features, in that order (all by default), less those in `without`.
    """
    if isinstance(source, RowBlocks):
        return source
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.exists():
            raise FileNotFoundError(f"no file or folder {path}")
        if path.is_dir() or path.suffix in (".parquet", ".pq"):
            return ParquetBlocks(path, without, columns)
        if path.suffix != ".npy":
            raise ValueError(f"{path} cannot be read in blocks; use .npy, .parquet or a folder of Parquet files")
        source = np.load(path, mmap_mode="r")
    if source.ndim != 2 or not np.issubdtype(source.dtype, np.number):
        raise ValueError(f"X must be a numeric matrix; got {source.dtype} of shape {source.shape}")
    return ArrayBlocks([source])


def read_column(source: Any, name: str) -> np.ndarray:
    """One column of a Parquet file or folder, whole: the labels."""
    if not isinstance(source, str | os.PathLike):
        raise ValueError(f"y={name!r} names a column, which only a Parquet file as X has")
    tables = [_parquet().read_table(path, columns=[name]) for path in parquet_files(source)]
    if not tables[0].num_columns:
        raise ValueError(f"{source} has no column {name!r}")
    return np.concatenate([table.column(name).to_numpy() for table in tables])


def parquet_files(path: str | os.PathLike[str]) -> list[Path]:
    """The file itself, or the Parquet files of a folder by name."""
    path = Path(path)
    found = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not found:
        raise FileNotFoundError(f"no .parquet files in {path}")
    return found


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f"Parquet files need pyarrow: {install_line('cli')}") from error
    return pyarrow.parquet


def _numeric(field: Any, path: Any) -> Any:
    kind = field.type.to_pandas_dtype()
    if not (np.issubdtype(kind, np.number) or kind is np.bool_):
        raise ValueError(f"column {field.name!r} of {path} is {field.type}, not a number")
    return kind
