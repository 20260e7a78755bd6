"""What an experiment is: a frozen suite that unfolds into cells, each with a key of its own.

    suite  =  data x attack x level x (C, gamma) x method x grid x replication
    cell   =  one of these combinations; its key is a hash of everything that decides its numbers

A cell that occurs in two suites (the FLORAL column of moon-rs is that of moon-alfa) has one key and is run once.
"""

from __future__ import annotations

import hashlib
import json
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

# Raised whenever a change of the code changes numbers, or the form in which they are stored. A store of another version
# is refused, and tests/bench/test_golden_cells.py fails when numbers change and this does not.
RESULTS_VERSION = 4

Params = tuple[tuple[str, Any], ...]


def params(**values: Any) -> Params:
    """Keyword arguments in a form that can be hashed and compared."""
    return tuple(sorted((name, tuple(v) if isinstance(v, list) else v) for name, v in values.items()))


@dataclass(frozen=True)
class Grid:
    """The paper's hyperparameter grid of one game: k x eta x decay, T rounds each; 40 configurations.

    ``more_etas`` and ``more_decays`` are steps and decays that the paper does not have. They are played too, and rows
    that are chosen from them say so.
    """

    rounds: int = 500
    flips: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.25)  # k as shares of the training rows; B = 2k
    etas: tuple[float, ...] = (1e-4, 3e-4, 5e-4, 7e-4)
    decays: tuple[int | None, ...] = (100, 200)  # eta times 0.1 every so many rounds
    budgets: tuple[int, ...] = ()  # B in points in place of `flips`; k = B // 2
    more_etas: tuple[float, ...] = ()
    more_decays: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Attack:
    """A label attack by its name in ``ATTACKS``; ``"reference"`` are the authors' published Moon labels."""

    name: str
    params: Params = ()


@dataclass(frozen=True)
class Method:
    """A column of the table: ``name`` selects the runner, ``params`` are handed to it."""

    name: str
    params: Params = ()
    label: str = ""  # how the tables call it; the name where empty
    per_setting: bool = True  # whether C and gamma matter to it
    needs_grid: bool = False
    told: str = ""  # "level": the true share of poisoned labels; "test labels": a setting was chosen on them

    @property
    def title(self) -> str:
        """The name in tables."""
        return self.label or self.name


@dataclass(frozen=True)
class Data:
    """A data set by its name in the loaders of `cell_data`, with the replication's own parameters."""

    name: str
    params: Params = ()


