"""The cells of the crowd suite: data set x kind of crowd x attack x level x split x aggregator."""

from __future__ import annotations

from collections.abc import Sequence

from floral_bench.crowds.peers import METHODS, available
from floral_bench.crowds.problems import HELD_OUT, REAL
from floral_bench.spec import Attack, Cell, Data, Method, params, plain_cell

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


def crowd_cells(
    *,
    quick: bool = False,
    reps: int | None = None,
    methods: Sequence[str] = (),
    levels: Sequence[float] = (),
    seed: int | None = None,
) -> list[Cell]:
    """The suite as the user asked for it, on data on which no rule was chosen.

    Quick is one split of digits and wine, two attacks, three aggregators.
    """
    if unknown := [name for name in methods if name not in METHODS]:
        raise ValueError(f"--methods {unknown[0]!r} is unknown; choose from {', '.join(METHODS)}")
    chosen = [name for name in available() if not methods or name in methods]
    if quick:
        names: tuple[str, ...] = ("wine", "digits")
        attacks, strengths = ATTACKS[:2], tuple(levels) or (20.0, 40.0)
        chosen = [name for name in chosen if methods or name in ("majority", "dawid-skene", "ours")]
    else:
        names = (*REAL, *HELD_OUT)
        attacks, strengths = ATTACKS, tuple(levels) or LEVELS
    first = 0 if seed is None else seed
    cells = []
    # A run that is stopped early has whole problems, and every attack before rarer levels.
    halves = (strengths[:2], strengths[2:])
    threats = [("none", False, 0.0)] + [(a, i, s) for half in halves for a, i in attacks for s in half if s > 0]
    for split in range(first, first + (1 if reps is None else reps)):
        for attack, informed, level in threats:
            for name in names:
                for kind in CROWDS[name][:1] if quick else CROWDS[name]:
                    for method in chosen:
                        data, threat = Data(name, params(kind=kind, split=split)), params(informed=informed)
                        own = params(aggregator=method, version=VERSION if method.startswith("ours") else 1)
                        asked = Method("crowd", own, per_setting=False)
                        cells.append(plain_cell(data, Attack(attack, threat), level, asked, split))
    return cells
