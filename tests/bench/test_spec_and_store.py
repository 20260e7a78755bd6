import sqlite3
import time
from dataclasses import replace

import numpy as np
import pytest
from tiny import TINY

from floral_bench.reporting.making import parts_of
from floral_bench.runner import run_suite
from floral_bench.spec import RESULTS_VERSION, CellResult, Grid, Method
from floral_bench.store import Store, StoreError
from floral_bench.suites import SUITES


def test_a_suite_unfolds_into_every_combination_once():
    cells = TINY.cells()
    assert len(cells) == len({cell.key for cell in cells})
    attacks = [cell for cell in cells if cell.method.name == "attack"]
    assert len(attacks) == 2  # one level above zero, two replications
    assert len(cells) - len(attacks) == len(TINY.levels) * len(TINY.methods) * len(TINY.seeds)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 99},
        {"level": 11},
        {"C": 3.0},
        {"grid": Grid(rounds=13)},
        {"method": Method("svm", (("a", 1),))},
    ],
    ids=lambda change: next(iter(change)),
)
def test_everything_that_decides_a_number_changes_the_key(change):
    cell = TINY.cells()[-1]
    assert replace(cell, **change).key != cell.key


def test_cells_shared_by_two_suites_have_one_key():
    keys = [
        {cell.key for cell in SUITES[name].cells() if cell.method.name == "floral"} for name in ("moon-rs", "moon-alfa")
    ]
    assert keys[0] == keys[1]


def result_for(cell, rows=3):
    result = CellResult(cell, seconds=1.5, peak_memory=2e6)
    for number in range(rows):
        result.add("accuracy", number / 10, "last", f"config {number}")
    result.traces["config 0", "accuracy"] = np.arange(5, dtype=np.float16)
    return result


def test_what_is_committed_is_read_back(tmp_path):
    cell = TINY.cells()[-1]
    with Store(tmp_path / "store.sqlite") as store:
        store.commit(result_for(cell))
    with Store(tmp_path / "store.sqlite") as store:
        assert store.status([cell.key, "unknown"]) == {cell.key: "done"}
        assert store.rows(cell)[1] == ("config 1", "last", "accuracy", 0.1)
        np.testing.assert_array_equal(store.trace(cell, "accuracy", "config 0"), np.arange(5))
        assert store.trace(cell, "accuracy", "config 1") is None
        assert store.costs([cell.key]) == {cell.key: (1.5, 2e6)}


def test_cells_of_one_batch_are_there_together_or_not_at_all(tmp_path):
    """Half a batch would be computed again as another batch, whose sums round otherwise in their last digits."""
    good, other = TINY.cells()[-2:]
    bad = result_for(other)
    bad.rows.append(("config", "last", "accuracy", None))
    with Store(tmp_path / "store.sqlite") as store:
        with pytest.raises(StoreError, match="cannot be written"):
            store.commit(result_for(good), bad)
        assert store.status([good.key, other.key]) == {}
        store.commit(result_for(good), result_for(other))
        assert store.status([good.key, other.key]) == {good.key: "done", other.key: "done"}


def test_a_file_that_is_no_store_is_named(tmp_path):
    path = tmp_path / "store.sqlite"
    path.write_text("this is not a database, but long enough to be mistaken for one" * 20)
    with pytest.raises(StoreError, match=r"store\.sqlite"):
        Store(path)
    with pytest.raises(StoreError, match="nothing was run"):
        Store(tmp_path / "none.sqlite", read_only=True)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("version", [0, 1, RESULTS_VERSION + 1])
def test_a_store_of_another_version_is_never_mixed_with_new_rows(tmp_path, version, read_only):
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        store.commit(result_for(TINY.cells()[-1]))
    before = sqlite3.connect(path)
    before.execute(f"PRAGMA user_version = {version}")
    before.commit()
    before.close()
    with pytest.raises(
        StoreError, match=rf"results of version {version or 1}, this is version {RESULTS_VERSION}.*--out"
    ):
        Store(path, read_only=read_only)


def test_a_note_tells_cells_of_one_commit_from_those_of_another(tmp_path):
    """Two suites share their clean cells; the second is run later, elsewhere, and of the first a part is missing."""
    first = replace(
        replace(TINY, seeds=TINY.seeds[:1], data=TINY.data[:1], levels=(0, 10)), name="first", methods=TINY.methods[-1:]
    )
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
        assert (whole.environment["commit"], whole.cells, whole.command) == ("aaaaaaa", 3, "run first")
        parts = parts_of(store, "second", cells)
        assert {p.environment["commit"]: p.cells for p in parts} == {"aaaaaaa": 3, "bbbbbbb": 2}
        database = sqlite3.connect(tmp_path / "s.sqlite")
        database.execute("DELETE FROM runs")
        database.commit()
        database.close()
        with pytest.raises(ValueError, match="second: no run of the store accounts for a cell"):
            parts_of(store, "second", cells)
