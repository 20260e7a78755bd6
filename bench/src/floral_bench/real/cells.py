"""The cells of the suite: set x kind of labels x split x what is measured x who."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import floral_learn
from floral_bench.real.asking import CHOOSERS, MARKS, after_answers
from floral_bench.real.judging import JUDGES, ON_PROBABILITIES, Judge, measures
from floral_bench.real.planted import KINDS
from floral_bench.real.sets import PLANTED, SETS, TRUE, arrays, missing, problem
from floral_bench.real.telling_nothing import MODELS, trained
from floral_bench.spec import Attack, Cell, CellResult, Data, Method, Wanted, params, plain_cell

AUDIT, REVIEW, ALONE = "audit", "review", "nobody to ask"
PLANTED_USE = "planted"
ROWS = {AUDIT: 2000, REVIEW: 1000, ALONE: 1000}
PLANTED_ROWS = 800
QUICK_ROWS = 300
SPLITS = {AUDIT: 5, ALONE: 3, REVIEW: 5}
WRONG_SPLITS, PLANTED_SPLITS = 1, 1  # with wrong answers, and with planted errors
WRONG_ANSWERS = (0, 5, 10)  # percent
LEVELS = (2.0, 5.0, 10.0, 20.0, 40.0)  # of planted errors, percent
PLANTED_LEVEL = 20.0  # for what takes longer than an audit
# In whose numbers there is nothing of the library.
FOILS = ("cleanlab", "contradicted by a forest", "in-sample", "kNN", "random rows, answers")
Where = tuple[str, str, float]


def available(planted: bool = True) -> tuple[list[str], list[str]]:
    """Names of the sets that are at hand, and of those that are not."""
    names = [*SETS, *(PLANTED if planted else ())]
    here = [name for name in names if missing(name) is None]
    return here, [name for name in names if name not in here]


def prepare(cells: Sequence[Cell]) -> None:
    """Read every set once, before workers share what is kept of it; a ValueError where there is nothing to measure."""
    if not cells:
        raise ValueError("nothing to measure: none of the data is here; put its folder into FLORAL_DATA")
    for name in dict.fromkeys(cell.data.name for cell in cells):
        arrays(name)


def real_cells(**changes: Any) -> list[Cell]:
    """The suite as the user asked for it; quick is one split of two small sets, without wrong answers.

    `methods` are parts of the suite (audit, review, nobody to ask) or whom they compare.
    """
    wanted = Wanted(**changes)
    quick, reps, methods = wanted.quick, wanted.reps, wanted.methods
    known = (AUDIT, REVIEW, ALONE, *JUDGES, *CHOOSERS, *MODELS)
    if unknown := [name for name in methods if name not in known]:
        raise ValueError(f"--methods {unknown[0]!r} is unknown; choose from {'; '.join(known)}")
    names, _ = available(planted=not quick)
    names = [name for name in names if name in ("music", "youtube")] if quick else names
    rows = dict.fromkeys(ROWS, QUICK_ROWS) if quick else ROWS
    cells, most = [], 1 if quick else max(SPLITS.values()) if reps is None else reps
    for split, name, part in product(range(most), names, SPLITS):
        few = PLANTED_SPLITS if name in PLANTED else SPLITS[part]
        if split >= (few if reps is None else reps):
            continue
        wrong = (0,) if quick or name in PLANTED or split >= (WRONG_SPLITS if reps is None else reps) else WRONG_ANSWERS
        for where, (who, answers) in product(_labels(name, part, wanted.levels), _compared(part, name, wrong)):
            if not methods or part in methods or who in methods:
                cells.append(_cell(where, part, who, answers, (wanted.seed or 0) + split, rows[part]))
    # What tells most comes first, so that a suite that is stopped early can be read.
    return sorted(cells, key=lambda cell: (cell.seed, cell.data.name in PLANTED, _wrong_answers(cell)))


def _wrong_answers(cell: Cell) -> int:
    return dict(cell.method.params)["wrong_answers"]


def _labels(name: str, part: str, levels: Sequence[float]) -> Iterator[Where]:
    """(set, kind of labels, percent that is planted)."""
    if name in PLANTED:
        strengths = (levels or LEVELS) if part == AUDIT else (PLANTED_LEVEL,)
        yield from ((name, kind, level) for level in strengths for kind in KINDS)
    elif SETS[name].has_rows or part == AUDIT:
        yield from ((name, kind, 0.0) for kind in SETS[name].kinds)
    if part != REVIEW and (name in PLANTED or SETS[name].has_rows):
        yield name, TRUE, 0.0


def _compared(part: str, name: str, wrong: Sequence[int]) -> list[tuple[str, int]]:
    """(who, percent of wrong answers)."""
    if part == REVIEW:
        return list(product(CHOOSERS, wrong))
    judges = JUDGES if name in PLANTED or SETS[name].has_rows else ON_PROBABILITIES
    return [(who, 0) for who in (judges if part == AUDIT else MODELS)]


def _cell(where: Where, part: str, who: str, wrong_answers: int, split: int, rows: int) -> Cell:
    name, kind, level = where
    code = "" if who.startswith(FOILS) and "our" not in who else _library()
    options = {"part": part, "who": who, "wrong_answers": wrong_answers, "code": code}
    method = Method("real", params(**options), label=f"{part}: {who}", per_setting=False)
    most = min(rows, PLANTED_ROWS) if name in PLANTED else rows
    return plain_cell(Data(name, params(rows=most)), Attack(kind), level, method, split)


@lru_cache(maxsize=1)
def _library() -> str:
    """A digest of the library's code: its numbers are those of this code and no other."""
    root = Path(floral_learn.__file__).parent
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return found.hexdigest()[:16]


def run_cells(cells: Sequence[Cell]) -> list[CellResult]:
    """The results of the cells of one problem; audits share what their judges have in common."""
    judges: list[Judge] = []

    def work(cell: Cell, result: CellResult) -> None:
        options, seed = dict(cell.method.params), cell.seed
        assert cell.attack is not None
        at = problem(cell.data.name, cell.attack.name, cell.level, seed, dict(cell.data.params)["rows"])
        if options["part"] == AUDIT:
            judges.extend([] if judges else [Judge(at, seed)])
            for metric, value in measures(JUDGES[options["who"]](judges[0]), at.given != at.y).items():
                result.add(metric, value)
        elif options["part"] == REVIEW:
            marks = MARKS[:3] if cell.data.name in PLANTED or len(at.y) <= QUICK_ROWS else MARKS
            for answers, metric, value in after_answers(at, options["who"], _wrong_answers(cell), marks, seed):
                result.add(metric, value, str(answers))
        else:
            for who, metric, value in trained(at, options["who"], seed):
                result.add(metric, value, config=who)

    return [CellResult.of(cell, partial(work, cell)) for cell in cells]
