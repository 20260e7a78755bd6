"""Answers on disk: what was acknowledged is there, whatever happens to the process or the disk."""

import sqlite3

import pytest
from refusals import refuses

from floral_learn.app.review_page import AnswerStore, StoreError

ABOUT = {"other contents of the table": "abc", "another label column": "y"}


@pytest.fixture
def store(tmp_path):
    made = AnswerStore(tmp_path, about=ABOUT)
    yield made
    made.close()


def add(store, number, **other):
    said = {"request": f"request {number}", "row": number, "kind": "label", "label": "yes", "reviewer": "ann"}
    return store.add(**{**said, **other})


def test_answers_come_back_in_order_with_reviewer_and_time(store, tmp_path):
    add(store, 5)
    add(store, 2, kind="unsure", label=None, reviewer="bob", seen=True)
    store.close()
    again = AnswerStore(tmp_path, about=ABOUT)
    first, second = again.active()
    assert (first.row, first.label, first.reviewer, first.seen) == (5, "yes", "ann", False)
    assert (second.row, second.kind, second.label, second.reviewer, second.seen) == (2, "unsure", None, "bob", True)
    assert first.time.endswith("Z")
    again.close()


def test_a_repeated_message_is_stored_once(store):
    assert add(store, 1) == add(store, 1)
    assert len(store.active()) == 1


def test_undo_takes_back_the_own_last_answer_and_keeps_it_in_the_file(store):
    add(store, 1)
    add(store, 2)
    add(store, 3, reviewer="bob")
    assert store.undo(request="undo number 1", reviewer="ann").row == 2
    assert store.undo(request="undo number 1", reviewer="ann").row == 2, "a repeated message undoes once"
    assert [answer.row for answer in store.active()] == [1, 3]
    assert store.undo(request="undo number 2", reviewer="ann").row == 1
    assert store.undo(request="undo number 3", reviewer="ann") is None
    store.close()
    base = sqlite3.connect(store.path)
    assert base.execute("SELECT count(*) FROM answers").fetchone() == (3,)
    base.close()


def test_every_commit_is_synced(store):
    assert store._base.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    assert store._base.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_full_disk_refuses_the_answer_and_takes_the_next_once_there_is_room(store):
    add(store, 0)
    used = store._base.execute("PRAGMA page_count").fetchone()[0]
    store._base.execute(f"PRAGMA max_page_count = {used}")
    stored = 1
    refused = None
    while refused is None and stored < 1000:
        try:
            add(store, stored, reviewer="ann" * 300)
            stored += 1
        except StoreError as error:
            refused = str(error)
    assert "is full: nothing was saved" in refused
    assert len(store.active()) == stored
    store._base.execute("PRAGMA max_page_count = 100000")
    add(store, 5000)
    assert [answer.row for answer in store.active()] == [*range(stored), 5000]


def test_one_process_at_a_time(store, tmp_path):
    add(store, 1)
    refuses("another floral review is using", AnswerStore, tmp_path, about=ABOUT, error=StoreError)


def test_answers_about_another_table_are_not_taken_up(store, tmp_path):
    add(store, 1)
    store.close()
    with pytest.raises(StoreError, match=r"begun with other contents of the table \(abc, now xyz\)"):
        AnswerStore(tmp_path, about={**ABOUT, "other contents of the table": "xyz"})


def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path):
    (tmp_path / "answers.sqlite").write_bytes(b"a letter to a friend" * 100)
    refuses("not a database", AnswerStore, tmp_path, about=ABOUT, error=StoreError)
    assert (tmp_path / "answers.sqlite").read_bytes() == b"a letter to a friend" * 100
