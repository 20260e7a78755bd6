"""A small part of benchmarks/fuzz.py with fixed seeds: the attacks that once worked, and some of each kind."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
SOURCE = Path(__file__).resolve().parents[1] / "benchmarks" / "fuzz.py"
pytestmark = pytest.mark.skipif(not SOURCE.is_file(), reason="benchmarks are not part of the source archive")
SCALES = {"tables": 0.08, "models": 0.01, "runs": 0.05, "formulas": 1.0, "disk": 1.0}
SCALES |= {"files": 0.01, "stores": 0.03, "sets": 0.03, "copies": 0.05, "numbers": 0.05, "requests": 0.05}
SCALES |= {"reviews": 0.01, "checkpoints": 0.01, "label_studio": 0.03, "json_lines": 0.03, "packed_files": 0.03}
SCALES |= {"workbooks": 0.03, "frames": 0.03, "certificates": 0.03}


@pytest.fixture(scope="module")
def fuzz():
    spec = importlib.util.spec_from_file_location("fuzz", SOURCE)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(SOURCE.parent))
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(SOURCE.parent))


@pytest.mark.parametrize("part", SCALES)
def test_nothing_gets_through(fuzz, part):
    found = fuzz.run([part], scale=SCALES[part], seed=1)
    assert found
    for title, count in found.items():
        assert count.tried >= 5, title
        assert not count.failures, count.failures[:5]


@pytest.mark.parametrize("tables", [100, pytest.param(500, marks=pytest.mark.slow)])
def test_in_tables_with_strange_names_the_label_is_never_a_feature(fuzz, monkeypatch, tables):
    monkeypatch.setattr(fuzz, "_trained_leak", lambda *_: "")  # the command itself: the next test
    (count,) = fuzz.run(["names"], scale=tables / 500, seed=2).values()
    assert count.tried == tables
    assert count.done > 0.7 * tables
    assert not count.failures, count.failures[:5]


def test_floral_train_never_learns_the_label(fuzz):
    (count,) = fuzz.run(["names"], scale=0.1, seed=3).values()
    assert count.done > 30
    assert not count.failures, count.failures[:5]


def test_a_leak_would_be_seen(fuzz, monkeypatch):
    """The check can fail: a reader that leaves the label in place is caught."""
    real = fuzz.read_table

    def leaky(path, *, label):
        table = real(path)
        return type(table)(**{**vars(table), "labels": real(path, label=label).labels})

    monkeypatch.setattr(fuzz, "read_table", leaky)
    monkeypatch.setattr(fuzz, "_trained_leak", lambda *_: "")
    (count,) = fuzz.run(["names"], scale=0.05, seed=4).values()
    assert len(count.failures) > 10
