"""Stores of answers that somebody changed: refused at once, in a line that says what is wrong; nothing is written."""

import json
import shutil
import sqlite3

import pytest
from commands import floral, refused

ENDLESS = (
    "WITH RECURSIVE c(answer, request, time) AS (SELECT 1, 'a', 'b' UNION ALL SELECT answer + 1, 'a', 'b' FROM c) "
    "SELECT * FROM c"
)


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A table, and a review of it with one answer."""
    folder = tmp_path_factory.mktemp("begun")
    rows = [f"{i / 7:.3f},{'yes' if i % 2 else 'no'}" for i in range(20)]
    (folder / "t.csv").write_text("a,y\n" + "\n".join(rows) + "\n")
    floral("review", folder / "t.csv", "-l", "y", "-o", folder / "out", "--finish")
    with sqlite3.connect(folder / "out" / "answers.sqlite") as base:
        said = "1, 'request 1', 3, 'label', 'yes', 'ann', '2026-01-01T00:00:00Z', 0, '[4]'"
        base.execute(f"INSERT INTO answers VALUES ({said})")
    base.close()
    return folder


def secret(**change):
    return json.dumps({"order": list(range(20)), "seed": 1, "random_state": None} | change)


CHANGES = {
    "a row that is not there": ["UPDATE answers SET row = 100000"],
    "a row below 0": ["UPDATE answers SET row = -1"],
    "a row that is text": ["UPDATE answers SET row = 'abc'"],
    "a row that is bytes": ["UPDATE answers SET row = x'00ff'"],
    "half a row": ["UPDATE answers SET row = 1.5"],
    "another label": ["UPDATE answers SET label = 'maybe'"],
    "a label of bytes": ["UPDATE answers SET label = x'ff'"],
    "a reviewer of bytes": ["UPDATE answers SET reviewer = x'01'"],
    "another kind": ["PRAGMA ignore_check_constraints = ON", "UPDATE answers SET kind = 'maybe'"],
    "a kind without a label": ["PRAGMA ignore_check_constraints = ON", "UPDATE answers SET label = NULL"],
    "seen by nobody": ["UPDATE answers SET seen = 'x'"],
    "words for rows": ["UPDATE answers SET along = '[\"x\"]'"],
    "no list of rows": ["UPDATE answers SET along = '4'"],
    "rows without end": ["UPDATE answers SET along = '" + 30_000 * "[" + "'"],
    "another row that is not there": ["UPDATE answers SET along = '[100000]'"],
    "a view for a table": ["ALTER TABLE answers RENAME TO a2", "CREATE VIEW answers AS SELECT * FROM a2"],
    "a view without end": ["ALTER TABLE undone RENAME TO u2", f"CREATE VIEW undone AS {ENDLESS}"],
    "a trigger": ["CREATE TRIGGER t AFTER INSERT ON answers BEGIN DELETE FROM answers; END"],
    "another table": ["CREATE TABLE mine (a)"],
    "a table with other columns": ["DROP TABLE undone", "CREATE TABLE undone (answer, request)"],
    "no order": ["UPDATE about SET value = 'x' WHERE key = 'own:secret'"],
    "an order without end": [f"UPDATE about SET value = '{'[' * 50_000}' WHERE key = 'own:secret'"],
    "no names in the order": ["UPDATE about SET value = '{}' WHERE key = 'own:secret'"],
    "a list for the order": ["UPDATE about SET value = '[]' WHERE key = 'own:secret'"],
    "a short order": [f"UPDATE about SET value = '{secret(order=[1, 2])}' WHERE key = 'own:secret'"],
    "an order of one row": [f"UPDATE about SET value = '{secret(order=[0] * 20)}' WHERE key = 'own:secret'"],
    "an order of words": [f"UPDATE about SET value = '{secret(order=['a'] * 20)}' WHERE key = 'own:secret'"],
    "a seed of words": [f"UPDATE about SET value = '{secret(seed='a')}' WHERE key = 'own:secret'"],
    "half a seed": [f"UPDATE about SET value = '{secret(random_state=1.5)}' WHERE key = 'own:secret'"],
}


def changed(begun, tmp_path, statements):
    shutil.copytree(begun / "out", tmp_path / "out")
    for name in ("cleaned.csv", "decisions.csv", "changes.csv", "training.csv", "model.skops", "report.html"):
        (tmp_path / "out" / name).unlink()
    base = sqlite3.connect(tmp_path / "out" / "answers.sqlite", isolation_level=None)
    for statement in statements:
        base.execute(statement)
    base.close()
    return tmp_path / "out"


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_store_is_refused_in_one_line(begun, tmp_path, name):
    out = changed(begun, tmp_path, CHANGES[name])
    done = floral("review", begun / "t.csv", "-l", "y", "-o", out, "--finish", code=2)
    (line,) = done.stderr.splitlines()
    assert "answers.sqlite" in line
    assert "unexpected" not in line
    assert "damaged" in line or "cannot be used" in line
    assert [path.name for path in out.iterdir() if "sqlite" not in path.name] == []


@pytest.mark.parametrize("port", ["'abc'", "'99999999'", "'0'", "'-5'", "5", "x'ff'", "''"])
def test_a_changed_port_is_refused_in_one_line(begun, tmp_path, port):
    out = changed(begun, tmp_path, [f"INSERT OR REPLACE INTO about VALUES ('own:port', {port})"])
    assert "answers.sqlite is damaged: its port" in refused(
        "review", begun / "t.csv", "-l", "y", "-o", out, "--no-browser"
    )


def test_an_unchanged_copy_goes_on(begun, tmp_path):
    out = changed(begun, tmp_path, [])
    floral("review", begun / "t.csv", "-l", "y", "-o", out, "--finish")
    assert "3" in (out / "decisions.csv").read_text()


def test_bytes_of_the_file_changed(begun, tmp_path):
    out = changed(begun, tmp_path, [])
    raw = bytearray((out / "answers.sqlite").read_bytes())
    for at in range(100, len(raw), 7):
        raw[at] ^= 255
    (out / "answers.sqlite").write_bytes(raw)
    done = floral("review", begun / "t.csv", "-l", "y", "-o", out, "--finish", code=2)
    assert "unexpected" not in done.stderr
