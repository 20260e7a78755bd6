"""Rows that survive: an SQLite file into which finished cells are committed at once.

A cell's rows, arrays and status are one transaction, so that a reader (or the next run, after a kill, a full disk or
Ctrl-C) sees all of a cell or nothing of it.
"""

from __future__ import annotations

import io
import json
import os
import sqlite3
import zlib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from floral_bench.spec import RESULTS_VERSION, Cell, CellResult, Setting

_SCHEMA = """
CREATE TABLE IF NOT EXISTS cells (
    key TEXT PRIMARY KEY, spec TEXT NOT NULL, status TEXT NOT NULL, error TEXT, traceback TEXT,
    seconds REAL NOT NULL, peak_memory REAL NOT NULL, finished TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS results (
    key TEXT NOT NULL REFERENCES cells(key) ON DELETE CASCADE,
    config TEXT NOT NULL, statistic TEXT NOT NULL, metric TEXT NOT NULL, value REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS results_key ON results(key);
CREATE TABLE IF NOT EXISTS settings (
    key TEXT NOT NULL REFERENCES cells(key) ON DELETE CASCADE,
    config TEXT NOT NULL, budget INTEGER NOT NULL, flips INTEGER NOT NULL, eta REAL NOT NULL, decay INTEGER,
    PRIMARY KEY (key, config)
);
CREATE TABLE IF NOT EXISTS traces (
    key TEXT NOT NULL REFERENCES cells(key) ON DELETE CASCADE,
    config TEXT NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (key, config, name)
);
CREATE TABLE IF NOT EXISTS runs (
    id INTEGER PRIMARY KEY, suite TEXT NOT NULL, started TEXT NOT NULL, ended TEXT, seconds REAL,
    status TEXT NOT NULL, info TEXT NOT NULL
);
"""

MOST_BYTES = 2**30  # of one stored array: more is no result of ours


class StoreError(RuntimeError):
    """The store cannot be read or written; what was committed before is intact."""


