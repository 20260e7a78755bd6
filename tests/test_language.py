"""Plain English in everything that users read: turns of phrase that were taken out do not come back."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
UNIT = "row|round|fit|cell|level|method|class|batch|second|replication|statistic|column|worker|machine|epoch|game"
MANNERED = {
    r"\bindeed\b": "leave it out",
    r"\bkin\b": "such as",
    r"\banew\b": "again",
    r"\bin concert\b": "together",
    r"\bof one's own\b": "your own",
    r"\bstands? in\b(?! (a|the|front|line|for|its|their|`|``)\b)": "is used instead, or: is in",
    r"\bstands? in (the table|the results|\[)": "is in",
    r"(?<!there )\bis no (suite|defense|attack|method|model|folder|column|number|signature|kernel)\b": "is not a",
    rf"\bone (row|line|file|entry|column|number|label|score|table|seed) a ({UNIT}|number|file|subcommand)\b": "per",
    rf"\d ?(s|ms|us|ns|MB|GB|bytes|lines|rows|fits) a ({UNIT})\b": "per",
}
# Tables of runs are what a command wrote at the time; they are not edited by hand.
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.rst")]
    if not {"gallery", "generated", "backreferences", "build"} & set(path.parts)
    and path.parent.parent.name != "results"
)
KINDS = ("*.py", "*.html", "*.js", "*.j2")
SOURCES = sorted(path for kind in KINDS for root in ("src", "bench") for path in (ROOT / root).rglob(kind))
EXAMPLES = sorted((ROOT / "examples").glob("*"))


@pytest.mark.parametrize("path", [*PAGES, *SOURCES, *EXAMPLES], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_mannered_english(path):
    if not path.is_file():
        pytest.skip("gone")
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        text = re.sub(r"  # .*", "", text)  # remarks for developers may be as they like
    found = [
        f"line {text.count(chr(10), 0, match.start()) + 1}: {match[0]!r} (say: {better})"
        for pattern, better in MANNERED.items()
        for match in re.finditer(pattern, text)
    ]
    assert not found, "; ".join(found)


def test_the_patterns_find_what_they_are_for():
    wrong = (
        "'nope' is no suite", "about 9 in 10 are wrong indeed", "GPT and its kin", "one file a subcommand",
        "11.9 us a row", "kernel ridge regression stands in.", "the labels are read anew",
    )  # fmt: skip
    for sentence in wrong:
        assert any(re.search(pattern, sentence) for pattern in MANNERED), sentence
    for sentence in ("there is no predict_proba", "per row", "the person who stands in line"):
        assert not any(re.search(pattern, sentence) for pattern in MANNERED), sentence
