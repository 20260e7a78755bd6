"""``floral bench`` as a user types it."""

import os
import re
import subprocess
import sys
import warnings
from contextlib import chdir
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from floral_bench.adapt_suite import adapt
from floral_bench.cli import bench, report
from floral_bench.suites import SUITES
from floral_learn.app import make_app

FAST = ("--methods", "svm-libsvm,floral-fixed", "--reps", "1", "--levels", "0,10")


def floral(*arguments, cwd):
    """The command in this process, which has imported everything already."""
    words = [str(word) for word in arguments]
    with chdir(cwd), warnings.catch_warnings(), patch.object(sys, "argv", ["floral", *words]):
        warnings.simplefilter("default")
        done = CliRunner().invoke(make_app(), words, env={"COLUMNS": "120"})
    return SimpleNamespace(returncode=done.exit_code, stdout=done.stdout, stderr=done.stderr)


def floral_alone(*arguments, cwd, timeout=120):
    """The command in a process of its own, as a user has it."""
    command = [sys.executable, "-c", "from floral_learn.app import main; main()", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=timeout, check=False
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    return folder, floral_alone("bench", "moon", *FAST, cwd=folder)


def test_a_run_prints_the_table_and_leaves_files(finished):
    folder, done = finished
    assert done.returncode == 0, done.stderr
    for text in (
        "floral (budget 2 %)",
        "svm (libsvm)",
        "10 %",
        "time: ",
        "5 cells, 5 computed",
        "floral report runs/moon",
    ):
        assert text in done.stdout
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    left = {f"runs/moon/{name}" for name in ("accuracy.md", "rows.csv", "run.json", "security.png")}
    assert {"runs/store.sqlite", *left} <= names


def test_progress_is_plain_lines_where_there_is_no_terminal(finished):
    _, done = finished
    assert "\x1b" not in done.stdout + done.stderr
    assert re.search(r"\d\d:\d\d:\d\d 2/2 farthest .*, about .* left", done.stderr)


def test_the_same_command_again_computes_nothing(finished):
    folder, _ = finished
    again = floral("bench", "moon", *FAST, cwd=folder)
    assert "5 of 5 cells were known, 0 computed" in again.stdout


def test_the_list_has_every_suite_and_the_time_of_the_last_run(finished):
    folder, _ = finished
    shown = floral("bench", "--list", cwd=folder).stdout
    for name in [*SUITES, "questions", "real", "crowd"]:
        assert re.search(rf"^ *{name} ", shown, re.MULTILINE), name
    assert re.search(r"^ *moon .* s *$", shown, re.MULTILINE)
    assert not list(folder.glob("*.sqlite"))


def test_the_report_of_a_run_is_one_page(finished):
    folder, _ = finished
    done = floral("report", "runs/moon", cwd=folder)
    assert done.returncode == 0, done.stderr
    page = (folder / "runs/moon/report.html").read_text(encoding="utf-8")
    assert "floral bench moon --methods" in page
    assert "numpy" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bench", "mon"], "unknown suite 'mon'; known: moon,"),
        (["bench"], "give the name of a suite"),
        (["bench", "moon", "--methods", "svm,nope"], "--methods 'nope' is not in suite 'moon'; it has: floral"),
        (["bench", "moon", "--levels", "ten"], "--levels 'ten' must be percentages"),
        (["bench", "moon", "--levels", "60"], "--levels 60 is not a percentage"),
        (["bench", "moon", "--reps", "0"], "--reps 0 must be at least 1"),
        (["bench", "moon", "--jobs", "0"], "--jobs 0 must be a number of processes"),
        (["bench", "mnist", "--authors-labels"], "--authors-labels exist for Moon"),
        (
            ["bench", "moon", "questions", "--authors-labels"],
            "--authors-labels exist for the paper's Moon suites, not for questions",
        ),
        (["bench", "moon", "mon"], "unknown suite 'mon'"),
        (["bench", "moon", "--method", "svm", "--method", "nope"], "--methods 'nope' is not in suite 'moon'"),
        (["bench", "--data", "none.csv", "--label", "y"], "cannot read none.csv"),
        (["bench", "--data", "few.csv", "--label", "y"], "few.csv"),
        (["bench", "--data", "good.csv"], "--data needs --label"),
        (["bench", "--data", "good.csv", "--label", "z"], "has no column 'z'; its columns are"),
        (["bench", "--data", "good.csv", "--label", "y", "--attack", "hope"], "--attack 'hope' is unknown"),
        (["report", "nowhere"], "nowhere is not the folder of a run"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_input_is_one_line_exit_2_and_no_file(tmp_path, monkeypatch, arguments, message):
    (tmp_path / "good.csv").write_text("a,y\n" + "".join(f"{i % 7},{'ab'[i % 2]}\n" for i in range(40)))
    (tmp_path / "few.csv").write_text("a,y\n1,x\n2,z\n")
    app = typer.Typer()
    bench.register(app)
    report.register(app)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1
    assert message in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"good.csv", "few.csv"}


def test_a_users_file_is_compared_under_attack(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(90, 2)), []
    lines = ["age,city,y"]
    for row in x:
        y.append("yes" if row.sum() > 0 else "no")
        lines.append(f"{row[0]:.3f},{'north' if row[1] > 0 else 'south'},{y[-1]}")
    (tmp_path / "mine.csv").write_text("\n".join(lines) + "\n")
    methods = ("--methods", "floral-fixed,svm-libsvm,curie-libsvm", "--levels", "0,10", "--reps", "2")
    done = floral("bench", "--data", "mine.csv", "--label", "y", "--attack", "random", *methods, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 number column standardised: age; 1 category column as 2 indicators: city" in " ".join(done.stdout.split())
    assert (tmp_path / "runs/mine/accuracy.md").read_text().count("| clean | 10 % |") == 1
    # An edited file is another data set: nothing of the old one is reused.
    (tmp_path / "mine.csv").write_text("\n".join(lines[:-1]) + "\n")
    again = floral("bench", "--data", "mine.csv", "--label", "y", "--attack", "random", *methods, cwd=tmp_path)
    assert "were known" not in again.stdout


def test_what_is_not_installed_is_skipped_with_a_line(tmp_path, monkeypatch):
    from floral_bench import adapt_suite

    missing = ("torch", "cleanlab", "transformers")
    found = adapt_suite.find_spec
    monkeypatch.setattr(adapt_suite, "find_spec", lambda name: None if name in missing else found(name))
    few = ("--methods", "svc-default,nn,nn-pgd", "--levels", "0")
    done = floral("bench", "moon", "--quick", *few, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    assert "skipped, torch is missing" in words
    assert "nn, nn-pgd" in words
    assert floral("report", "runs/moon-quick", cwd=tmp_path).returncode == 0
    texts = floral("bench", "imdb", "--quick", cwd=tmp_path)  # nothing is left of it
    assert texts.returncode == 0
    assert "skipped, torch is missing" in texts.stdout


@pytest.mark.parametrize("name", list(SUITES))
def test_quick_makes_every_suite_small(name):
    full, quick = SUITES[name], adapt(SUITES[name], quick=True)
    assert quick.name == f"{name}-quick"
    assert len(quick.cells()) <= len(full.cells())
    assert len(quick.seeds) <= 2
    assert max(quick.levels) <= 10
    assert {method.title for method in quick.methods} == {method.title for method in full.methods}
    if full.grid:
        assert quick.grid.rounds <= 100


def test_reference_labels_are_the_authors_one_replication():
    suite = adapt(SUITES["moon"], reference=True)
    attacks = [cell for cell in suite.cells() if cell.method.name == "attack"]
    assert [cell.level for cell in attacks] == [5, 10, 15, 20, 25]  # one file, whatever the number of seeds
    assert {dict(data.params)["seed"] for data in suite.data} == {1}
    assert suite.seeds == (1, 2, 3, 4, 5)


def test_failed_cells_are_named_and_the_command_ends_with_an_error(tmp_path, monkeypatch):
    from floral_bench import runner

    real = runner.run_job

    def broken(job, labels, device=None):
        results = real(job, labels, device)
        for result in results:
            if result.cell.method.name == "svm-libsvm" and result.cell.level == 10:
                result.error, result.rows = "ValueError: broken on purpose", []
        return results

    monkeypatch.setattr(runner, "run_job", broken)
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    bench.register(app)
    report.register(app)
    done = CliRunner().invoke(app, ["bench", "moon", *FAST])
    assert done.exit_code == 1
    assert "10 %" in done.stderr
    assert "broken on purpose" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("floral bench: 1 cells failed, named above")
    again = CliRunner().invoke(app, ["bench", "moon", *FAST])  # nothing is left to do, and it is still not whole
    assert again.exit_code == 1
    assert not list((tmp_path / "runs").glob(".*"))
