"""Vectors of items, each computed once: found again by the digest of an item's content, in the user's cache folder."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin

from floral_learn.base.estimator import Estimator
from floral_learn.base.folders import user_cache

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
        known: dict[str, np.ndarray] = {}
        try:
            with closing(self._open()) as store:
                for digest in digests:
                    row = store.execute("SELECT vector FROM vectors WHERE digest = ?", (digest,)).fetchone()
                    if row is not None:
                        known[digest] = np.frombuffer(row[0], dtype=np.float32)
        except (OSError, sqlite3.Error, ValueError):
            return {}
        return known

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


class FrozenEncoder(TransformerMixin, Estimator):
    """What the encoders share: a cache, notes for people, and tags that say that rows are single things."""

    cache: Any
    notes_: Any
    as_text: Sequence[str] = ()  # columns that a table must keep as text

    def _cache(self, key: str) -> EmbeddingCache | None:
        """Where vectors of this kind are kept; None where they are not."""
        folder = None if isinstance(self.cache, bool) else Path(self.cache)
        return EmbeddingCache(key, folder) if key and self.cache is not False else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = tags.input_tags.one_d_array = True
        return tags


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
        named = list(threads.map(_tried(digest), items))
        problems = {number: str(name) for number, name in enumerate(named) if isinstance(name, Unreadable)}
        digests = [None if number in problems else str(name) for number, name in enumerate(named)]
        # equal content is computed once: the first item of each digest stands for all
        first: dict[str, int] = {}
        for number, name in enumerate(digests):
            if name is not None:
                first.setdefault(name, number)
        known = {} if cache is None else cache.find(list(first))
        new = [(name, number) for name, number in first.items() if name not in known]
        bad: dict[str, str] = {}
        began, done = time.monotonic(), 0
        for batch in _read_ahead(threads, _tried(read), [(name, items[number]) for name, number in new], batch_size):
            bad |= {name: str(content) for name, content in batch if isinstance(content, Unreadable)}
            names = [name for name, _ in batch if name not in bad]
            if names:
                vectors = np.asarray(compute([content for name, content in batch if name not in bad]), np.float32)
                known |= dict(zip(names, vectors, strict=True))
                if cache is not None:  # at once: whoever stops the run loses one batch
                    cache.keep(names, vectors)
            done += len(batch)
            if progress is not None:
                left = (time.monotonic() - began) / done * (len(new) - done)
                progress(len(items) - len(new) + done, len(items), left)
    problems |= {number: bad[name] for number, name in enumerate(digests) if name in bad}
    width = len(next(iter(known.values()))) if known else 0
    X = np.full((len(items), width), np.nan, dtype=np.float32)
    for number, name in enumerate(digests):
        if name in known:
            X[number] = known[name]
    return X, dict(sorted(problems.items()))


def _tried(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What `function` gives, or the `Unreadable` that it raises."""

    def tried(item: Any) -> Any:
        try:
            return function(item)
        except Unreadable as error:
            return error

    return tried


def _read_ahead(
    threads: ThreadPoolExecutor, read: Callable[[Any], Any], items: list[tuple[str, Any]], batch_size: int
) -> Iterator[list[tuple[str, Any]]]:
    """Batches of named items that were read, the next batch being read while one is computed."""

    def begun(start: int) -> list[tuple[str, Any]]:
        return [(name, threads.submit(read, item)) for name, item in items[start : start + batch_size]]

    reading = begun(0)
    for start in range(batch_size, len(items) + batch_size, batch_size):
        waiting, reading = reading, begun(start)
        yield [(name, future.result()) for name, future in waiting]
