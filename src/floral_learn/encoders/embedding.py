"""Vectors of items, each computed once: found again by the digest of an item's content, in the user's cache folder."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin

from floral_learn.base.estimator import Estimator
from floral_learn.base.files import user_cache

Progress = Callable[[int, int, float], None]  # items done, of how many, seconds left


class Unreadable(ValueError):
    """An item that cannot be read; the message says why, not which."""


class EmbeddingCache:
    """Vectors by digest in one SQLite file for each way of making them; several processes may use it at once.

    A file that cannot be made, read or written is no error: vectors are then computed again.
    """

    def __init__(self, key: str, folder: Path | None = None) -> None:
        self.path = (user_cache() / "embeddings" if folder is None else Path(folder)) / f"{key}.sqlite"

    def find(self, digests: Sequence[str]) -> dict[str, np.ndarray]:
        """Those of the digests that are known."""
        ask = "SELECT digest, vector FROM vectors WHERE digest = ?"
        try:
            with closing(self._open()) as store:
                rows = [row for digest in digests for row in store.execute(ask, (digest,))]
            return {digest: np.frombuffer(vector, dtype=np.float32) for digest, vector in rows}
        except (OSError, sqlite3.Error, ValueError):
            return {}

    def keep(self, digests: Sequence[str], vectors: np.ndarray) -> None:
        """Store vectors at once, so that a run that is killed goes on where it was."""
        rows = [(digest, vector.tobytes()) for digest, vector in zip(digests, vectors, strict=True)]
        try:
            with closing(self._open()) as store, store:
                store.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        except (OSError, sqlite3.Error):
            return

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        store = sqlite3.connect(self.path, timeout=30)
        store.execute("CREATE TABLE IF NOT EXISTS vectors (digest TEXT PRIMARY KEY, vector BLOB)")
        return store


class ItemRows:
    """Mixin of estimators whose rows are single things, texts or pictures; before scikit-learn's classes."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.string, tags.input_tags.two_d_array, tags.input_tags.one_d_array = True, False, True
        return tags


class FrozenEncoder(ItemRows, TransformerMixin, Estimator):
    """What the encoders share: a cache, notes for people, and what rows are."""

    cache: Any
    notes_: Any
    as_text: Sequence[str] = ()  # columns that a table must keep as text

    def _cache(self, key: str) -> EmbeddingCache | None:
        """Where vectors of this kind are kept; None where they are not."""
        folder = None if isinstance(self.cache, bool) else Path(self.cache)
        return EmbeddingCache(key, folder) if key and self.cache is not False else None


def embed(
    items: Sequence[Any],
    *,
    digest: Callable[[Any], str],
    read: Callable[[Any], Any],
    compute: Callable[[list[Any]], Any],
    cache: EmbeddingCache | None,
    batch_size: int = 32,
    progress: Progress | None = None,
) -> tuple[np.ndarray, dict[int, str]]:
    """Vectors (n, d) of `items`, and why some could not be read; the rows of these are NaN.

    `digest` names the content of an item, `read` prepares it in threads beside the computing, `compute` makes the
    vectors (b, d) of a batch; larger ones are no faster on a core. Items of equal content are computed once.
    """
    with ThreadPoolExecutor() as threads:
        names = list(threads.map(_tried(digest), items))
        first: dict[str, Any] = {}  # the first item of each digest stands for all
        for name, item in zip(names, items, strict=True):
            if isinstance(name, str):
                first.setdefault(name, item)
        # vectors, or why there is none
        made: dict[str, Any] = {} if cache is None else cache.find(list(first))
        new = [name for name in first if name not in made]

        def begun(start: int) -> list[Any]:
            return [threads.submit(_tried(read), first[name]) for name in new[start : start + batch_size]]

        reading, began = begun(0), time.monotonic()
        for start in range(0, len(new), batch_size):
            # the next batch is read while one is computed
            waiting, reading = reading, begun(start + batch_size)
            batch = {name: one.result() for name, one in zip(new[start:], waiting, strict=False)}
            good = [name for name, content in batch.items() if not isinstance(content, Unreadable)]
            made |= batch
            if good:
                vectors = np.asarray(compute([batch[name] for name in good]), np.float32)
                made |= zip(good, vectors, strict=True)
                if cache is not None:  # at once: whoever stops the run loses one batch
                    cache.keep(good, vectors)
            if progress is not None:
                left = len(new) - start - len(batch)
                seconds = (time.monotonic() - began) / (len(new) - left) * left
                progress(len(items) - left, len(items), seconds)
    found = [made.get(name, name) for name in names]
    problems = {row: str(one) for row, one in enumerate(found) if isinstance(one, Unreadable)}
    width = next((len(one) for row, one in enumerate(found) if row not in problems), 0)
    X = [np.full(width, np.nan) if row in problems else one for row, one in enumerate(found)]
    return np.array(X, dtype=np.float32).reshape(len(items), width), problems


def _tried(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What `function` gives, or the `Unreadable` that it raises."""

    def tried(item: Any) -> Any:
        try:
            return function(item)
        except Unreadable as error:
            return error

    return tried