class Store:
    """The results file; open it in one process and hand rows to it.

    Two processes may use one file: each write waits for the other's (at most a minute).
    """

    def __init__(self, path: str | os.PathLike[str], read_only: bool = False) -> None:
        self.path = Path(path)
        if read_only and not self.path.is_file():
            raise StoreError(f"{self.path} does not exist: nothing was run there yet")
        try:
            if not read_only:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            self._db.execute("PRAGMA foreign_keys = ON")
            self._check_version()
            if not read_only:
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.executescript(_SCHEMA)
                self._db.execute(f"PRAGMA user_version = {RESULTS_VERSION}")
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self.path} cannot be opened as a results store: {error}") from error

    def _check_version(self) -> None:
        """Rows of another version are other numbers: they are neither shown nor mixed with new ones."""
        has_cells = self._db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'cells'").fetchone()[0]
        # Stores before version 2 carry no number.
        version = self._db.execute("PRAGMA user_version").fetchone()[0] or 1
        if has_cells and version != RESULTS_VERSION:
            self._db.close()
            raise StoreError(
                f"{self.path} holds results of version {version}, this is version {RESULTS_VERSION}: their numbers "
                "are not comparable; move the file away, or choose another folder with --out"
            )

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def status(self, keys: Iterable[str]) -> dict[str, str]:
        """``"done"`` or ``"error"`` for each of `keys` that is known."""
        return dict(self._among("key, status FROM cells", keys))

    def commit(self, *results: CellResult) -> None:
        """Write all of some finished cells, together or not at all, replacing what an earlier try left.

        Cells that were computed in one batch belong together: half of them again would be another batch, and numbers of
        another batch differ in their last digits.
        """
        self._write([statement for result in results for statement in self._statements(result)])

    @staticmethod
    def _statements(result: CellResult) -> list[tuple[str, list[tuple[Any, ...]]]]:
        key = result.cell.key
        spec = json.dumps(result.cell.spec(), sort_keys=True)
        state = "done" if result.error is None else "error"
        row = (key, spec, state, result.error, result.traceback, result.seconds, result.peak_memory, _now())
        tables: dict[str, list[tuple[Any, ...]]] = {
            "cells": [row],
            "results": [(key, *values) for values in result.rows],
            "settings": [(key, config, s.budget, s.flips, s.eta, s.decay) for config, s in result.settings.items()],
            "traces": [(key, config, name, _pack(array)) for (config, name), array in result.traces.items()],
        }
        places = {name: ", ".join("?" * len(rows[0])) for name, rows in tables.items() if rows}
        statements = [(f"INSERT INTO {name} VALUES ({marks})", tables[name]) for name, marks in places.items()]
        return [("DELETE FROM cells WHERE key = ?", [(key,)]), *statements]

    def rows(self, cell: Cell) -> list[tuple[str, str, str, float]]:
        """(config, statistic, metric, value) of one cell."""
        return [row[1:] for row in self.all_rows({cell.key})]

    def all_rows(self, keys: set[str]) -> list[Any]:
        """(key, config, statistic, metric, value) of many cells."""
        rows = self._among("key, config, statistic, metric, value FROM results", keys, "ORDER BY rowid")
        for row in rows:
            if not all(isinstance(text, str) for text in row[:4]) or not isinstance(row[4], int | float):
                raise StoreError(f"{self.path} is damaged: a result is {row[1:]!r}, not names and a number")
        return rows

    def settings(self, keys: set[str]) -> dict[tuple[str, str], Setting]:
        """The point of the grid behind each (key, config) of many cells."""
        found = self._among("key, config, budget, flips, eta, decay FROM settings", keys)
        return {(row[0], row[1]): Setting(*row[2:]) for row in found}

    def trace(self, cell: Cell, name: str, config: str = "") -> np.ndarray | None:
        """One stored array, or None."""
        where = (cell.key, config, name)
        found = self._query("SELECT data FROM traces WHERE key = ? AND config = ? AND name = ?", where)
        try:
            return _unpack(found[0][0]) if found else None
        except (zlib.error, ValueError, TypeError, EOFError, MemoryError) as error:
            raise StoreError(f"{self.path} is damaged: {name} of a cell cannot be read ({error})") from error

    def costs(self, keys: Iterable[str]) -> dict[str, tuple[float, float]]:
        """(seconds, peak memory in bytes) of each finished cell."""
        keys = list(keys)
        known = {row[0]: row[1:] for row in self._among("key, seconds, peak_memory FROM cells", keys)}
        for cost in known.values():
            if not all(isinstance(value, int | float) for value in cost):
                raise StoreError(f"{self.path} is damaged: the cost of a cell is {cost!r}, not two numbers")
        return {key: known[key] for key in keys if key in known}

    def finished(self, keys: Iterable[str]) -> dict[str, str]:
        """When each finished cell was done, in UTC."""
        return dict(self._among("key, finished FROM cells", keys, "AND status = 'done'"))

    def errors(self, keys: Iterable[str]) -> list[tuple[str, str]]:
        """(key, message) of the cells that failed."""
        return self._among("key, error FROM cells", keys, "AND status = 'error'")

    def begin_run(self, suite: str, info: dict[str, Any]) -> int:
        """Note that a run started; `end_run` closes the note."""
        row = (suite, _now(), "running", json.dumps(info))
        self._write([("INSERT INTO runs (suite, started, status, info) VALUES (?, ?, ?, ?)", [row])])
        # another process may have begun a run of its own meanwhile
        return int(self._query("SELECT max(id) FROM runs WHERE suite = ? AND info = ?", (suite, row[3]))[0][0])

    def end_run(self, run: int, status: str, seconds: float) -> None:
        """Note how the run ended."""
        row = (_now(), status, seconds, run)
        self._write([("UPDATE runs SET ended = ?, status = ?, seconds = ? WHERE id = ?", [row])])

    def runs(self) -> list[dict[str, Any]]:
        """Notes of past runs, oldest first."""
        found = self._query("SELECT suite, started, ended, seconds, status, info FROM runs ORDER BY id")
        names = ("suite", "started", "ended", "seconds", "status", "info")
        notes = [dict(zip(names, row, strict=True)) for row in found]
        try:
            return [{**note, "info": json.loads(note["info"])} for note in notes]
        except (ValueError, TypeError, RecursionError) as error:
            raise StoreError(f"{self.path} is damaged: the note of a run cannot be read ({error})") from error

    def _among(self, what: str, keys: Iterable[str], more: str = "") -> list[Any]:
        # A suite is a small part of a store that all suites share: only its rows are read.
        where = "WHERE key IN (SELECT value FROM json_each(?))"
        return self._query(f"SELECT {what} {where} {more}", (json.dumps(sorted(set(keys))),))

    def _query(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be read: {error}") from error

    def _write(self, statements: list[tuple[str, list[tuple[Any, ...]]]]) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                for statement, values in statements:
                    self._db.executemany(statement, values)
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be written ({error}); what was finished before is kept") from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _pack(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array), allow_pickle=False)
    return zlib.compress(buffer.getvalue(), 6)


def _unpack(data: bytes) -> np.ndarray:
    """The array behind `_pack`; a damaged or boundless one is a ValueError."""
    stream = zlib.decompressobj()
    raw = stream.decompress(data, MOST_BYTES)
    if stream.unconsumed_tail or not stream.eof:
        raise ValueError(f"an array of more than {MOST_BYTES:,} bytes, or a damaged one")
    array = np.load(io.BytesIO(raw), allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise ValueError("not an array")
    return array
