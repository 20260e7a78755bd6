"""Numbers in sentences are those of the tables.

Each line of suite_claims.txt must stand on its page, with its places filled from the suites' CSV files. A place is
{suite | method | statistic | level}, with the beginning of the attack's name or "C, gamma" as a fifth where a suite has
several; {... | paper} is the paper's own number. When a suite was run again, the failing test says what to write.
"""

import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
RESULTS = DOCS / "results"
pytestmark = pytest.mark.skipif(not RESULTS.is_dir(), reason="docs are not part of the source archive")
PLACE = re.compile(r"\{([^{}]+)\}")


def claims():
    page = ""
    for line in Path(__file__).with_name("suite_claims.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            page = line.removeprefix("# ")
        elif line.strip():
            yield page, line


@cache
def table(suite: str) -> pd.DataFrame:
    return pd.read_csv(RESULTS / suite / "accuracy.csv")


def number(place: str) -> str:
    """The number of a place, to three digits."""
    suite, method, statistic, level, *where = [part.strip() for part in place.split("|")]
    rows = table(suite)
    rows = rows[(rows.method == method) & (rows.statistic == statistic) & (rows.level == float(level))]
    column = "paper" if "paper" in where else "mean"
    for part in [part for part in where if part != "paper"]:
        if "," in part:
            C, gamma = part.split(",")
            rows = rows[(rows["C"] == float(C)) & (rows.gamma == float(gamma))]
        else:
            rows = rows[rows.attack.str.startswith(part)]
    assert rows[column].nunique() == 1, f"{{{place}}} is {len(rows)} numbers of {suite}/accuracy.csv"
    return f"{rows[column].iloc[0]:.3f}"


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(("page", "claim"), list(claims()))
def test_numbers_in_sentences_are_those_of_the_tables(page, claim):
    expected = words(PLACE.sub(lambda place: number(place[1]), claim))
    assert expected in words((DOCS / page).read_text(encoding="utf-8")), f"{page} does not say: {expected}"
