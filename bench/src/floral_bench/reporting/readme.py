"""The README's tables, from the tables of docs/results.

usage: python -m floral_bench.reporting.readme    (in the root of a clone; writes them between the README's marks)
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from floral_bench.questions.card import on_the_same, shares
from floral_bench.real.asking import CHOOSERS
from floral_bench.real.card import by_source, gains, interval, read_tables
from floral_bench.real.cells import AUDIT, REVIEW
from floral_bench.real.judging import OURS
from floral_bench.real.sets import REPORT, TRUE
from floral_bench.reporting.tables import between_marks, grid

BEGIN, END = "<!-- tables: python -m floral_bench.reporting.readme -->\n", "<!-- end of tables -->"
US = "**floral-learn**"
MEASURES = ("average precision", "F1")
RANDOM_ROWS = "random-corrected"
SUSPECTS, RANDOM = "top suspects, answers only", "random rows, same correction"
MARKS, CHOSEN = (20, 50, 100), 50  # answers that are shown; those after which the best foil is named
PLANTED = {
    "far": "labels far from the boundary flipped",
    "blob": "all labels of a region flipped",
    "near": "labels near the boundary flipped",
}


def render(results: Path) -> str:
    """The tables; a page that has lost what they need is an error."""
    found = read_tables(results / "real")
    planted = pd.read_csv(results / "answers" / "rows.csv.gz")
    parts = (_audit(_reported(found[AUDIT])), _review(_reported(gains(found[REVIEW]))), _planted(planted))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def write(readme: Path, results: Path) -> None:
    """Put the tables between the marks of the README."""
    between_marks(readme, BEGIN, END, render(results))


def _reported(table: pd.DataFrame) -> pd.DataFrame:
    """What enters the means of the sets to report on: labels with errors, and rows, not probabilities alone."""
    return table[(table["use"] == REPORT) & (table["kind"] != TRUE) & (table["set"] != "roman")]


def _audit(table: pd.DataFrame) -> str:
    """Ours, the best others and the best of cleanlab, by each measure, with how far ours is ahead of them."""
    found = {measure: by_source(table, measure) for measure in MEASURES}
    others = [who for who in found["F1"] if who != OURS]
    lines = {OURS: [US, *(f"{values[OURS].mean():.3f}" for values in found.values())]}
    for foils in (others, [who for who in others if who.startswith("cleanlab")]):
        for best in (values[foils].mean().idxmax() for values in found.values()):
            lines[best] = [best, *(f"{v[best].mean():.3f} ({_ahead(v, best)})" for v in found.values())]
    return grid(["which labels are wrong (ours ahead by)", *MEASURES], list(lines.values()))


def _ahead(found: pd.DataFrame, who: str) -> str:
    return "{:+.3f} [{:+.3f}, {:+.3f}]".format(*interval((found[OURS] - found[who]).to_numpy()))


def _review(table: pd.DataFrame) -> str:
    """Ours, the best other chooser, random rows, and answers about suspects alone; right answers."""
    right = table[table["wrong_answers"] == 0]
    left = {mark: by_source(right[right["answers"] == mark], "left").mean() for mark in MARKS}
    best = left[CHOSEN][[name for name in CHOOSERS if name != OURS]].idxmin()
    lines = [[US if who == OURS else who, *(f"{left[mark][who]:.3f}" for mark in MARKS)]
             for who in dict.fromkeys((OURS, best, RANDOM, SUSPECTS))]  # fmt: skip
    return grid(["share of the wrong labels left", *(f"{mark} right answers" for mark in MARKS)], lines)


def _planted(rows: pd.DataFrame) -> str:
    """Shares of lost accuracy that are back, pooled over cases, the median case in brackets."""
    lines = []
    found = on_the_same(rows, (REVIEW, RANDOM_ROWS))
    for kind, words in PLANTED.items():
        for who, wide in found.items():
            part = wide[wide["kind"] == kind]
            title = f"{words}, {len(part)} cases" if who == REVIEW else f"... {RANDOM}"
            lines.append([title, *(re.sub(r" \[.*\]", "", share) + " %" for share in shares(part)[:3])])
    return grid(
        ["errors planted by an attacker: share of lost accuracy back (median)", "10 answers", "20", "50"], lines
    )


if __name__ == "__main__":
    write(Path("README.md"), Path("docs") / "results")
