"""The paper's three algorithms in plain numpy, written from its listings, replay what PaperFloralClassifier played."""

from pathlib import Path

import pytest

from floral_bench.replay import CASES, replay

PAGE = Path(__file__).parents[2] / "docs" / "results" / "paper-suites.md"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.algorithm}, {case.data}, C = {case.C:g}")
def test_the_listings_give_the_same_duals(case):
    found = replay(case)
    assert found.difference <= 1e-12
    assert found.allowed == found.attacked > 50
    assert found.as_listed > 0.9, "Algorithm 2 itself, not the exact root in its place"


def test_the_first_results_table_is_that_of_these_replays():
    lines = PAGE.read_text(encoding="utf-8").split("## ")[1].splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")][1:]
    assert [row[:2] + row[3:4] for row in rows] == [[c.algorithm, c.data, f"{c.C:g}"] for c in CASES]
    for row in rows:
        assert float(row[5]) <= 1e-12
        allowed, attacked = row[6].split(" of ")
        assert allowed == attacked
