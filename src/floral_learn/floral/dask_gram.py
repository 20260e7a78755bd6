"""Rows on dask: K ~ F F' with the rows of X and F in blocks wherever dask has them, and predictions by blocks.

The game itself is played here, by the same round as ever: it holds a few numbers per row. A product with K sends each
block its part of a column and gets F'v, of the size of the rank, then the other way round. Each block of F is made from
the same block of X and the landmarks alone: dask computes a block that is lost with its worker again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from floral_learn.floral.fitting import Settings
from floral_learn.game.arrays import NUMPY, Array, as_host
from floral_learn.game.kernels import Kernel
from floral_learn.game.low_rank import LowRankGram, low_rank_gram, missing_columns
from floral_learn.game.model import FittedModel, predicted

if TYPE_CHECKING:
    from floral_learn.floral.classifier import GameClassifier

Own = Iterable[tuple[Any, ...]]  # for each block, what a function gets of its own


def read_collections(settings: Settings, X: Any, y: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """X as a dask array of known size with whole rows in its blocks, the labels here, and the names of the columns."""
    refuse(settings)
    names = None
    if hasattr(X, "to_dask_array"):  # a dataframe
        if isinstance(y, str):
            X, y = X.drop(columns=y), X[y]
        names = np.array([str(name) for name in X.columns], dtype=object)
        X = X.to_dask_array(lengths=True)
    y = np.asarray(as_host(y))
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(f"X must be a matrix of numbers; it has {X.ndim} dimension(s) of type {X.dtype}")
    if np.isnan(X.shape[0]):
        X = X.persist()  # blocks of unknown length, such as those of a file, are not made twice
        X.compute_chunk_sizes()
    if y.shape != (X.shape[0],):
        raise ValueError(f"X has {X.shape[0]:,} rows and y has {len(y):,}; y needs one label per row")
    if X.shape[0] < 2:
        raise ValueError(f"X has {X.shape[0]} rows; {settings.name} needs at least 2")
    X = X.rechunk({1: -1}).map_blocks(_finite, dtype=np.float32 if X.dtype == np.float32 else np.float64)
    return X, y, names


def refuse(settings: Settings) -> None:
    """What rows in blocks cannot do, before any work."""
    if callable(settings.kernel) or settings.kernel in ("precomputed", "sigmoid"):
        raise ValueError(f"kernel={settings.kernel!r} has no low-rank factor, which dask input needs")
    if settings.gram == "dense":
        raise ValueError(f"gram={settings.gram!r} cannot be spread over blocks; use gram='low_rank' or a rank")
    if settings.device is not None:
        raise ValueError(f"device={settings.device!r}: blocks of dask are computed with numpy; use device=None")


def _finite(block: np.ndarray) -> np.ndarray:
    block = np.asarray(block, dtype=np.float32 if block.dtype == np.float32 else np.float64)
    if not np.isfinite(block).all():
        raise ValueError("Input X contains NaN or infinity")
    return block


def gram_on_workers(
    settings: Settings, X: Any, weight: np.ndarray, dtype: str, rng: np.random.Generator
) -> tuple[Kernel, LowRankGram]:
    """The kernel with its numbers, and its factor in blocks."""
    import dask
    import dask.array as da

    share = da.from_array(weight / weight.sum(), chunks=(X.chunks[0],))
    mean = share @ X
    with _large_graphs():
        mean, variance = dask.compute(mean, (share @ ((X - mean.mean()) ** 2)).mean())
    gamma = settings.gamma
    if isinstance(gamma, str):
        gamma = 1 / X.shape[1] if gamma == "auto" else 1 / (X.shape[1] * variance) if variance > 0 else 1.0
    shift = mean.astype(np.float64) if settings.kernel in ("rbf", "laplacian") else None
    kernel = Kernel(settings.kernel, float(gamma), settings.degree, settings.coef0, shift)
    gram = "low_rank" if settings.gram == "auto" else settings.gram
    return kernel, low_rank_gram(X, kernel, gram, dtype, rng, NUMPY, DaskGram)[0]


class DaskGram(LowRankGram):
    """`LowRankGram` whose rows of X and F are blocks that dask holds; `X` is a dask array."""

    def _begin(self, X: Any, rank: int) -> np.ndarray:
        """Prepare the rows for the kernel, where they are; the diagonal of K."""
        self.bounds = np.cumsum([0, *X.chunks[0]])
        self.prepared = self._keep(_prepare, zip(X.to_delayed().ravel()), self.kernel, self.dtype)
        self.blocks = self._keep(_no_columns, zip(self.prepared), self.dtype)
        return np.concatenate(self._ask(_diagonal, zip(self.prepared), self.kernel))

    def _rows(self, rows: np.ndarray) -> tuple[Any, np.ndarray]:
        """Prepared features and rows of F, here."""
        part = np.searchsorted(self.bounds, rows, side="right") - 1
        places = [rows[part == p] - self.bounds[p] for p in range(len(self.blocks))]
        found = self._ask(_take, zip(self.prepared, self.blocks, places))
        back = np.argsort(np.argsort(part, kind="stable"), kind="stable")
        features, known = (np.concatenate(parts)[back] for parts in zip(*found))
        return features, known

    def _columns(self, features: Any, known: np.ndarray, pivots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Columns of K - F F' at the pivots: their squared lengths, and their entries at the pivots."""
        self.fresh = self._keep(_fresh, zip(self.prepared, self.blocks), self.kernel, features, known)
        squares = np.asarray(sum(self._ask(_lengths, zip(self.fresh))))
        core = missing_columns(self.kernel, features, known, features, known, NUMPY)
        return squares, core

    def _extend(self, kept: np.ndarray, inverse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Append the columns of the kept pivots: F'F for them, and the square of each of their rows, (n,)."""
        inverse = np.ascontiguousarray(inverse.T).astype(self.dtype)
        self.blocks = self._keep(_append, zip(self.blocks, self.fresh), kept, inverse)
        del self.fresh
        products, squares = zip(*self._ask(_squares, zip(self.blocks), len(kept)))
        return np.asarray(sum(products), dtype=np.float64), np.concatenate(squares)

    def inner(self, columns: Array) -> Array:
        """``F' columns``, (rank, c)."""
        columns = columns.astype(self.dtype)
        return np.sum(self._ask(_inner, self._with_rows(columns)), axis=0, dtype=np.float64)

    def outer(self, inner: Array) -> Array:
        """``F inner`` as float64, (n, c)."""
        found = self._ask(_outer, zip(self.blocks), inner.astype(self.dtype))
        return np.asfortranarray(np.concatenate(found), dtype=np.float64)

    def weighted(self, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """F'WF and F'w, in float64; ones for no `weight`."""
        weight = np.ones(self.n) if weight is None else weight
        squares, sums = zip(*self._ask(_weighted, self._with_rows(weight)))
        return np.asarray(sum(squares)), np.asarray(sum(sums))

    def row_squares(self) -> np.ndarray:
        """Squared norms of the rows of F, (n,)."""
        return np.concatenate(self._ask(_row_squares, zip(self.blocks)))

    @property
    def factor(self) -> Array:
        """Not here: F stays where its blocks are."""
        raise AttributeError("the factor lies in blocks that dask holds")

    def _with_rows(self, values: np.ndarray) -> Own:
        return zip(self.blocks, np.split(values, self.bounds[1:-1]))

    def _tasks(self, function: Callable[..., Any], own: Own, shared: tuple[Any, ...]) -> list[Any]:
        from dask import delayed

        call = delayed(function, pure=False)  # not pure: nobody has to hash the numbers
        return [call(*arguments, *map(Shared, shared)) for arguments in own]

    def _ask(self, function: Callable[..., Any], own: Own, *shared: Any) -> list[Any]:
        """What `function` says of each block."""
        import dask

        with _large_graphs():
            return list(dask.compute(*self._tasks(function, own, shared)))

    def _keep(self, function: Callable[..., Any], own: Own, *shared: Any) -> list[Any]:
        """What `function` makes of each block, left where it is made."""
        import dask

        with _large_graphs():
            return list(dask.persist(*self._tasks(function, own, shared)))


@dataclass(frozen=True)
class Shared:
    """A value for tasks that dask should pass on as it is, without looking for collections inside."""

    value: Any


def _large_graphs() -> Any:
    """Columns travel with the tasks: a few megabytes are no mistake."""
    import dask

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"})


def _prepare(rows: np.ndarray, kernel: Shared, dtype: Shared) -> np.ndarray:
    return kernel.value.prepare(rows, NUMPY, dtype.value)


def _no_columns(rows: np.ndarray, dtype: Shared) -> np.ndarray:
    return np.zeros((len(rows), 0), dtype=dtype.value)


def _diagonal(rows: np.ndarray, kernel: Shared) -> np.ndarray:
    return np.asarray(kernel.value.diagonal(rows, NUMPY), dtype=np.float64)


def _take(rows: np.ndarray, factor: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return rows[places], factor[places]


def _fresh(rows: np.ndarray, factor: np.ndarray, kernel: Shared, features: Shared, known: Shared) -> np.ndarray:
    return missing_columns(kernel.value, rows, factor, features.value, known.value, NUMPY)


def _lengths(fresh: np.ndarray) -> np.ndarray:
    return (fresh * fresh).sum(0, dtype=np.float64)


def _append(factor: np.ndarray, fresh: np.ndarray, kept: Shared, inverse: Shared) -> np.ndarray:
    return np.concatenate([factor, fresh[:, kept.value] @ inverse.value], axis=1)


def _squares(factor: np.ndarray, new: Shared) -> tuple[np.ndarray, np.ndarray]:
    added = factor[:, factor.shape[1] - new.value :]
    return factor.T @ added, (added.astype(np.float64) ** 2).sum(1)


def _inner(factor: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return factor.T @ columns


def _outer(factor: np.ndarray, inner: Shared) -> np.ndarray:
    return factor @ inner.value


def _weighted(factor: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    exact = factor.astype(np.float64)
    return exact.T @ (exact * weight[:, None]), weight @ exact


def _row_squares(factor: np.ndarray) -> np.ndarray:
    return (factor.astype(np.float64) ** 2).sum(1)


def scores_on_workers(clf: GameClassifier, X: Any) -> Any:
    """Scores of every row as a lazy dask array, (n,) or (n, n_classes); the workers get the fitted model, no more."""
    X, count = columns_of_the_fit(clf, X), len(clf.classes_)
    if count == 2:
        return X.map_blocks(_scores, clf.model_, dtype=np.float64, drop_axis=1)
    return X.map_blocks(_scores, clf.model_, dtype=np.float64, chunks=(X.chunks[0], (count,)))


def classes_on_workers(clf: GameClassifier, X: Any) -> Any:
    """The class of every row as a lazy dask array, (n,)."""
    rows = columns_of_the_fit(clf, X)
    return rows.map_blocks(_classes, clf.model_, clf.classes_, dtype=clf.classes_.dtype, drop_axis=1)


def columns_of_the_fit(clf: GameClassifier, X: Any) -> Any:
    """The rows to predict as a dask array with the columns of the fit, by name where there are names."""
    if hasattr(X, "to_dask_array"):
        names = getattr(clf, "feature_names_in_", None)
        X = (X if names is None else X[list(names)]).to_dask_array()
    if X.shape[1] != clf.n_features_in_:
        raise ValueError(f"X has {X.shape[1]} features, but the model expects {clf.n_features_in_}")
    return X.rechunk({1: -1})


def _scores(block: np.ndarray, model: FittedModel) -> np.ndarray:
    scores = model.scores(_finite(block), NUMPY)
    return scores[:, 0] if model.n_classes == 2 else scores


def _classes(block: np.ndarray, model: FittedModel, classes: np.ndarray) -> np.ndarray:
    return classes[predicted(model.scores(_finite(block), NUMPY))]
