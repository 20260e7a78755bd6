"""What stands under docs/results was made by a command at a commit, and its sentences are counted from its numbers."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from floral_learn.evaluation.reporting import summary
from floral_learn.evaluation.reporting.environment import DIRTY, environment, publishable
from floral_learn.evaluation.spec import RESULTS_VERSION

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
pytestmark = pytest.mark.skipif(not RESULTS.is_dir(), reason="docs are not part of the source archive")
NOTES = sorted(RESULTS.glob("*/run.json"))


@pytest.mark.parametrize("path", NOTES, ids=lambda path: path.parent.name)
def test_a_note_says_how_the_numbers_were_made(path):
    note = json.loads(path.read_text(encoding="utf-8"))
    assert note["command"]
    publishable(note["environment"])
    assert {"python", "numpy", "scikit-learn", "system"} <= set(note["environment"])
    if "suite" in note:  # the arena has a note of its own
        assert note["seconds"] > 0
        assert note["environment"]["results_version"] == str(RESULTS_VERSION), "run it again: the numbers changed"
        assert note["started"]


def test_every_folder_of_results_has_a_note():
    folders = {path for path in RESULTS.iterdir() if path.is_dir() and any(path.rglob("*.csv*"))}
    # the page of the attack that knows FLORAL names two commits itself; its next run writes a note
    assert {path.name for path in folders} - {path.parent.name for path in NOTES} <= {"adaptive"}


@pytest.mark.parametrize("path", NOTES, ids=lambda path: path.parent.name)
def test_a_note_counts_the_cells_of_each_of_its_commits(path):
    note = json.loads(path.read_text(encoding="utf-8"))
    parts = note.get("parts", [])
    assert len(parts) != 1, "one part is the whole: its environment says it all"
    assert all(
        part["commit"] and part["cells"] > 0 and part["results_version"] == str(RESULTS_VERSION) for part in parts
    )


def test_sentences_and_counts_are_those_of_the_tables():
    expected = summary.to_markdown(summary.read_suites(RESULTS))
    assert (RESULTS / "summary.md").read_text(encoding="utf-8") == expected, "python benchmarks/run_suites.py summary"


def rows(**values):
    """An accuracy table of one cell: method -> (last, paper's last)."""
    start = {"attack": "farthest", "level": 10, "C": 10, "gamma": 1, "statistic": "last"}
    return pd.DataFrame([start | {"method": m, "mean": ours, "paper": paper} for m, (ours, paper) in values.items()])


def test_a_lead_is_counted_to_three_digits_and_ties_count():
    table = rows(floral=(0.9001, 0.90), svm=(0.9004, 0.91), curie=(0.85, 0.8))
    assert summary.leads(table, "last") == summary.Leads(1, 1)
    assert summary.leads(table, "last", "paper") == summary.Leads(0, 1)
    assert summary.leads(table, "best") == summary.Leads(0, 0)
    assert summary.leads(rows(floral=(0.9, None)), "last") == summary.Leads(0, 0), "alone, nobody leads"
    behind = rows(floral=(0.89, 0.9), svm=(0.9, 0.9))
    assert summary.leads(behind, "last") == summary.Leads(0, 1)
    assert summary.differences(behind, "floral", "last", "svm") == pytest.approx([-0.01])
    assert summary.winners(behind, "last") == [("10 %", "svm 0.900", "floral 0.890")]


def test_suites_of_an_earlier_version_are_named_and_counted_apart(tmp_path):
    methods = dict.fromkeys(("svm", "nn", "curie", "k-lid"), (0.8, 0.8))
    for name, floral in (("new", 0.9), ("old", 0.7), ("unnoted", 0.7)):
        (tmp_path / name).mkdir()
        rows(floral=(floral, 0.9), **methods).to_csv(tmp_path / name / "accuracy.csv", index=False)
    for name, version in (("new", RESULTS_VERSION), ("old", RESULTS_VERSION - 1)):
        (tmp_path / name / "run.json").write_text(json.dumps({"environment": {"results_version": str(version)}}))
    page = summary.to_markdown(summary.read_suites(tmp_path))
    assert "first among the paper's methods in 1 of 3 poisoned cells" in page
    assert "earlier version, not yet run again: old, unnoted. Without them FLORAL is first in: last 1 of 1." in page
    assert "### new\n" in page
    assert "### unnoted (earlier version)\n" in page


def test_the_command_in_a_note_names_no_folder_of_the_machine(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    run_suites = importlib.import_module("run_suites")
    for out in (["--out", "/somewhere/else"], ["--out=/somewhere/else"], []):
        given = ["run", "--jobs", "2", *out, "--suites", "moon"]
        assert run_suites.command(given) == "python benchmarks/run_suites.py run --jobs 2 --suites moon"


def test_a_tree_with_local_changes_is_not_published():
    publishable({"commit": "abc1234"})
    with pytest.raises(ValueError, match="differs from commit abc1234: commit before publishing"):
        publishable({"commit": f"abc1234{DIRTY}"})
    with pytest.raises(ValueError, match="has no commit"):
        publishable({})
    assert environment()["results_version"] == str(RESULTS_VERSION)


@pytest.mark.slow
def test_a_quick_run_is_published_whole(tmp_path):
    assert importlib.util.find_spec("matplotlib")
    script = [sys.executable, str(ROOT / "benchmarks" / "run_suites.py")]
    given = [
        "--quick",
        "--suites",
        "moon,sensitivity",
        "--out",
        str(tmp_path / "runs"),
        "--docs",
        str(tmp_path / "docs"),
    ]
    steps = (["run", "--families", "attack"], ["run", "--families", "games"], ["run"], ["publish"])
    for words in steps:
        done = subprocess.run([*script, *words, *given], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    for name, file in (("moon-quick", "accuracy.md"), ("sensitivity-quick", "per_budget.md")):
        assert (tmp_path / "docs" / name / file).is_file()
        note = json.loads((tmp_path / "docs" / name / "run.json").read_text())
        assert {"command", "environment", "started", "seconds", "seeds", "suite"} <= set(note)
        assert note["command"].count("run_suites.py run --families") == 2, "every command that it took"
    assert "How often FLORAL leads" in (tmp_path / "docs" / "summary.md").read_text()
