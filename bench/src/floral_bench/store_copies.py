"""Stores that travel: finished cells of several stores in one, and a store without the arrays that no page shows.

A long suite can be run in parts, on several machines or one after the other; every part has a store of its own. Curves
of every point of every grid make up most of a store, and pages show a few of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from floral_bench.store import Store, StoreError

_OF_CELLS = ("results", "settings", "traces")
_RUNS = "suite, started, ended, seconds, status, info"


def merge(into: Path, parts: Iterable[Path]) -> int:
    """Copy finished cells of `parts` that `into` does not have, and the notes of their runs; returns how many.

    A part of another version of the results is a StoreError before anything is copied.
    """
    parts = [Path(part) for part in parts]
    for part in parts:
        with Store(part, read_only=True):
            pass  # opens, and is of this version
    with Store(into):
        pass
    database = sqlite3.connect(into, timeout=60, isolation_level=None)
    database.execute("PRAGMA foreign_keys = ON")  # rows of a cell go with it
    copied = 0
    try:
        for part in parts:
            copied += _take(database, part)
    except sqlite3.Error as error:
        raise StoreError(f"{into} cannot take the cells of another store: {error}") from error
    finally:
        database.close()
    return copied


def _take(database: sqlite3.Connection, part: Path) -> int:
    database.execute("ATTACH ? AS part", (str(part),))
    database.execute("BEGIN IMMEDIATE")
    try:
        database.execute(
            "CREATE TEMP TABLE fresh AS SELECT key FROM part.cells WHERE status = 'done' "
            "AND key NOT IN (SELECT key FROM main.cells WHERE status = 'done')"
        )
        database.execute("DELETE FROM main.cells WHERE key IN (SELECT key FROM fresh)")  # a failed try, if any
        for table in ("cells", *_OF_CELLS):
            database.execute(
                f"INSERT INTO main.{table} SELECT * FROM part.{table} WHERE key IN (SELECT key FROM fresh)"
            )
        database.execute(
            f"INSERT INTO main.runs ({_RUNS}) SELECT {_RUNS} FROM part.runs EXCEPT SELECT {_RUNS} FROM main.runs"
        )
        count = int(database.execute("SELECT count(*) FROM fresh").fetchone()[0])
        database.execute("DROP TABLE fresh")
        database.execute("COMMIT")
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("DETACH part")
    return count


def keep_arrays(path: Path, shown: set[tuple[str, str, str]], whole: set[str]) -> None:
    """Remove curves of games from a store: all but `shown` (key, config, name) and those of the cells in `whole`.

    The file is smaller for it; the index of its rows is made again when it is next opened for writing.
    """
    with Store(path):
        pass
    database = sqlite3.connect(path, timeout=60, isolation_level=None)
    try:
        database.execute("CREATE TEMP TABLE shown (key TEXT, config TEXT, name TEXT, PRIMARY KEY (key, config, name))")
        database.execute("CREATE TEMP TABLE whole (key TEXT PRIMARY KEY)")
        database.executemany("INSERT INTO shown VALUES (?, ?, ?)", sorted(shown))
        database.executemany("INSERT INTO whole VALUES (?)", [(key,) for key in sorted(whole)])
        database.execute(
            "DELETE FROM traces WHERE name IN ('accuracy', 'recovery', 'flip_rate') AND config != '' "
            "AND key NOT IN (SELECT key FROM whole) "
            "AND (key, config, name) NOT IN (SELECT key, config, name FROM shown)"
        )
        database.execute("DROP INDEX results_key")
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        database.close()
