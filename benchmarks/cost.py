"""What a review costs: minutes of a person per point of accuracy, from the rows of `questions.py`.

    python benchmarks/cost.py            # writes the table of docs/cost.md between its two marks
    python benchmarks/cost.py --check    # says whether the page has the table of the rows, and ends with 1 if not

Nobody was timed: the seconds of an answer are the reader's, and every line is answers times seconds over points. Points
are test accuracy times 100 of ``review.train(SVC())`` less that of an SVC on the given labels.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.files.atomic_files import write_atomically

ROOT = Path(__file__).resolve().parents[1]
ROWS = ROOT / "docs" / "results" / "answers" / "report.jsonl"
PAGE = ROOT / "docs" / "cost.md"
START, END = "<!-- table of benchmarks/cost.py -->\n", "<!-- end of table -->"
ANSWERS = (10, 20, 50, 100)
SECONDS = (10, 30)  # per answer: a row of familiar columns, a text or picture to be looked at
LOST = ((15, np.inf), (5, 15), (2, 5), (-np.inf, 2))  # points that wrong labels took


def cells(variant: str = "shipped", path: Path = ROWS) -> list[dict[str, Any]]:
    """The cells of one way to spend answers, without those in which a class vanished."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row["variant"] == variant and not row.get("left_out")]


def points(cell: dict[str, Any], answers: int) -> float:
    """Points of accuracy that so many answers brought."""
    return 100 * (cell["svc"][str(answers)]["train"] - cell["given"])


def minutes_per_point(gained: float, answers: int, seconds: float) -> str:
    """Minutes for one point; a gain below half a point has no price."""
    return f"{answers * seconds / 60 / gained:.1f}" if gained >= 0.5 else "-"


def table(found: list[dict[str, Any]]) -> str:
    """Markdown: by the points lost to wrong labels, points that came back and minutes per point."""
    head = ["points lost", "cells", "answers", "points back (median)", "minutes", "minutes per point"]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    for low, high in LOST:
        name = f"more than {low}" if high == np.inf else f"{low} to {high}"
        name = f"less than {high}" if low == -np.inf else name
        inside = [c for c in found if low <= 100 * (c["clean"] - c["given"]) < high]
        if not inside:
            continue
        lost = np.mean([100 * (c["clean"] - c["given"]) for c in inside])
        for first, m in enumerate(ANSWERS):
            back = [points(c, m) for c in inside]
            begin = [f"{name} (mean {lost:.1f})", str(len(inside))] if first == 0 else [""] * 2
            row = [*begin, str(m), f"{np.mean(back):+.1f} ({np.median(back):+.1f})"]
            row += [" / ".join(f"{m * s / 60:.0f}" for s in SECONDS)]
            row += [" / ".join(minutes_per_point(float(np.mean(back)), m, s) for s in SECONDS)]
            lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def beside(peer: str = "most doubtful") -> str:
    """One sentence: points per number of answers of the review and of a peer, on the cells that have both."""

    def by_cell(variant: str) -> dict[tuple[Any, ...], dict[str, Any]]:
        return {(c["data"], c["split"], c["kind"], c["share"]): c for c in cells(variant)}

    ours, theirs = by_cell("shipped"), by_cell(peer)
    both = sorted(set(ours) & set(theirs))

    def gains(found: dict[tuple[Any, ...], dict[str, Any]]) -> str:
        return ", ".join(f"{np.mean([points(found[cell], m) for cell in both]):+.1f}" for m in ANSWERS)

    return (
        f"On the {len(both)} cells that were run with both, fixing the labels that held-out models doubt most brought "
        f"{gains(theirs)} points after {', '.join(map(str, ANSWERS))} answers, the review {gains(ours)}.\n"
    )


def filled(text: str) -> str:
    """The page with the table as the rows have it."""
    before, rest = text.split(START)
    return before + START + table(cells()) + "\n" + beside() + END + rest.split(END)[1]


def main() -> int:
    """Write or check the page."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true", help="write nothing; end with 1 if the page would change")
    given = options.parse_args()
    text = PAGE.read_text(encoding="utf-8")
    if given.check:
        same = filled(text) == text
        print("docs/cost.md has the table of the rows" if same else "docs/cost.md: run python benchmarks/cost.py")
        return int(not same)
    write_atomically(PAGE, filled(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
