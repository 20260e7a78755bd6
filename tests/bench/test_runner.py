"""A run does only what is missing, and loses nothing that was finished."""

import contextlib
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import BROKEN, TINY

from floral_bench.runner import run_suite
from floral_bench.store import Store

HERE = Path(__file__).parent
WORKER = """
import sys
sys.path.insert(0, {here!r})
from dataclasses import replace
from tiny import TINY
from floral_bench.runner import run_suite
from floral_bench.store import Store
import floral_learn.floral.classifier, floral_learn.attacks, sklearn.svm
with Store(sys.argv[1]) as store:
    print("ready", flush=True)
    run_suite(TINY, store, jobs=int(sys.argv[2]))
"""


def finished_rows(path):
    """key -> its rows, for every finished cell; straight from the file."""
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        keys = [key for (key,) in database.execute("SELECT key FROM cells WHERE status = 'done'")]
        rows = {key: [] for key in keys}
        for key, *row in database.execute("SELECT key, config, statistic, metric, value FROM results ORDER BY rowid"):
            rows[key].append(tuple(row))  # a row without its cell is a KeyError
    database.close()
    return rows


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The uninterrupted run."""
    path = tmp_path_factory.mktemp("whole") / "store.sqlite"
    with Store(path) as store:
        report = run_suite(TINY, store)
    assert report.failed == 0
    return finished_rows(path)


def test_a_second_run_computes_nothing(tmp_path, whole):
    with Store(tmp_path / "s.sqlite") as store:
        first = run_suite(TINY, store)
        again = run_suite(TINY, store)
    assert (first.reused, first.computed) == (0, first.cells)
    assert (again.reused, again.computed) == (first.cells, 0)
    assert finished_rows(tmp_path / "s.sqlite") == whole  # and the same command gives the same numbers


def test_several_processes_give_the_same_rows(tmp_path, whole):
    with Store(tmp_path / "s.sqlite") as store:
        run_suite(TINY, store, jobs=2)
    assert finished_rows(tmp_path / "s.sqlite") == whole


def test_a_failing_cell_is_a_row_and_is_retried_on_demand(tmp_path):
    suite = replace(TINY, methods=(TINY.methods[-1], BROKEN))
    with Store(tmp_path / "s.sqlite") as store:
        first = run_suite(suite, store)
        again = run_suite(suite, store)
        retried = run_suite(suite, store, retry_errors=True)
        message = store.errors(cell.key for cell in suite.cells())[0][1]
    assert first.failed == 4
    assert first.computed > 0
    assert (again.failed, again.computed) == (0, 0)
    assert (retried.failed, retried.computed) == (4, 0)
    assert "no_such_parameter" in message


def test_a_failing_attack_fails_its_cells_and_nothing_else(tmp_path):
    from floral_bench.spec import Attack, params

    bad = Attack("farthest", params(no_such_parameter=1))
    suite = replace(TINY, attacks=(bad,), methods=TINY.methods[-1:])
    with Store(tmp_path / "s.sqlite") as store:
        report = run_suite(suite, store)
        messages = [text for _, text in store.errors(cell.key for cell in suite.cells())]
    assert report.computed == 2  # the clean level
    assert sum("its attack failed" in text for text in messages) == 2


def start(path, jobs=1, **options):
    command = [sys.executable, "-c", WORKER.format(here=str(HERE)), str(path), str(jobs)]
    # A suite that runs in the background ignores SIGINT, and its children would too.
    options.setdefault("preexec_fn", lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.parametrize(
    ("jobs", "kills"), [(1, 2), pytest.param(1, 20, marks=pytest.mark.slow), pytest.param(2, 5, marks=pytest.mark.slow)]
)
def test_kill_9_at_random_moments_loses_no_finished_cell(tmp_path, whole, jobs, kills):
    path = tmp_path / "store.sqlite"
    rng = random.Random(jobs)
    before: dict = {}
    interrupted = 0
    for _ in range(kills):
        process = start(path, jobs, start_new_session=True)
        assert process.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0, 0.35 if jobs == 1 else 1.5))
        interrupted += process.poll() is None
        with contextlib.suppress(ProcessLookupError):  # it may just have ended by itself
            os.killpg(process.pid, signal.SIGKILL)  # our own group alone: the run and its workers
        process.communicate()
        now = finished_rows(path)
        assert before.items() <= now.items()  # all that was finished is there, unchanged and complete
        assert all(now[key] == whole[key] for key in now)
        before = now
    assert interrupted > 0
    with Store(path) as store:
        report = run_suite(TINY, store)
    assert (report.reused, report.computed) == (len(before), len(whole) - len(before))
    assert finished_rows(path) == whole


def test_a_full_disk_is_one_message_and_keeps_what_is_finished(tmp_path, whole):
    path = tmp_path / "store.sqlite"

    def small_disk():
        resource.setrlimit(resource.RLIMIT_FSIZE, (140_000, 140_000))  # no file may grow beyond

    process = start(path, preexec_fn=small_disk)
    _, err = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "cannot be written" in err
    assert "what was finished before is kept" in err
    now = finished_rows(path)
    assert 0 < len(now) < len(whole)
    with Store(path) as store:
        report = run_suite(TINY, store)
    assert report.reused == len(now)
    assert finished_rows(path) == whole
