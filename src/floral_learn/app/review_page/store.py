"""Every answer on disk before anybody is told that it was saved: an append-only SQLite file in the review's folder."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FILE = "answers.sqlite"
KINDS = ("label", "unsure", "skip", "later", "out")
SILENT = ("skip", "later")  # that say nothing about a row
_SCHEMA = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answers (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  request TEXT NOT NULL UNIQUE,
  row INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('label', 'unsure', 'skip', 'later', 'out')),
  label TEXT,
  reviewer TEXT NOT NULL,
  time TEXT NOT NULL,
  seen INTEGER NOT NULL,
  along TEXT NOT NULL,
  CHECK ((kind = 'label') = (label IS NOT NULL))
);
CREATE TABLE IF NOT EXISTS undone (
  answer INTEGER PRIMARY KEY REFERENCES answers (id), request TEXT NOT NULL UNIQUE, time TEXT NOT NULL
);
"""


class StoreError(OSError):
    """An answer could not be stored, or the file cannot be used; the message is one line for the reviewer."""


@dataclass(frozen=True)
class StoredAnswer:
    """What one reviewer said about one row, as the file holds it: a skip, and a label as text, too.

    Attributes
    ----------
    id : int
        Place in the order of answers.
    row : int
        Row of the table, from 0.
    kind : {"label", "unsure", "skip", "later", "out"}
        What was said: a label, not sure, asked again ten questions later, set aside, left out of training.
    label : str or None
        The label as text, where one was given.
    reviewer, time : str
        Who, and when (UTC, ISO 8601).
    seen : bool
        Whether the label in the file was in sight.
    along : tuple of int
        Rows that are nearly the same, for which the answer holds, too.
    """

    id: int
    row: int
    kind: str
    label: str | None
    reviewer: str
    time: str
    seen: bool = False
    along: tuple[int, ...] = ()

    @property
    def rows(self) -> tuple[int, ...]:
        """The rows for which the answer holds, first the one that was looked at."""
        return self.row, *self.along


Answers = Sequence[StoredAnswer]


