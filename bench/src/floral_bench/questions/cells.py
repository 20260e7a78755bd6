"""The cells of the questions suite: data set x attack x level x split x who chooses x how often answers are wrong."""

from __future__ import annotations

from collections.abc import Sequence

from floral_bench.questions.orders import ORDERS, available
from floral_bench.questions.problems import ATTACKS, SEVERAL, SMALL, TABLES, UNEVEN
from floral_bench.spec import Attack, Cell, Data, Method, params, plain_cell

REVIEW = "review"
MARKS = (0, 5, 10, 20, 50, 100)
SPLITS = (1, 2)
LEVELS = (10.0, 30.0)
_TWO_CLASSES = ("alfa",)
QUICK = ("moon", "breast-cancer", "wine")
FEW = (REVIEW, "random", "cleanlab")  # who chooses on data sets that are not the tables
# Changed whenever the review's own numbers change, so that a store does not mix two versions. A golden cell that
# changes while this does not fails a test (tests/bench/golden_cells.py).
VERSION = 14


def question_cells(
    *,
    quick: bool = False,
    reps: int | None = None,
    methods: Sequence[str] = (),
    levels: Sequence[float] = (),
    seed: int | None = None,
    data: Sequence[str] = (),
) -> list[Cell]:
    """The suite as the user asked for it; quick is one split of three small sets, two attacks, four orders."""
    known = (*TABLES, *SEVERAL, *UNEVEN, *SMALL)
    names = tuple(data) or (QUICK if quick else known)
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"unknown data set {unknown[0]!r} of the questions suite; known: {', '.join(known)}")
    orders = _orders(methods, quick)
    attacks = ("random", "farthest") if quick else ATTACKS
    splits = SPLITS[: (1 if quick else len(SPLITS)) if reps is None else reps]
    splits = splits if seed is None else tuple(range(seed, seed + len(splits)))
    strengths = tuple(levels) or (LEVELS[1:] if quick else LEVELS)
    cells = []
    for split in splits:
        for name in names:
            pairs = [("clean", 0.0)]
            several = name in SEVERAL
            pairs += [(a, s) for a in attacks if not (several and a in _TWO_CLASSES) for s in strengths if s > 0]
            for attack, level in pairs:
                for order in orders if methods or name in TABLES else [o for o in orders if o in FEW]:
                    for wrong in (0, 5) if order == REVIEW else (0,):
                        asked = params(order=order, wrong_answers=wrong, version=VERSION)
                        method = Method("questions", asked, per_setting=False)
                        rows = Data(name, params(split=split))
                        cells.append(plain_cell(rows, Attack(attack), level, method, split))
    # What tells most comes first, so that a suite that is stopped early can be read: the tables, split by split.
    return sorted(cells, key=lambda cell: (cell.data.name not in TABLES, cell.seed))


def _orders(methods: Sequence[str], quick: bool) -> list[str]:
    every = [REVIEW, *available()]
    if unknown := [m for m in methods if m not in (REVIEW, *ORDERS)]:
        raise ValueError(f"--methods {unknown[0]!r} is unknown; choose from {', '.join((REVIEW, *ORDERS))}")
    if methods:
        return [name for name in every if name in methods]
    return [REVIEW, "random", "suspicious"] if quick else every
