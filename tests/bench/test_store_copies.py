"""Parts of a run become one store, and a store that travels lacks nothing that its pages show."""

import sqlite3
import time
from dataclasses import replace

import pytest
from tiny import BROKEN, TINY

from floral_bench.reporting.details import shown_arrays
from floral_bench.reporting.origin import parts_of
from floral_bench.reporting.results import Results
from floral_bench.reporting.write import write_outputs
from floral_bench.runner import run_suite
from floral_bench.spec import RESULTS_VERSION
from floral_bench.store import Store, StoreError
from floral_bench.store_copies import keep_arrays, merge

SUITE = replace(TINY, name="recovery", figures=("rounds", "security", "recovery"), levels=(0, 10))


def part(seed):
    return replace(SUITE, seeds=SUITE.seeds[seed : seed + 1], data=SUITE.data[seed : seed + 1])


def numbers(store, suite):
    return {cell.key: sorted(store.rows(cell)) for cell in suite.cells()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "store.sqlite"
    with Store(path) as store:
        run_suite(SUITE, store)
    return path


def test_parts_of_a_suite_become_one_store(tmp_path, whole):
    for number in (0, 1):
        with Store(tmp_path / f"{number}.sqlite") as store:
            note = store.begin_run(SUITE.name, {"part": number})
            run_suite(part(number), store)
            store.end_run(note, "done", 1.0)
    parts = [tmp_path / "0.sqlite", tmp_path / "1.sqlite"]
    expected = len({cell.key for number in (0, 1) for cell in part(number).cells()})
    assert merge(tmp_path / "all.sqlite", parts) == expected
    assert merge(tmp_path / "all.sqlite", parts) == 0, "known cells and notes are not copied again"
    with Store(tmp_path / "all.sqlite") as merged, Store(whole, read_only=True) as store:
        assert numbers(merged, SUITE) == numbers(store, SUITE)
        assert [note["info"]["part"] for note in merged.runs()] == [0, 1]


def test_a_finished_cell_takes_the_place_of_a_failed_one(tmp_path):
    suite = replace(part(0), methods=(BROKEN,), levels=(0,))
    (cell,) = suite.cells()
    for name in ("failed", "done"):
        with Store(tmp_path / f"{name}.sqlite") as store:
            run_suite(suite, store)
    database = sqlite3.connect(tmp_path / "done.sqlite")
    database.execute("UPDATE cells SET status = 'done', error = NULL")
    database.commit()
    database.close()
    assert merge(tmp_path / "done.sqlite", [tmp_path / "failed.sqlite"]) == 0
    assert merge(tmp_path / "failed.sqlite", [tmp_path / "done.sqlite"]) == 1
    with Store(tmp_path / "failed.sqlite", read_only=True) as store:
        assert store.status([cell.key]) == {cell.key: "done"}


def test_cells_of_another_version_are_refused(tmp_path, whole):
    old = tmp_path / "old.sqlite"
    old.write_bytes(whole.read_bytes())
    database = sqlite3.connect(old)
    database.execute(f"PRAGMA user_version = {RESULTS_VERSION - 1}")
    database.commit()
    database.close()
    with pytest.raises(StoreError, match=f"version {RESULTS_VERSION - 1}, this is version {RESULTS_VERSION}"):
        merge(tmp_path / "new.sqlite", [whole, old])
    assert not (tmp_path / "new.sqlite").exists()


def test_a_packed_store_gives_the_same_pages(tmp_path, whole):
    pytest.importorskip("matplotlib")
    with Store(whole, read_only=True) as store:
        shown = shown_arrays(Results(SUITE, store))
    merge(tmp_path / "small.sqlite", [whole])
    keep_arrays(tmp_path / "small.sqlite", shown, set())
    arrays = {}
    pages = {}
    for name, path in (("large", whole), ("small", tmp_path / "small.sqlite")):
        with Store(path, read_only=True) as store:
            made = write_outputs(Results(SUITE, store), tmp_path / name, {})
        pages[name] = {file.name: file.read_bytes() for file in made if file.suffix in (".md", ".csv", ".png")}
        database = sqlite3.connect(path)
        arrays[name] = database.execute("SELECT count(*) FROM traces").fetchone()[0]
        database.close()
    assert pages["small"] == pages["large"]
    assert {"recovery.png", "rounds.png", "accuracy.md", "rows.csv"} <= set(pages["small"])
    assert arrays["small"] < arrays["large"] / 3


def test_a_note_tells_cells_of_one_commit_from_those_of_another(tmp_path):
    """Two suites share their clean cells; the second is run later, elsewhere, and of the first a part is missing."""
    first = replace(part(0), name="first", methods=TINY.methods[-1:])
    second = replace(first, name="second", methods=TINY.methods[-2:])
    cells = {suite.name: suite.cells() for suite in (first, second)}
    with Store(tmp_path / "s.sqlite") as store:
        for suite, commit in ((first, "aaaaaaa"), (second, "bbbbbbb")):
            note = {"command": f"run {suite.name}", "environment": {"commit": commit, "system": "here"}}
            number = store.begin_run(suite.name, note)
            run_suite(suite, store)
            store.end_run(number, "done", 1.0)
            if suite is first:
                time.sleep(1.1)  # times are kept to the second
        (whole,) = parts_of(store, "first", cells)
        assert (whole.environment["commit"], whole.cells, list(whole.commands)) == ("aaaaaaa", 3, ["run first"])
        parts = parts_of(store, "second", cells)
        assert {p.environment["commit"]: p.cells for p in parts} == {"aaaaaaa": 3, "bbbbbbb": 2}
        assert parts[0].plain()["cells"] == 3
        database = sqlite3.connect(tmp_path / "s.sqlite")
        database.execute("DELETE FROM runs")
        database.commit()
        database.close()
        with pytest.raises(ValueError, match="second: no run of the store accounts for a cell"):
            parts_of(store, "second", cells)
