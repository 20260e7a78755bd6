"""The tests pass where there is no data and no network: what needs a file is skipped and says which."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-p", "no:xdist", *arguments],
        cwd=TESTS.parent,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_data_every_marked_test_is_skipped_and_names_its_file(tmp_path):
    rooms = ["tests/attacks", "tests/datasets", "tests/evaluation"]
    # An empty FLORAL_DATA counts as unset, and keeps conftest from looking beside the repository.
    done = run("-m", "data", *rooms, FLORAL_DATA="", XDG_CACHE_HOME=str(tmp_path), LOCALAPPDATA=str(tmp_path))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    skipped = int(re.search(r"(\d+) skipped", done.stdout)[1])
    assert skipped >= 12
    assert not re.search(r"\d+ (passed|failed|error)", done.stdout)
    for name in ("mnist.npz", "imdb.jsonl.xz", "moon_reference_seed42.npz"):
        assert f"{name} is neither in FLORAL_DATA nor in the cache" in done.stdout
    assert not any(tmp_path.rglob("*.npz")), "nothing was downloaded"


@pytest.mark.parametrize("marker", ["@pytest.mark.data", "@pytest.mark.data()"])
def test_a_marker_that_names_no_file_is_refused(tmp_path, marker):
    (tmp_path / "test_forgot.py").write_text(f"import pytest\n\n{marker}\ndef test_it():\n    pass\n")
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text(encoding="utf-8"))
    done = run("-c", str(TESTS.parent / "pyproject.toml"), "--rootdir", str(tmp_path), str(tmp_path))
    assert done.returncode != 0
    assert "name the files it needs" in done.stdout + done.stderr


def test_a_test_without_the_marker_sees_no_data():
    assert "FLORAL_DATA" not in os.environ
