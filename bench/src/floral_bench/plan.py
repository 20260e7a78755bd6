"""Which cells run together: a job is a batch that shares its data and is faster as one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from floral_bench.data_kinds import kind_of
from floral_bench.families.games import configurations
from floral_bench.spec import ATTACK_METHOD, Cell

GAME_METHODS = ("floral", "largest-loss", "floral-slip", "floral-printed", "svm", "ln-svm", "curie", "ls-svm", "k-lid")
NETWORK_METHODS = ("nn", "nn-pgd")
HEAD_METHODS = ("nn-head", "nn-turns")
# Cells that poison by themselves and load data of their own: the questions, and votes.
OWN_DATA = ("questions", "crowd", "real")
# Games with rounds of their own share no batch with others.
OWN_ROUNDS = ("largest-loss", "floral-printed")
# Long attacks that share nothing between levels; the others share a fit, or a way.
LEVELS_APART = ("alfa", "alfa-tilt")
# Columns of a batch of games: on 500 rows the time a column does not fall any further, and a killed run loses less.
MAX_COLUMNS = 128
# Training rows of a stack of networks, all of them together: 20 networks on MNIST, which take minutes, 400 on Moon.
MAX_STACKED_ROWS = 200_000
# Measured on Moon, in units of 1000 column-rounds of a game (about 0.08 s): what a cell weighs in the time left, and in
# the order of jobs. More rows weigh more, in proportion: less than they take on a CPU, and more than on a GPU.
_WEIGHTS = {"nn": 2.0, "nn-pgd": 10.0, "nn-head": 25.0, "nn-turns": 25.0}
# Of the real errors, in seconds of one core.
_REAL_WEIGHTS = {"audit": 1.0, "review": 12.0, "nobody to ask": 8.0}
_ATTACK_WEIGHTS = {"lfa": 70.0, "gradient": 40.0, "alfa-tilt": 3.0, "alfa": 1.5}


@dataclass(frozen=True)
class Job:
    """Cells that one call computes; `family` names the runner."""

    family: str
    cells: tuple[Cell, ...]
    weight: float  # about how long, in arbitrary units: columns times rounds for games

    @property
    def title(self) -> str:
        """What is being done, for progress lines."""
        levels = sorted({cell.level for cell in self.cells})
        methods = list(dict.fromkeys(cell.method.title for cell in self.cells))
        names = methods[0] if len(methods) == 1 else f"{len(methods)} methods"
        if self.family == "real":
            names = f"{names}, {self.cells[0].data.name}"
        span = f"{levels[0]:g} %" if len(levels) == 1 else f"{levels[0]:g}-{levels[-1]:g} %"
        seeds = sorted({cell.seed for cell in self.cells})
        attacks = list(dict.fromkeys(cell.attack.name for cell in self.cells if cell.attack is not None))
        where = f"{' and '.join(attacks)} {span}" if attacks else "clean labels"
        what = "flipping labels" if self.family == "attack" else names
        return f"{where}, split {','.join(map(str, seeds))}: {what}"


def family_of(cell: Cell) -> str:
    """The runner of a cell."""
    name = cell.method.name
    if name == ATTACK_METHOD.name:
        return "attack"
    if name in OWN_DATA:
        return name
    if kind_of(cell.data).texts:
        return "text"
    if name in GAME_METHODS:
        return "games"
    if name in HEAD_METHODS:
        return "heads"
    return "networks" if name in NETWORK_METHODS else "fits"


def jobs_for(cells: Iterable[Cell], rows: int = 500) -> tuple[list[Job], list[Job]]:
    """Batches of `cells`: attacks, and what needs their labels. `rows` is how many rows data have that do not say."""
    groups: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((family_of(cell), *_shared(cell)), []).append(cell)
    jobs: list[Job] = []
    for (name, *_), members in groups.items():
        family, n = str(name), int(dict(members[0].data.params).get("n_train", rows))
        parts = [members]
        if family == "games":
            parts = _batches(members, rows)
        elif family == "networks":
            width = max(1, MAX_STACKED_ROWS // n)
            parts = [members[start : start + width] for start in range(0, len(members), width)]
        for part in parts:
            size = 1.0 if family in OWN_DATA else n / rows
            weight = size * _weight(family, part, rows)
            jobs.append(Job(family, tuple(part), weight))
    # Long jobs first: with several workers the end of the run is then not one long straggler. Those with data of their
    # own run as they come: what tells most is first.
    jobs.sort(key=lambda job: 0.0 if job.family in OWN_DATA else -job.weight)
    return [job for job in jobs if job.family == "attack"], [job for job in jobs if job.family != "attack"]


def _weight(family: str, cells: list[Cell], rows: int) -> float:
    first = cells[0]
    if family == "real":
        return sum(_REAL_WEIGHTS[dict(cell.method.params)["part"]] for cell in cells)
    if family in OWN_DATA:
        return 1.0
    if family == "games":  # one attacker needs a product of its own, one projection a long loop
        slower = {"largest-loss": 1.6, "floral-printed": 12.0}.get(first.method.name, 1.0)
        columns = sum(len(configurations(cell, rows)) for cell in cells)
        return slower * columns * (first.grid.rounds if first.grid else 500) / 1000
    if family == "attack":
        return len(cells) * _ATTACK_WEIGHTS.get(first.attack.name if first.attack else "", 0.5)
    return len(cells) * _WEIGHTS.get(first.method.name, 1.5)


def _shared(cell: Cell) -> tuple[object, ...]:
    family = family_of(cell)
    if family == "real":  # audits of a problem share their judges
        part = dict(cell.method.params)["part"]
        return cell.data, cell.attack, cell.level, cell.seed, part if part == "audit" else cell.method
    if family in OWN_DATA:
        return cell.data, cell.attack, cell.level
    if family == "attack":
        alone = cell.attack is not None and cell.attack.name in LEVELS_APART
        return cell.data, cell.attack, cell.seed, cell.level if alone else None
    if family == "text":  # the encoder of a draw and level is trained once for all of its cells
        return cell.data, cell.attack, cell.level, cell.seed
    if family == "networks":
        # Networks of all replications and levels train in one batch: their shapes agree, their rows need not.
        shape = tuple(pair for pair in cell.data.params if pair[0] != "seed")
        return cell.method, cell.data.name, shape
    if family == "heads":  # one stack of networks for all poisoned labels of a replication
        return cell.data, cell.seed
    if family == "games":
        return cell.data, cell.C, cell.gamma, cell.grid, cell.method.name if cell.method.name in OWN_ROUNDS else ""
    return cell.data, cell.C, cell.gamma, cell.attack, cell.level, cell.seed


def _batches(members: list[Cell], rows: int) -> list[list[Cell]]:
    """Games in batches of at most `MAX_COLUMNS` columns, all methods of a level together."""
    parts: list[list[Cell]] = []
    width = MAX_COLUMNS
    for cell in sorted(members, key=lambda cell: (cell.seed, cell.level)):
        columns = len(configurations(cell, rows))
        if not parts or width + columns > MAX_COLUMNS:
            parts.append([])
            width = 0
        parts[-1].append(cell)
        width += columns
    return parts