@dataclass(frozen=True)
class Cell:
    """The unit of work, of storage and of resuming."""

    data: Data
    attack: Attack | None  # None: clean labels
    level: float  # poisoned labels in percent
    method: Method
    C: float | None
    gamma: float | None
    grid: Grid | None
    seed: int

    @cached_property
    def key(self) -> str:
        """A hash of the whole cell and of the version of what computes it."""
        spec = asdict(self)
        for note in ("label", "told"):  # words for people and tables do not decide a number
            spec["method"].pop(note)
        text = json.dumps([RESULTS_VERSION, spec], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def spec(self) -> dict[str, Any]:
        """The cell as plain JSON values."""
        return json.loads(json.dumps(asdict(self)))


@dataclass(frozen=True)
class Suite:
    """A named experiment; see `suites.SUITES`."""

    name: str
    title: str
    data: tuple[Data, ...]  # one per replication
    attacks: tuple[Attack, ...]
    levels: tuple[float, ...]
    settings: tuple[tuple[float, float], ...]  # (C, gamma)
    methods: tuple[Method, ...]
    grid: Grid | None = None
    seeds: tuple[int, ...] = ()  # one per replication
    paper_table: str | None = None
    figures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    details: tuple[str, ...] = ()  # how the data were read, for the settings at the end of a page
    attack_of_setting: bool = False  # the attacker's SVM has the setting's C and gamma
    default_setting: bool = False  # C and gamma are those of SVC()

    def cells(self) -> list[Cell]:
        """Every cell once, attacks first."""
        return list(dict.fromkeys(self._attack_cells())) + list(dict.fromkeys(self._method_cells()))

    def _combinations(self) -> Iterator[tuple[Data, int, Attack | None, float, tuple[float, float]]]:
        for data, seed in zip(self.data, self.seeds, strict=True):
            for setting in self.settings:
                for attack in self.attacks:
                    for level in self.levels:
                        yield data, seed, self.attack_at(attack, level, setting), level, setting

    def attack_at(self, attack: Attack, level: float, setting: tuple[float, float]) -> Attack | None:
        """The attack as it is run in a combination; none at level 0."""
        if level == 0:
            return None
        if self.attack_of_setting and attack.name != "reference":
            return replace(attack, params=params(**dict(attack.params), C=setting[0], gamma=setting[1]))
        return attack

    def _attack_cells(self) -> Iterator[Cell]:
        for data, seed, attack, level, _ in self._combinations():
            if attack is not None:
                yield attack_cell(data, attack, level, seed)

    def _method_cells(self) -> Iterator[Cell]:
        for place in self._combinations():
            for method in self.methods:
                yield self.method_cell(*place, method)

    def method_cell(
        self, data: Data, seed: int, attack: Attack | None, level: float, setting: Any, method: Method
    ) -> Cell:
        """The cell of a method; C, gamma and the grid are left out of those to which they do not matter."""
        C, gamma = setting if method.per_setting else (None, None)
        return Cell(data, attack, level, method, C, gamma, self.grid if method.needs_grid else None, seed)


ATTACK_METHOD = Method("attack", per_setting=False)


def attack_cell(data: Data, attack: Attack, level: float, seed: int) -> Cell:
    """The cell that computes poisoned labels."""
    # The authors' labels are one file: every replication reads the same cell.
    return plain_cell(data, attack, level, ATTACK_METHOD, 0 if attack.name == "reference" else seed)


def plain_cell(data: Data, attack: Attack, level: float, method: Method, seed: int) -> Cell:
    """A cell of a method to which C, gamma and grids do not matter."""
    return Cell(data, attack, level, method, None, None, None, seed)


@dataclass(frozen=True)
class Setting:
    """A point of a game's grid: the attacker's pool B, its flips per round k, the step and its decay."""

    budget: int
    flips: int
    eta: float
    decay: int | None


@dataclass
class CellResult:
    """What a finished cell leaves: tidy rows, arrays for figures, and its cost."""

    cell: Cell
    rows: list[tuple[str, str, str, float]] = field(default_factory=list)  # (config, statistic, metric, value)
    traces: dict[tuple[str, str], Any] = field(default_factory=dict)  # (config, name) -> array
    seconds: float = 0.0
    peak_memory: float = 0.0  # bytes, of the process while the cell's batch ran
    error: str | None = None
    traceback: str | None = None
    settings: dict[str, Setting] = field(default_factory=dict)  # config -> the point of the grid that it names

    @classmethod
    def failed(cls, cell: Cell, error: BaseException) -> CellResult:
        """The result of a cell that raised `error`: one line for people, and where it came from."""
        where = "".join(traceback.format_exception(error))
        return cls(cell, error=f"{type(error).__name__}: {error}", traceback=where)

    @classmethod
    def of(cls, cell: Cell, work: Callable[[CellResult], None]) -> CellResult:
        """The result that `work` fills, and its time; an exception is its error, and nothing else is left in it."""
        result, started = cls(cell), time.perf_counter()
        try:
            work(result)
        except Exception as error:
            result.__dict__.update(vars(cls.failed(cell, error)))  # others may share it, and shall see that it failed
        result.seconds = time.perf_counter() - started
        return result

    def add(self, metric: str, value: float, statistic: str = "final", config: str = "") -> None:
        """Append a row."""
        self.rows.append((config, statistic, metric, float(value)))

    def add_course(self, scores: dict[str, Any], epochs: Sequence[int] | None = None) -> None:
        """Rows of a training: scores where its accuracy is highest ("best") and at its end, and the curve."""
        peak = int(scores["accuracy"].argmax())
        for name, values in scores.items():
            self.add(name, values[peak], "best")
            self.add(name, values[-1], "last")
        self.add("round", peak + 1 if epochs is None else epochs[peak], "best")
        self.traces["", "accuracy"] = scores["accuracy"].astype("float16")
