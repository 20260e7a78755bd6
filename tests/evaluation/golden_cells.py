"""The cells whose numbers are kept in golden_cells.json, and the command that writes that file again.

    python tests/evaluation/golden_cells.py

Run it when a change of the code is meant to change numbers, and raise RESULTS_VERSION in the same commit.
"""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

from floral_learn.evaluation.plan import family_of
from floral_learn.evaluation.runner import run_suite
from floral_learn.evaluation.spec import RESULTS_VERSION, Attack, Data, Grid, Method, Suite, params
from floral_learn.evaluation.store import Store
from floral_learn.evaluation.suites import ABLATIONS, ALL_METHODS, SUITES, nn_methods

FILE = Path(__file__).with_name("golden_cells.json")
DIGITS = 3
# What differs between machines by more than rounding: time, memory, and residuals near zero.
LEFT_OUT = {"kkt_residual", "eta_lambda_max"}
MOON = (Data("moon", params(seed=1, n_train=120, n_val=60, n_test=400)),)
THREE = (Data("arena-wine", params(seed=1)),)


def suites() -> list[Suite]:
    """Small suites of every family: attacks, games, single fits, networks, heads, contraction."""
    base = replace(SUITES["moon"], data=MOON, seeds=(1,), levels=(0, 10), figures=(), paper_table=None)
    grid = Grid(rounds=60, flips=(0.05,), etas=(1e-3,), decays=(None, 20))
    attacks = tuple(Attack(name) for name in ("farthest", "alfa", "alfa-tilt", "lfa", "random", "randomized-top-k"))
    early = Attack("top-k", params(duals="early", eta=1e-2))
    against_network = Attack("gradient", params(surrogate="nn", epochs=4))
    rest = params(multi_class="one-vs-rest")
    several = (Method("floral-multiclass"), Method("floral-multiclass", rest, label="one-vs-rest"), Method("svc"))
    fits = tuple(m for m in ALL_METHODS if not m.needs_grid and m.name not in ("nn", "nn-pgd"))
    others = (Method("rs", per_setting=False), Method("rsrnn", per_setting=False), Method("dpa", per_setting=False))
    networks = tuple(Method(name, params(epochs=4), per_setting=False) for name in ("nn", "nn-pgd"))
    return [
        replace(base, name="attacks", attacks=attacks, levels=(10,), methods=(), attack_of_setting=True),
        replace(base, name="early", attacks=(early,), levels=(10,), methods=(), attack_of_setting=True),
        replace(base, name="network", attacks=(against_network,), levels=(10,), methods=(), grid=None),
        replace(base, name="several", data=THREE, settings=((5, 0.1),), attacks=(Attack("random"),), methods=several),
        replace(base, name="games", methods=(*(m for m in ALL_METHODS if m.needs_grid), *ABLATIONS), grid=grid),
        replace(base, name="fits", methods=(*fits, *others), grid=None),
        replace(base, name="networks", methods=(*networks, *nn_methods(epochs=4, n_rounds=50)[1:4]), grid=None),
        replace(base, name="contraction", methods=(Method("stability", needs_grid=True),), grid=grid),
    ]  # fmt: skip


def compute(folder: Path) -> dict[str, dict[str, float]]:
    """family and cell -> "config / statistic / metric" -> number, rounded."""
    found: dict[str, dict[str, float]] = {}
    with Store(folder / "golden.sqlite") as store:
        for suite in suites():
            report = run_suite(suite, store)
            errors = store.errors(cell.key for cell in suite.cells())
            assert not report.failed, errors
            for cell in suite.cells():
                attack = "clean" if cell.attack is None else cell.attack.name
                name = f"{family_of(cell)}: {cell.method.title}, {attack} {cell.level:g} %"
                name += "" if cell.data in MOON else f", {cell.data.name}"
                numbers = {
                    f"{config} / {statistic} / {metric}": round(value, DIGITS)
                    for config, statistic, metric, value in store.rows(cell)
                    if metric not in LEFT_OUT
                }
                if family_of(cell) == "attack":
                    labels = store.trace(cell, "labels")
                    numbers["places of the labels 1, summed"] = float((labels == 1).nonzero()[0].sum())
                found[name] = numbers
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        content = {"results_version": RESULTS_VERSION, "cells": compute(Path(folder))}
    FILE.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
