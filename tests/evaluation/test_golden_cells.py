"""Numbers do not change unnoticed: a few cells of every family against those in the repository."""

import json

import pytest
from golden_cells import DIGITS, FILE, compute

from floral_learn.evaluation.spec import RESULTS_VERSION

pytest.importorskip("torch", reason="networks need torch: pip install '.[torch]'")
AGAIN = "if that was meant, raise RESULTS_VERSION in evaluation/spec.py and run python tests/evaluation/golden_cells.py"
# Families of which a cell must be there; texts need IMDB and an encoder (tests/evaluation/test_imdb.py).
FAMILIES = {"attack", "games", "fits", "networks", "heads", "stability"}


@pytest.fixture(scope="module")
def golden():
    return json.loads(FILE.read_text(encoding="utf-8"))


def test_golden_numbers_are_of_this_version(golden):
    assert golden["results_version"] == RESULTS_VERSION, AGAIN


def test_every_family_has_a_golden_cell(golden):
    assert {name.split(":")[0] for name in golden["cells"]} == FAMILIES


def test_numbers_are_as_they_were(golden, tmp_path):
    now = compute(tmp_path)
    assert set(now) == set(golden["cells"]), AGAIN
    changed = []
    for cell, numbers in golden["cells"].items():
        assert set(now[cell]) == set(numbers), f"{cell}: {AGAIN}"
        for name, value in numbers.items():
            # half a digit for rounding, and one for other BLAS libraries
            if abs(now[cell][name] - value) > 1.5 * 10**-DIGITS + 1e-3 * abs(value):
                changed.append(f"{cell}: {name}: {value} -> {now[cell][name]}")
    assert not changed, f"{len(changed)} numbers changed; {AGAIN}\n" + "\n".join(changed[:20])