class AnswerStore:
    """Answers that survive a killed process and a full disk.

    Each call of `add` and `undo` is one transaction that has reached the disk when it returns (write-ahead log, synced
    at every commit). Nothing is ever overwritten: an undone answer stays in the file, marked. One process at a time
    holds the file.

    Parameters
    ----------
    folder : path
        The review's folder; it is made where it does not exist.
    about : mapping of text to text
        What the answers are about (a fingerprint of the table, the label column, ...), by the words for a difference:
        kept at the first start, and compared at each later one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = AnswerStore(folder, about={"another label column": "y"})
    ...     _ = store.add(request="r1", row=3, kind="label", label="yes", reviewer="ann")
    ...     store.close()
    ...     again = AnswerStore(folder, about={"another label column": "y"})
    ...     [(answer.row, answer.label) for answer in again.active()]
    ...     again.close()
    [(3, 'yes')]
    """

    def __init__(self, folder: str | Path, *, about: Mapping[str, str]) -> None:
        self.path = Path(folder) / FILE
        self._lock = threading.Lock()
        try:
            self.path.parent.mkdir(exist_ok=True)
            self._base = sqlite3.connect(self.path, timeout=1.0, isolation_level=None, check_same_thread=False)
            # Exclusive before the first read: a second process is refused, and the lock dies with the process.
            self._base.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._base.execute("PRAGMA journal_mode = WAL")
            self._base.execute("PRAGMA synchronous = FULL")
            self._check_tables()
            self._base.executescript(_SCHEMA)
            with self._transaction():
                self._check(about)
        except sqlite3.Error as error:
            self.close()
            raise StoreError(_words(error, self.path)) from None
        except BaseException:
            self.close()
            raise

    def _check_tables(self) -> None:
        """Refuse a file with anything but our own tables: a view or a trigger could run for ever."""
        every = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
        with contextlib.closing(sqlite3.connect(":memory:")) as fresh:
            fresh.executescript(_SCHEMA)
            ours = set(fresh.execute(every).fetchall())
        if strange := set(self._base.execute(every).fetchall()) - ours:
            name = sorted(str(name) for name, _ in strange)[0]
            raise StoreError(f"{self.path} is not a store of answers, or damaged: {name!r} in it is not ours")

    def check_answers(self, n_rows: int, labels: Container[str]) -> None:
        """Raise StoreError where an answer is about a row or a label that the table does not have."""
        for answer in self.active():
            if max(answer.rows) >= n_rows or not (answer.label is None or answer.label in labels):
                what = f"answer {answer.id} is about a row or label that is not there"
                raise StoreError(f"{self.path} is damaged: {what}")

    def secret(self, n_rows: int) -> dict[str, Any] | None:
        """The secret order of the rows and its seed; None in a new store, a StoreError where nobody stored that."""
        raw = self.get("secret")
        if raw is None:
            return None
        try:
            kept = json.loads(raw)
            order, seed, begun = kept["order"], kept["seed"], kept["random_state"]
            fits = _is_seed(seed) and (begun is None or _is_seed(begun))
            fits = fits and all(type(row) is int for row in order)
            # the guarantee rests on every row once
            if not fits or sorted(order) != list(range(n_rows)):
                raise ValueError("other values")
        except (ValueError, KeyError, TypeError, RecursionError):
            raise StoreError(
                f"{self.path} is damaged: its order of rows is not one that floral review stores"
            ) from None
        return kept

    def port(self) -> int:
        """The port of the page of last time; 0 where there was none."""
        kept = self.get("port")
        if kept is None:
            return 0
        a_number = isinstance(kept, bytes) and kept.isdigit() and len(kept) <= 5
        if not a_number or not 0 < int(kept) < 2**16:
            raise StoreError(f"{self.path} is damaged: its port is not a number from 1 to 65535")
        return int(kept)

    def _check(self, about: Mapping[str, str]) -> None:
        begun = "SELECT key, value FROM about WHERE key LIKE 'same:%'"
        known = dict(self._base.execute(begun).fetchall())
        for key, value in about.items():
            kept = known.get(f"same:{key}")
            if known and kept != value:
                raise StoreError(
                    f"the review in {self.path.parent} was begun with {key} ({kept or 'none'}, now {value}); "
                    "start it as before to go on, or use another folder"
                )
        if not known:
            rows = [(f"same:{key}", value) for key, value in about.items()]
            self._base.executemany("INSERT INTO about VALUES (?, ?)", rows)

    def add(
        self,
        *,
        request: str,
        row: int,
        kind: str,
        label: str | None,
        reviewer: str,
        seen: bool = False,
        along: tuple[int, ...] = (),
    ) -> StoredAnswer:
        """Store one answer; the same `request` again (a repeated message) gives the answer that is there."""
        with self._lock, self._transaction():
            said = self._base.execute("SELECT * FROM answers WHERE request = ?", (request,)).fetchone()
            if said is None:
                values = (request, row, kind, label, reviewer, now(), int(seen), json.dumps(along))
                columns = "request, row, kind, label, reviewer, time, seen, along"
                insert = f"INSERT INTO answers ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
                cursor = self._base.execute(insert, values)
                said = (cursor.lastrowid, *values)
        return _answer(said, self.path)

    def undo(self, *, request: str, reviewer: str) -> StoredAnswer | None:
        """Take back the reviewer's last answer that stands, and return it; None where there is none."""
        with self._lock, self._transaction():
            done = "SELECT answers.* FROM answers JOIN undone ON answers.id = undone.answer WHERE undone.request = ?"
            said = self._base.execute(done, (request,)).fetchone()
            if said is None:
                last = (
                    "SELECT * FROM answers WHERE reviewer = ? AND id NOT IN (SELECT answer FROM undone) "
                    "ORDER BY id DESC LIMIT 1"
                )
                said = self._base.execute(last, (reviewer,)).fetchone()
                if said is not None:
                    self._base.execute("INSERT INTO undone VALUES (?, ?, ?)", (said[0], request, now()))
        return None if said is None else _answer(said, self.path)

    def find(self, request: str) -> StoredAnswer | None:
        """The answer that came with `request`, undone or not."""
        found = self._rows("SELECT * FROM answers WHERE request = ?", request)
        return _answer(found[0], self.path) if found else None

    def active(self) -> list[StoredAnswer]:
        """All answers that were not undone, in the order in which they came."""
        query = "SELECT * FROM answers WHERE id NOT IN (SELECT answer FROM undone) ORDER BY id"
        return [_answer(said, self.path) for said in self._rows(query)]

    def get(self, key: str) -> bytes | None:
        """A value kept with `put`."""
        found = self._rows("SELECT value FROM about WHERE key = ?", f"own:{key}")
        return found[0][0] if found else None

    def _rows(self, query: str, *values: str) -> list[tuple]:
        """What a query finds; a file that cannot be read is a StoreError."""
        try:
            with self._lock:
                return self._base.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(_words(error, self.path)) from None

    def put(self, key: str, value: bytes) -> None:
        """Keep a value beside the answers."""
        with self._lock, self._transaction():
            self._base.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (f"own:{key}", value))

    def close(self) -> None:
        """Give the file back."""
        if hasattr(self, "_base"):
            self._base.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """BEGIN to COMMIT; whatever goes wrong leaves the file as it was and the connection ready for another try."""
        try:
            if not self._base.in_transaction:
                self._base.execute("BEGIN IMMEDIATE")
            yield
            self._base.execute("COMMIT")
        except sqlite3.Error as error:
            raise StoreError(_words(error, self.path)) from None
        finally:
            if self._base.in_transaction:
                self._base.execute("ROLLBACK")


def now() -> str:
    """The time as it is stored."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _answer(said: tuple, path: Path) -> StoredAnswer:
    number, _, row, kind, label, reviewer, time, seen, along = said
    words = [text for text in (label, reviewer, time) if text is not None]
    rows = (row, *_numbers(along))
    fits = (
        all(type(one) is int and 0 <= one < 2**53 for one in rows)
        and kind in KINDS
        and (kind == "label") == (label is not None)
        and all(isinstance(text, str) for text in words)
        and type(seen) is int
    )
    if not fits:
        raise StoreError(f"{path} is damaged: answer {number} is not one that floral review stores")
    return StoredAnswer(number, row, kind, label, reviewer, time, bool(seen), rows[1:])


def _numbers(text: Any) -> list[Any]:
    """The list that JSON holds; one that is no row number where it holds anything else."""
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return [None]
    return found if isinstance(found, list) else [None]


def _is_seed(value: Any) -> bool:
    return type(value) is int and value >= 0


def _words(error: sqlite3.Error, path: Path) -> str:
    text = str(error)
    if "locked" in text:
        return f"another floral review is using {path}; open the address that it printed, or stop it first"
    if "full" in text:
        return f"the disk of {path} is full: nothing was saved; free some space and answer again"
    return f"{path} cannot be used as a store of answers: {text}"
