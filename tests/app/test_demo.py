"""``floral demo`` as a user runs it."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from floral_learn.app import demo, make_app

PAGE = Path(__file__).resolve().parents[2] / "docs" / "getting-started.md"


def floral(*arguments, **kwargs):
    code = "from floral_learn.app import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, **kwargs
    )


def floral_here(*arguments):
    """The command in this process, which has imported everything already."""
    done = CliRunner().invoke(make_app(), arguments, env={"COLUMNS": "80"})
    return SimpleNamespace(returncode=done.exit_code, stdout=done.stdout, stderr=done.stderr)


def means_of(text):
    """The rows of a table: name -> means, whatever stands between the cells."""
    cells = r"[^0-9]*(0\.\d{3})" * len(demo.DATA)
    return {
        name: [float(mean) for mean in re.search(re.escape(name.strip()) + cells, text).groups()] for name in demo.ROWS
    }


def check(done, folder):
    assert done.returncode == 0, done.stderr
    assert max(len(line) for line in done.stdout.splitlines() if not line.startswith("Picture:")) <= 80
    means = means_of(done.stdout)
    for column in range(len(demo.DATA)):
        given, asked, clean = (means[row][column] for row in (demo.GIVEN, demo.ASKED[-1], demo.CLEAN))
        assert given < asked <= clean + 0.01, "fifty answers bring back much of what the flips took"
    assert means[demo.ASKED[0]][0] > means[demo.DOUBTED][0] + 0.03, "ten asked rows tell more than fifty doubtful ones"
    assert (folder / "moon.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert [p.name for p in folder.iterdir()] == ["moon.png"]
    return means


def test_demo_prints_a_table_and_draws_a_picture(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "SPLITS", (1, 2))  # a mean, as the table has
    monkeypatch.setattr(demo, "DATA", ("moon",))
    check(floral_here("demo", "--out", str(tmp_path / "moon.png")), tmp_path)


@pytest.mark.slow
def test_the_readme_has_the_table_of_the_whole_demo(tmp_path):
    means = check(floral("demo", "--out", str(tmp_path / "moon.png")), tmp_path)
    there = means_of(PAGE.read_text(encoding="utf-8"))
    for name in demo.ROWS:
        np.testing.assert_allclose(there[name], means[name], atol=3e-3, err_msg=name)


def test_a_folder_that_is_not_there_is_one_line_and_exit_code_2(tmp_path):
    done = floral("demo", "--out", str(tmp_path / "no" / "moon.png"))
    assert done.returncode == 2
    assert done.stderr.strip().splitlines() == [f"floral demo: the folder {tmp_path / 'no'} does not exist"]


def test_help_lists_the_commands():
    done = floral("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout
