"""What stands under docs/results was made by a command at a commit, and its sentences are counted from its numbers."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from floral_bench.reporting import summary
from floral_bench.reporting.environment import DIRTY, environment, publishable
from floral_bench.reporting.making import Making, note_of
from floral_bench.spec import RESULTS_VERSION

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
pytestmark = pytest.mark.skipif(not RESULTS.is_dir(), reason="docs are not part of the source archive")
NOTES = {path.parent.name: json.loads(path.read_text("utf-8")) for path in sorted(RESULTS.glob("*/run.json"))}
NOTES |= json.loads((RESULTS / "suites.json").read_text("utf-8")) if RESULTS.is_dir() else {}


OF_A_MACHINE = {"commit", "python", "numpy", "scikit-learn", "system", "results_version"}


@pytest.mark.parametrize("name", NOTES)
def test_a_note_says_how_the_numbers_were_made(name):
    note = NOTES[name]
    assert note["command"]
    assert note["started"]
    publishable(note["environment"])
    for where in [note["environment"], *note.get("parts", [])]:
        assert all(where.get(name) for name in OF_A_MACHINE), "command, commit, versions, machine"
        publishable(where)
        assert where["results_version"] == str(RESULTS_VERSION), "run it again: the numbers changed"
    times = [note["seconds"], *(part["seconds"] for part in note.get("parts", []))]
    assert all(isinstance(seconds, int | float) and seconds > 0 for seconds in times)


def test_a_note_is_made_of_runs_at_one_commit():
    where = {"commit": "abc1234", "system": "here", "date": "2026-01-01"}
    one, again = Making("first", where, "2026-01-02", 3, 1.5), Making("second", where, "2026-01-01", 2, 2.0)
    assert note_of([one]) == {
        "command": "first",
        "environment": where,
        "started": "2026-01-02",
        "seconds": 1.5,
        "cells": 3,
    }
    both = note_of([one, again, again])
    assert (both["command"], both["started"], both["cells"]) == ("first; second", "2026-01-01", 7)
    with pytest.raises(ValueError, match="no run is known"):
        note_of([])
    other = Making("third", where | {"commit": "def5678"}, "2026-01-01", 2, 1.0)
    with pytest.raises(ValueError, match=r"several commits \(abc1234, def5678\)"):
        note_of([one, other])
    dirty = Making("first", {"commit": f"abc1234{DIRTY}"}, "2026-01-01", 1, 1.0)
    with pytest.raises(ValueError, match="commit before publishing"):
        note_of([dirty])
    assert note_of([one, other, dirty], trial=True)["seconds"] == 3.5


def test_every_folder_of_results_has_a_note():
    """run.json, an entry of suites.json, a date and a commit in its files of rows, or on its page."""
    for folder in sorted(path for path in RESULTS.iterdir() if path.is_dir() and any(path.rglob("*"))):
        if folder.name not in NOTES:
            kept = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
            page = folder.with_suffix(".md").read_text(encoding="utf-8") if folder.with_suffix(".md").exists() else ""
            assert kept or (re.search(r"20\d\d-\d\d-\d\d", page) and "commit" in page.lower()), folder.name
            notes = [part for note in kept for part in ([note] if "commit" in note else note.values())]
            assert all(note["commit"] and note["date"] for note in notes), folder.name


def test_counts_are_those_of_the_rows():
    expected = summary.to_markdown(summary.read_suites(RESULTS))
    page = (RESULTS / "paper-suites.md").read_text(encoding="utf-8")
    assert expected in page, "python benchmarks/run_suites.py summary"


def rows(**values):
    """An accuracy table of one cell: method -> (last, paper's last)."""
    start = {"data": "moon", "attack": "farthest", "level": 10, "C": 10, "gamma": 1, "statistic": "last"}
    start |= {"per_setting": True, "compared": ""}
    return pd.DataFrame([start | {"method": m, "mean": ours, "paper": paper} for m, (ours, paper) in values.items()])


def test_a_lead_is_counted_to_three_digits_and_ties_count():
    table = rows(floral=(0.9001, 0.90), svm=(0.9004, 0.91), curie=(0.85, 0.8))
    assert summary.leads(table, "last") == summary.Leads(1, 1)
    assert summary.leads(table, "last", "paper") == summary.Leads(0, 1)
    assert summary.leads(table, "best") == summary.Leads(0, 0)
    assert summary.leads(rows(floral=(0.9, None)), "last") == summary.Leads(0, 0), "alone, nobody leads"
    behind = rows(floral=(0.89, 0.9), svm=(0.9, 0.9))
    assert summary.leads(behind, "last") == summary.Leads(0, 1)
    assert summary.differences(behind, "floral", "svm", "last") == pytest.approx([-0.01])


def test_the_published_counts_have_everyone_and_no_cell_twice():
    """26 cells: Moon's five levels, two more kernels, three attacks; MNIST's two attacks, three levels each."""
    suites = summary.read_suites(RESULTS)
    assert set(summary.OTHER_LABELS) <= {suite.name for suite in suites}
    table = summary.once([suite for suite in suites if suite.name not in summary.OTHER_LABELS])
    assert summary.leads(table, "last").cells == summary.leads(table, "last", "paper").cells == 5 + 6 + 9 + 6
    shown = summary.against_the_svm(table)
    methods = {name for names in summary.TOLD.values() for name in names}
    assert dict(zip(shown.method, shown.cells, strict=True)) == dict.fromkeys(methods, 26) | {
        "FloralClassifier()": 5 + 9 + 6
    }


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
    for action in ("run", "publish"):
        done = subprocess.run([*script, action, *given], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    for name, page in (("moon-quick", {"accuracy.md"}), ("sensitivity-quick", set())):
        kept = {path.name for path in (tmp_path / "docs" / name).iterdir() if path.suffix != ".png"}
        assert kept == {"rows.csv.gz"} | page
        note = json.loads((tmp_path / "docs" / "suites.json").read_text())[name]
        assert {"command", "environment", "started", "seconds", "seeds"} <= set(note)
    assert "How often FLORAL's game leads" in (tmp_path / "docs" / "paper-suites.md").read_text()
