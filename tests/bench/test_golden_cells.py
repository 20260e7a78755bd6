"""Numbers do not change unnoticed: a few cells of every family against those in the repository."""

import json
from importlib.util import find_spec

import pytest
from golden_cells import (
    CLEANLAB,
    COUNTS,
    FILE,
    compute,
    differences,
    suites,
    write,
)

from floral_bench.cli.bench_data import CONTENDERS, ON_REQUEST, THOROUGH
from floral_bench.contenders import SAFE_VERSION
from floral_bench.crowds.cells import VERSION as OF_CROWDS
from floral_bench.questions.cells import VERSION as OF_QUESTIONS
from floral_bench.spec import RESULTS_VERSION

pytest.importorskip("torch", reason="networks need torch: pip install '.[torch]'")
AGAIN = (
    "if that was meant, raise RESULTS_VERSION in floral_bench/spec.py (or VERSION in questions/cells.py or "
    "crowds/cells.py, for that suite alone) and run python tests/bench/golden_cells.py"
)
# Families of which a cell must be there; texts need IMDB and an encoder (tests/bench/test_imdb.py).
FAMILIES = {"attack", "games", "fits", "networks", "heads", "questions", "crowd"}


@pytest.fixture(scope="module")
def golden():
    return json.loads(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def now(tmp_path_factory):
    return compute(tmp_path_factory.mktemp("golden"))


def test_golden_numbers_are_of_this_version(golden, now):
    assert {name: golden[name]["version"] for name in now} == {name: cell["version"] for name, cell in now.items()}, (
        AGAIN
    )


def test_every_family_has_a_golden_cell_and_its_own_version(golden):
    versions = {}
    for name, cell in golden.items():
        versions.setdefault(name.split(":")[0], set()).add(cell["version"])
    assert set(versions) == FAMILIES
    assert versions["questions"] == {f"{RESULTS_VERSION}.{OF_QUESTIONS}", f"{RESULTS_VERSION}.1"}
    # what other people's aggregators say depends on the problems only
    assert versions["crowd"] == {f"{RESULTS_VERSION}.{OF_CROWDS}", f"{RESULTS_VERSION}.1"}
    assert versions["fits"] == {str(RESULTS_VERSION), f"{RESULTS_VERSION}.{SAFE_VERSION}"}
    assert set().union(*(versions[name] for name in FAMILIES - {"questions", "crowd", "fits"})) == {
        str(RESULTS_VERSION)
    }


def test_every_method_for_a_users_file_has_a_golden_cell(golden, tmp_path):
    played = {cell.method.name for suite in suites(tmp_path) for cell in suite.cells()}
    assert {method.name for method in (*CONTENDERS, *THOROUGH, *ON_REQUEST)} <= played
    assert any(CLEANLAB in name for name in golden), "computed where cleanlab is installed"


def test_numbers_are_as_they_were(golden, now):
    without = {name for name in golden if CLEANLAB in name} if find_spec("cleanlab") is None else set()
    assert set(now) == set(golden) - without, AGAIN
    changed = [
        f"{name}: {words}"
        for name, cell in now.items()
        for words in differences(golden[name]["numbers"], cell["numbers"])
    ]
    assert not changed, f"{len(changed)} numbers changed; {AGAIN}\n" + "\n".join(changed[:20])


def test_counts_are_compared_exactly_and_the_rest_to_a_digit(golden):
    flips = golden["attack: attack, farthest 10 %"]["numbers"]
    (places,) = (name for name in flips if name in COUNTS)
    assert flips[places] > 3000
    assert list(differences(flips, flips | {places: flips[places] + 1})) == [f"{places}: 3703 -> 3704"]
    assert not list(differences({"accuracy": 0.9}, {"accuracy": 0.902}))
    assert list(differences({"accuracy": 0.9}, {"accuracy": 0.903})) == ["accuracy: 0.9 -> 0.903"]
    assert list(differences({"accuracy": 0.9}, {})) == ["accuracy: 0.9 -> None"]
    counts = [
        value for cell in golden.values() for name, value in cell["numbers"].items() if name.split(" / ")[-1] in COUNTS
    ]
    assert len(counts) > 30
    assert all(isinstance(value, int) for value in counts)


CELL = "games: floral, farthest 10 %"


@pytest.fixture
def writer(tmp_path):
    """Writes cells as golden_cells.py does, and returns what the file holds then."""
    file = tmp_path / "cells.json"

    def written(cells):
        write(cells, file)
        return json.loads(file.read_text())

    written.file = file
    return written


def cells(version="4", accuracy=0.9, **more):
    return {CELL: {"version": version, "numbers": {"accuracy": accuracy, "flips": 12, **more}}}


def test_other_numbers_are_written_only_for_a_higher_version(writer):
    first = cells()
    assert writer(first) == first
    before = writer.file.read_text()
    for changed in (cells(accuracy=0.95), cells(flips=13), cells(more=1.0), cells("3", 0.95), cells("3")):
        with pytest.raises(ValueError, match=CELL):
            writer(changed)
        assert writer.file.read_text() == before
    assert writer(cells("5", 0.95)) == cells("5", 0.95)
    assert writer(cells("5.2", 0.97)) == cells("5.2", 0.97), "the version of a suite counts as well"
