"""The README's tables, from the tables of docs/results.

usage: python -m floral_bench.reporting.readme    (in the root of a clone; writes them between the README's marks)
"""

from __future__ import annotations

import re
from pathlib import Path

from floral_learn.base.files import write_atomically

BEGIN, END = "<!-- tables: python -m floral_bench.reporting.readme -->\n", "<!-- end of tables -->"
REPORT, OURS, CLEANLAB = "**sets to report on**", "ours", "cleanlab"
RANDOM, SUSPECTS = "random rows, same correction", "top suspects, answers only"
KINDS = {
    "far": "labels far from the boundary flipped",
    "blob": "all labels of a region flipped",
    "near": "labels near the boundary flipped",
}
Rows = list[dict[str, str]]


def render(results: Path) -> str:
    """The tables; a page that has lost a row or a column that they need is a KeyError or an IndexError."""
    real = tables(results / "real-errors.md")
    audit = reported(next(rows for rows in real if "ours ahead: average precision" in rows[0]))
    review = reported(next(rows for rows in real if "wrong answers" in rows[0]))
    (planted,) = (rows for rows in tables(results / "answers.md") if any(name.startswith("blob") for name in rows[0]))
    parts = [_audit(audit), _review([row for row in review if row["wrong answers"] == "0 %"]), _planted(planted)]
    return "\n\n".join(parts) + "\n"


def write(readme: Path, results: Path) -> None:
    """Put the tables between the marks of the README."""
    before, rest = readme.read_text("utf-8").split(BEGIN)
    write_atomically(readme, before + BEGIN + render(results) + END + rest.split(END)[1])


def tables(page: Path) -> list[Rows]:
    """The tables of a page, each a list of rows by column name."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", page.read_text("utf-8"), re.M):
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        found.append([dict(zip(lines[0], line, strict=True)) for line in lines[2:]])
    return found


def reported(rows: Rows) -> Rows:
    """The rows under "sets to report on", whose first cell names who."""
    named = [{"who": next(iter(row.values())), **row} for row in rows]
    return named[[row["who"] for row in named].index(REPORT) + 1 :]


def _audit(rows: Rows) -> str:
    """Ours, the best others and the best of cleanlab, by each measure, with how far ours is ahead of them."""
    ours, others = rows[0], rows[1:]
    measures = ("average precision", "F1")
    shown = {}
    for foils in (others, [row for row in others if row["who"].startswith(CLEANLAB)]):
        for measure in measures:
            best = max(foils, key=lambda row: float(row[measure]))
            shown[best["who"]] = [f"{best[name]} ({best[f'ours ahead: {name}']})" for name in measures]
    lines = [["**floral-learn**", *(ours[name] for name in measures)], *([who, *said] for who, said in shown.items())]
    return _table(["which labels are wrong (ours ahead by)", *measures], lines)


def _review(rows: Rows) -> str:
    """Ours, the best other chooser after 50 answers, random rows, and answers about suspects alone."""
    at = [name for name in rows[0] if re.fullmatch(r"left, (10|20|50|100)", name)]
    by_name = {row["who"]: row for row in rows}
    best = min(rows[1:], key=lambda row: float(row["left, 50"]))["who"]
    shown = [[name, *(by_name[name][mark] for mark in at)] for name in dict.fromkeys((best, RANDOM, SUSPECTS))]
    head = ["share of the wrong labels left, right answers", *(f"{mark.removeprefix('left, ')} answers" for mark in at)]
    return _table(head, [["**floral-learn**", *(by_name[OURS][mark] for mark in at)], *shown])


def _planted(rows: Rows) -> str:
    """Shares of lost accuracy that are back, pooled over tables, the median table in brackets."""
    named = {next(iter(row.values())): row for row in rows}
    columns = {name.split()[0]: name for name in rows[0]}
    lines = []
    for kind, words in KINDS.items():
        (cases,) = re.findall(r"\d+", columns[kind])
        for who, title in (("LabelReview", f"{words}, {cases} tables"), (RANDOM, f"... {RANDOM}")):
            pooled, median = named[who][columns[kind]].rstrip(")").split(" (")
            pairs = zip(pooled.split(" / "), median.split(", "), strict=True)
            lines.append([title, *(f"{one} ({other}) %" for one, other in pairs)])
    head = ["errors planted by an attacker: share of lost accuracy back (median)", "10 answers", "20", "50"]
    return _table(head, lines)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" if line[0] != "---" else f"|{'|'.join(line)}|" for line in lines)


if __name__ == "__main__":
    write(Path("README.md"), Path("docs") / "results")
