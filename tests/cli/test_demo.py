"""``floral demo`` as a user runs it."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from floral_learn.cli import demo, make_app

README = Path(__file__).resolve().parents[2] / "README.md"


def floral(*arguments, **kwargs):
    code = "from floral_learn.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, **kwargs
    )


def floral_here(*arguments):
    """The command in this process, which has imported everything already."""
    done = CliRunner().invoke(make_app(), arguments, env={"COLUMNS": "120"})
    return SimpleNamespace(returncode=done.exit_code, stdout=done.stdout, stderr=done.stderr)


@pytest.mark.parametrize("run", [floral_here, pytest.param(floral, marks=pytest.mark.slow)], ids=["here", "alone"])
def test_demo_prints_a_table_and_draws_a_picture(tmp_path, run):
    done = run("demo", "--out", str(tmp_path / "moon.png"))
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    for word in (*demo.ROWS, "10% flipped", "C=1, gamma=1 in every row"):
        assert word in done.stdout
    assert demo.ROWS == ("SVC", "FLORAL, budget=0.05", "FLORAL, budget=0.1", "FLORAL, budget=0.2")
    means = [float(cell.split("±")[0]) for cell in re.findall(r"0\.\d{3} ± 0\.\d{3}", done.stdout)]
    plain, unset, told, twice = (means[i : i + 3] for i in (0, 3, 6, 9))
    assert all(abs(a - b) < 0.02 for a, b in zip(plain, unset)), "without a guess FLORAL is level with the SVC"
    assert twice[1] > plain[1] + 0.02, "twice the level helps"
    assert told[1] > plain[1], "the level helps a little"
    lines = [line for line in README.read_text(encoding="utf-8").splitlines() if " ± 0." in line]
    there = [float(mean) for line in lines for mean in re.findall(r"(0\.\d{3})\*{0,2} ± ", line)]
    np.testing.assert_allclose(there, means, atol=3e-3, err_msg="README.md has the table that the demo prints")
    assert (tmp_path / "moon.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert [p.name for p in tmp_path.iterdir()] == ["moon.png"]


def test_every_row_of_the_demo_has_the_same_regularisation_and_kernel():
    models = demo._models().values()
    assert {(model.C, model.kernel, model.gamma) for model in models} == {(1.0, "rbf", 1.0)}
    assert [type(model).__name__ for model in models] == ["SVC", *["FloralClassifier"] * 3]


def test_a_folder_that_is_not_there_is_one_line_and_exit_code_2(tmp_path):
    done = floral("demo", "--out", str(tmp_path / "no" / "moon.png"))
    assert done.returncode == 2
    assert done.stderr.strip().splitlines() == [f"floral demo: the folder {tmp_path / 'no'} does not exist"]


def test_help_lists_the_commands():
    done = floral("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout
