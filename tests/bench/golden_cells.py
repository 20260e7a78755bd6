"""The cells whose numbers are kept in golden_cells.json, and the command that writes that file again.

    python tests/bench/golden_cells.py

It adds new cells, and refuses other numbers for a cell whose version is not above the one that they were written for:
raise RESULTS_VERSION in floral_bench/spec.py, or VERSION in questions/cells.py or crowds/cells.py for that suite alone.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sklearn.datasets import load_wine

from floral_bench.contenders import SAFE_VERSION
from floral_bench.crowds.cells import crowd_cells
from floral_bench.crowds.score import run_cell as score_votes
from floral_bench.plan import family_of
from floral_bench.questions.ask_and_score import run_cell as ask_and_score
from floral_bench.questions.cells import question_cells
from floral_bench.runner import run_suite
from floral_bench.spec import RESULTS_VERSION, Attack, Cell, CellResult, Data, Grid, Method, Suite, params
from floral_bench.store import Store
from floral_bench.suites import ABLATIONS, ALL_METHODS, SUITES, nn_methods
from floral_learn.base.files import write_atomically

FILE = Path(__file__).with_name("golden_cells.json")
DIGITS = 3
# What differs between machines by more than rounding: time, memory, and residuals near zero.
LEFT_OUT = {"kkt_residual", "eta_lambda_max", "seconds"}
PLACES = "places of the labels 1, summed"
COUNTS = {"flips", "round", PLACES}  # compared exactly
MOON = (Data("moon", params(seed=1, n_train=120, n_val=60, n_test=400)),)
SMALL = (Data("moon", params(seed=1, n_train=250, n_val=60, n_test=400)),)
# Under labels of these, ContradictedLabels leaves rows out.
CONTRADICTED = (Data("moon", params(seed=1, n_train=400, n_val=60, n_test=400)),)
AT_HAND = ("plain-boosting",)  # of `bench --data`
CLEANLAB = "cleanlab-svc"

Golden = dict[str, dict[str, Any]]  # family and cell -> version, and "config / statistic / metric" -> number, rounded


def three_classes(folder: Path) -> tuple[Data, ...]:
    """Wine as a user's file."""
    path = folder / "wine.csv"
    load_wine(as_frame=True).frame.to_csv(path, index=False)
    return (Data("csv", params(path=str(path), label="target", seed=1)),)


def suites(folder: Path) -> list[Suite]:
    """Small suites of every family of `plan`: attacks, games, single fits, networks, heads."""
    base = replace(SUITES["moon"], data=MOON, seeds=(1,), levels=(0, 10), figures=(), paper_table=None)
    grid = Grid(rounds=60, flips=(0.05,), etas=(1e-3,), decays=(None, 20))
    attacks = tuple(Attack(name) for name in ("farthest", "alfa", "alfa-tilt", "lfa", "random", "randomized-top-k"))
    early = Attack("top-k", params(duals="early", eta=1e-2))
    against_network = Attack("gradient", params(surrogate="nn", epochs=4))
    biased = Attack("class-biased")
    rest = params(multi_class="one-vs-rest")
    several = (Method("floral-multiclass"), Method("floral-multiclass", rest, label="one-vs-rest"), Method("svc"))
    fits = tuple(m for m in ALL_METHODS if not m.needs_grid and m.name not in ("nn", "nn-pgd"))
    others = (Method("rs", per_setting=False), Method("rsrnn", per_setting=False), Method("dpa", per_setting=False))
    names = (*AT_HAND, CLEANLAB) if find_spec("cleanlab") is not None else AT_HAND
    ours = params(version=SAFE_VERSION)
    at_hand = tuple(Method(name, per_setting=False) for name in names)
    safe = tuple(Method(name, ours, per_setting=False) for name in ("safe-svc", "safe-boosting"))
    safe += (Method("plain-boosting", per_setting=False),)
    networks = tuple(Method(name, params(epochs=4), per_setting=False) for name in ("nn", "nn-pgd"))
    return [
        replace(base, name="attacks", attacks=attacks, levels=(10,), methods=(), attack_of_setting=True),
        replace(base, name="early", attacks=(early,), levels=(10,), methods=(), attack_of_setting=True),
        replace(base, name="network", attacks=(against_network,), levels=(10,), methods=(), grid=None),
        replace(
            base, name="several", data=three_classes(folder), settings=((5, 0.1),), attacks=(Attack("random"),),
            methods=several,
        ),
        replace(base, name="games", methods=(*(m for m in ALL_METHODS if m.needs_grid), *ABLATIONS), grid=grid),
        replace(base, name="fits", methods=(*fits, *others), grid=None),
        replace(base, name="at hand", data=SMALL, attacks=(biased,), levels=(30,), methods=at_hand, grid=None),
        replace(base, name="safe", data=CONTRADICTED, attacks=(biased,), levels=(25,), methods=safe, grid=None),
        replace(base, name="networks", methods=(*networks, *nn_methods(epochs=4, n_rounds=50)[1:4]), grid=None),
    ]  # fmt: skip


def questions() -> list[Cell]:
    """A few cells of the questions suite: two and three classes, our questions and a peer."""
    every = question_cells(quick=True, methods=["review", "doubtful"], levels=[30.0])
    return [cell for cell in every if cell.attack in (Attack("far"), Attack("one class"))]


def crowds() -> list[Cell]:
    """A few cells of the crowd suite: votes as they are and poisoned, ours with features and without, majority."""
    names = ["majority", "ours without features", "ours"]
    every = crowd_cells(quick=True, methods=names, levels=[40.0])
    return [cell for cell in every if cell.data.name == "wine" and cell.attack.name in ("none", "pair")]


def compute(folder: Path) -> Golden:
    """The cells as they are now."""
    found: Golden = {}
    with Store(folder / "golden.sqlite") as store:
        for suite in suites(folder):
            report = run_suite(suite, store)
            errors = store.errors(cell.key for cell in suite.cells())
            assert not report.failed, errors
            for cell in suite.cells():
                attack = "clean" if cell.attack is None else cell.attack.name
                name = f"{family_of(cell)}: {cell.method.title}, {attack} {cell.level:g} %"
                name += "" if cell.data in MOON + SMALL + CONTRADICTED else f", {cell.data.name}"
                found[name] = _entry(cell, store.rows(cell))
                if family_of(cell) == "attack":
                    labels = store.trace(cell, "labels")
                    found[name]["numbers"][PLACES] = int((labels == 1).nonzero()[0].sum())
    for result in map(ask_and_score, questions()):
        told = dict(result.cell.method.params)
        found[_name("questions", told["who"], result)] = _of(result)
    for result in map(score_votes, crowds()):
        found[_name("crowd", dict(result.cell.method.params)["aggregator"], result)] = _of(result)
    return found


def _name(family: str, method: str, result: CellResult) -> str:
    return f"{family}: {method}, {result.cell.attack.name} {result.cell.level:g} %, {result.cell.data.name}"


def _of(result: CellResult) -> dict[str, Any]:
    assert result.error is None, result.traceback or result.error
    return _entry(result.cell, result.rows)


def _entry(cell: Cell, rows: list[tuple[str, str, str, float]]) -> dict[str, Any]:
    """What decides whether a store takes a row for the same (see `Cell.key`), and the rows."""
    own = dict(cell.method.params).get("version")
    return {
        "version": str(RESULTS_VERSION) + (f".{own}" if own is not None else ""),
        "numbers": {
            f"{config} / {statistic} / {metric}": int(value) if metric in COUNTS else round(value, DIGITS)
            for config, statistic, metric, value in rows
            if metric not in LEFT_OUT
        },
    }


def differences(before: dict[str, float], now: dict[str, float]) -> Iterator[str]:
    """Words for each number that is not as it was: counts exactly, others to rounding and to another BLAS library."""
    for name in before.keys() | now.keys():
        old, new = before.get(name), now.get(name)
        allowed = 0 if old is None or isinstance(old, int) else 1.5 * 10**-DIGITS + 1e-3 * abs(old)
        if old is None or new is None or abs(new - old) > allowed:
            yield f"{name}: {old} -> {new}"


def renew(old: Golden, now: Golden) -> Golden:
    """What the file shall hold: `now`, with `old` numbers where they agree; a ValueError where no version rose."""
    kept: Golden = {}
    for name, cell in now.items():
        before = old.get(name, {"version": "0", "numbers": {}})
        changed = sorted(differences(before["numbers"], cell["numbers"]))
        version = cell["version"]
        if _order(version) < _order(before["version"]):
            raise ValueError(f"{name}: version {version} is below {before['version']}, of which its numbers are")
        if changed and version == before["version"]:
            raise ValueError(f"{name}: numbers changed and version {version} did not rise\n" + "\n".join(changed))
        kept[name] = {"version": version, "numbers": cell["numbers"] if changed else before["numbers"]}
    return kept


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def write(now: Golden, file: Path = FILE) -> None:
    """Write the file, unless a version had to rise."""
    old = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    write_atomically(file, json.dumps(renew(old, now), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    if find_spec("cleanlab") is None:
        sys.exit(f"{CLEANLAB} needs cleanlab")
    with tempfile.TemporaryDirectory() as work:
        try:
            write(compute(Path(work)))
        except ValueError as error:
            sys.exit(f"nothing written: {error}")
