"""``floral demo`` as a user runs it."""

import subprocess
import sys


def floral(*arguments, **kwargs):
    code = "from floral_learn.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, **kwargs
    )


def test_demo_prints_a_table_and_draws_a_picture(tmp_path):
    done = floral("demo", "--out", str(tmp_path / "moon.png"))
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    for word in ("SVC", "FLORAL", "10% flipped", "0.9"):
        assert word in done.stdout
    assert (tmp_path / "moon.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert [p.name for p in tmp_path.iterdir()] == ["moon.png"]


def test_a_folder_that_is_not_there_is_one_line_and_exit_code_2(tmp_path):
    done = floral("demo", "--out", str(tmp_path / "no" / "moon.png"))
    assert done.returncode == 2
    assert done.stderr.strip().splitlines() == [f"floral demo: the folder {tmp_path / 'no'} does not exist"]


def test_help_lists_the_commands():
    done = floral("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout
