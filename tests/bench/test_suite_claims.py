"""Numbers in sentences are those of the tables.

Each line of suite_claims.txt must stand on its page, with its places filled from the published rows. A place is

- {suite | method | statistic | level}, with the beginning of the attack's name or "C, gamma" as a fifth where a suite
  has several; {... | paper} is the paper's own number; or
- {= formula} over the functions of claim_numbers.py: tables besides accuracy.csv, differences, ranges and counts.

When a suite was run again, the failing test says what to write. Pages of WHOLE may have no accuracy beside these.
"""

import re
from pathlib import Path

import pytest
from claim_numbers import DOCS, RESULTS, computed, points, rows, say

pytestmark = pytest.mark.skipif(not RESULTS.is_dir(), reason="docs are not part of the source archive")
PLACE = re.compile(r"\{([^{}]+)\}")
ACCURACY = re.compile(r"(?<![\d.])0\.\d{3}(?!\d)")
WHOLE = ("results/paper-suites.md", "results/nn-integration.md", "when-not-to-use-it.md")


def claims():
    page = ""
    for line in Path(__file__).with_name("suite_claims.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            page = line.removeprefix("# ")
        elif line.strip():
            yield page, line


def number(place: str) -> str:
    """The number of a place, to three digits."""
    if place.startswith("="):
        return computed(place.removeprefix("=").strip())
    suite, method, statistic, level, *where = [part.strip() for part in place.split("|")]
    named = {}
    for part in [part for part in where if part != "paper"]:
        named |= (
            dict(zip(("C", "gamma"), map(float, part.split(",")), strict=True)) if "," in part else {"attack": part}
        )
    path = f"{suite}/accuracy.csv"
    found = rows(path, method=method, statistic=statistic, level=float(level), **named)
    found = found["paper" if "paper" in where else "mean"]
    assert found.nunique() == 1, f"{{{place}}} is {len(found)} numbers of {path}"
    return f"{found.iloc[0]:.3f}"


def words(text: str) -> str:
    return " ".join(text.split())


def filled(claim: str) -> str:
    return words(PLACE.sub(lambda place: number(place[1]), claim))


@pytest.mark.parametrize(("page", "claim"), list(claims()))
def test_numbers_in_sentences_are_those_of_the_tables(page, claim):
    expected = filled(claim)
    assert expected in words((DOCS / page).read_text(encoding="utf-8")), f"{page} does not say: {expected}"


def starts(text: str, part: str) -> list[int]:
    return [found.start() for found in re.finditer(re.escape(part), text)]


@pytest.mark.parametrize("page", WHOLE)
def test_no_accuracy_stands_on_a_page_without_a_row(page):
    text = words((DOCS / page).read_text(encoding="utf-8"))
    held = set()
    for where, claim in claims():
        if where == page:
            sentence = filled(claim)
            held |= {at + k for at in starts(text, sentence) for k in range(len(sentence))}
    loose = [text[max(0, m.start() - 60) : m.end() + 20] for m in ACCURACY.finditer(text) if m.start() not in held]
    assert not loose, "no line of suite_claims.txt holds: " + "; ".join(loose)


def test_a_formula_says_what_no_longer_holds():
    assert say("level", 1 < 2) == "level"
    assert say("level", 1 > 2) == "[no longer: level]"
    assert computed("points(-0.0142)") == points(0.0142) == "1.4"
    assert computed("span([0.017, 0.028])") == "2 to 3"
    with pytest.raises(AssertionError, match="has no row with"):
        computed('accuracy("moon", "no such method", "last", 10)')
