"""The cells of the questions suite: data set x flips x split x who chooses the rows x how often answers are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from floral_bench.questions.peers import WEIGHTS
from floral_bench.questions.problems import GROUPED, KINDS, QUICK, REPORT, ROWS
from floral_bench.spec import Attack, Cell, Data, Method, params, plain_cell

# the review, and its correction behind other rows: at random, the audit's top suspects, where it is least sure
REVIEW, RANDOM, SUSPECTS, UNSURE = "review", "random-corrected", "suspects-corrected", "least-sure-corrected"
CORRECTED = (REVIEW, RANDOM, SUSPECTS, UNSURE)
WHO = (*CORRECTED, *WEIGHTS)
AUTHOR, NAMES = "author", "names"  # groups that a review is told of: who wrote each label, and names that mean nothing
MARKS = (10, 20, 50, 100)
SPLITS = 5
NARROW = ("magic04", "htru2", "banknote", "letters")  # on which other models than SVC are trained, too
LARGE = ("a9a", "magic04")  # on which more rows are reviewed
MORE_ROWS, WRONG = (2000, 8000), (5, 10)  # training rows; percent of the answers
# Changed whenever the review's own numbers change, so that a store does not mix two versions. A golden cell that
# changes while this does not fails a test (tests/bench/golden_cells.py).
VERSION = 17


def question_cells(
    *,
    quick: bool = False,
    reps: int | None = None,
    methods: Sequence[str] = (),
    levels: Sequence[float] = (),
    seed: int | None = None,
) -> list[Cell]:
    """The suite as the user asked for it, the most telling cells first; quick is one split of two small sets."""
    if unknown := [name for name in methods if name not in WHO]:
        raise ValueError(f"--methods {unknown[0]!r} is unknown; choose from {', '.join(WHO)}")
    names = tuple(name for part in (QUICK if quick else REPORT).values() for name in part)
    first, count = seed or 0, (1 if quick else SPLITS) if reps is None else reps
    kinds = [(kind, level) for kind, level in KINDS if not levels or level in levels]
    base = [
        (name, split, kind, level)
        for split in range(first, first + count) for kind, level in kinds for name in names
        if split < first + 2 or level > 0  # clean labels, which no answer contradicts, twice
    ]  # fmt: skip
    once, twice = [b for b in base if b[1] == first], [b for b in base if b[1] < first + 2]
    cells = [_cell(b, REVIEW) for b in base]
    cells += [_cell(b, who) for who in (SUSPECTS, UNSURE, RANDOM) for b in twice if b[3] == 30]
    cells += [_cell(b, REVIEW, groups=groups) for b in twice if b[2] in GROUPED for groups in (AUTHOR, NAMES)]
    cells += [_cell(b, who) for b in once for who in WEIGHTS]
    if not quick:
        cells += [_cell(b, REVIEW, wrong=wrong) for wrong in WRONG for b in once]
        cells += [_cell(b, REVIEW, others=True) for b in base if b[1] == first and b[0] in NARROW]
        large = [b for b in once if b[0] in LARGE and b[3] == 30 and b[2] != "random"]
        cells += [_cell(b, REVIEW, rows=rows) for rows in MORE_ROWS for b in large]
    return [cell for cell in cells if not methods or dict(cell.method.params)["who"] in methods]


def _cell(base: tuple[str, int, str, float], who: str, rows: int = ROWS, **told: Any) -> Cell:
    """One cell; peers do not depend on the version of the review."""
    name, split, kind, level = base
    version = VERSION if who in CORRECTED else 1
    method = Method("questions", params(who=who, version=version, **told), per_setting=False)
    return plain_cell(Data(name, params(split=split, rows=rows)), Attack(kind), level, method, split)
