"""The cells of the crowd suite: data set x kind of crowd x attack x level x split x aggregator."""

from __future__ import annotations

from itertools import product
from typing import Any

from floral_bench.crowds.peers import METHODS, available
from floral_bench.crowds.problems import HELD_OUT, REAL
from floral_bench.spec import Attack, Cell, Data, Method, Wanted, params, plain_cell

# Attack, and whether the liars know the truth.
ATTACKS: tuple[tuple[str, bool], ...] = (
    ("pair", False), ("far", False), ("spam", False), ("collusion", False), ("sleeper", True), ("targeted", True),
    ("pair", True), ("far", True), ("collusion", True), ("sleeper", False), ("targeted", False),
)  # fmt: skip
LEVELS = (20.0, 40.0, 10.0, 30.0)
CROWDS = {
    "labelme": ("real",),
    "satimage": ("sparse",),
    "phoneme": ("dense",),
    "spambase": ("sparse",),
    "pima": ("dense",),
    "banknote": ("tail",),
    "digits": ("sparse",),
    "wine": ("sparse",),
}
# Changed whenever our own numbers change, so that a store does not mix two versions. A golden cell that
# changes while this does not fails a test (tests/bench/golden_cells.py).
VERSION = 13


def crowd_cells(**changes: Any) -> list[Cell]:
    """The suite as the user asked for it, on data on which no rule was chosen.

    Quick is one split of digits and wine, two attacks, three aggregators.
    """
    wanted = Wanted(**changes)
    if unknown := [name for name in wanted.methods if name not in METHODS]:
        raise ValueError(f"--methods {unknown[0]!r} is unknown; choose from {', '.join(METHODS)}")
    chosen = [name for name in available() if not wanted.methods or name in wanted.methods]
    if wanted.quick:
        names: tuple[str, ...] = ("wine", "digits")
        attacks, strengths = ATTACKS[:2], tuple(wanted.levels) or (20.0, 40.0)
        chosen = [name for name in chosen if wanted.methods or name in ("majority", "dawid-skene", "ours")]
    else:
        names = (*REAL, *HELD_OUT)
        attacks, strengths = ATTACKS, tuple(wanted.levels) or LEVELS
    cells = []
    # A run that is stopped early has whole problems, and every attack before rarer levels.
    halves = (strengths[:2], strengths[2:])
    threats = [("none", False, 0.0)] + [(a, i, s) for half in halves for a, i in attacks for s in half if s > 0]
    splits, crowds = range(1 if wanted.reps is None else wanted.reps), [(n, kind) for n in names for kind in CROWDS[n]]
    for number, (attack, informed, level), (name, kind), method in product(splits, threats, crowds, chosen):
        split = (wanted.seed or 0) + number
        data, threat = Data(name, params(kind=kind, split=split)), params(informed=informed)
        own = params(aggregator=method, version=VERSION if method.startswith("ours") else 1)
        asked = Method("crowd", own, per_setting=False)
        cells.append(plain_cell(data, Attack(attack, threat), level, asked, split))
    return cells
