"""The tests pass where there is no data and no network: what needs a file is skipped and says which."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-c", str(TESTS.parent / "pyproject.toml"), *arguments],
        cwd=TESTS.parent,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_data_every_marked_test_is_skipped_and_names_its_file(tmp_path):
    marked = [str(path) for path in TESTS.rglob("test_*.py") if "mark.data(" in path.read_text(encoding="utf-8")]
    # An empty FLORAL_DATA counts as unset, and keeps conftest from looking beside the repository.
    done = run("-p", "no:xdist", "-m", "data", *marked, FLORAL_DATA="", XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    skipped = int(re.search(r"(\d+) skipped", done.stdout)[1])
    assert skipped >= 12
    assert not re.search(r"\d+ (passed|failed|error)", done.stdout)
    for name in ("mnist.npz", "imdb.jsonl.xz", "moon_reference_seed42.npz"):
        assert f"{name} is neither in FLORAL_DATA nor in the cache" in done.stdout
    assert not any(tmp_path.rglob("*.npz")), "nothing was downloaded"


@pytest.mark.parametrize(("beside", "workers"), [(True, "-pno:xdist"), (False, "-n1")], ids=["beside", "FLORAL_DATA"])
def test_only_marked_tests_see_data_and_nobody_downloads(tmp_path, beside, workers):
    if workers == "-n1":
        pytest.importorskip("xdist")
    tests, data = tmp_path / "repository" / "tests", tmp_path / ("shared" if beside else "other") / "data"
    for file in (tests / "test_looks.py", data / "lies.bin", tmp_path / "cache" / "floral-learn" / "cached.bin"):
        file.parent.mkdir(parents=True)
        file.write_text("data")
    shutil.copyfile(TESTS / "conftest.py", tests / "conftest.py")
    shutil.copyfile(TESTS / "looks_for_data.py", tests / "test_looks.py")
    place = {} if beside else {"FLORAL_DATA": str(data)}
    few = ["-k", "not process"] if workers == "-n1" else []  # a process costs two seconds, and one of these will do
    done = run(workers, *few, str(tests), XDG_CACHE_HOME=str(tmp_path / "cache"), **place)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert f"{2 if few else 3} passed" in done.stdout
    assert "skipped" not in done.stdout
    assert {path.name for path in tmp_path.rglob("*.*")} == {"test_looks.py", "conftest.py", "lies.bin", "cached.bin"}
