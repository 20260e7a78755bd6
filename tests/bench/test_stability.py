from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from tiny import TINY

from floral_bench.cell_data import load
from floral_bench.families.contraction import stability_table
from floral_bench.reporting import write
from floral_bench.reporting.results import Results
from floral_bench.runner import run_suite
from floral_bench.spec import Grid, Method
from floral_bench.store import Store
from floral_learn.game import Kernel

ETAS = (1e-3, 1e-2)
SUITE = replace(
    TINY,
    methods=(Method("stability", needs_grid=True),),
    grid=Grid(rounds=20, flips=(), etas=ETAS, decays=(None,)),
    figures=("stability",),
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("stability") / "s.sqlite") as store:
        assert run_suite(SUITE, store).failed == 0
        yield Results(SUITE, store)


def test_constants_are_those_of_the_matrix(results):
    place, cells = next(iter(results.cells.items()))
    X = load(cells[0].data).X_train
    K = np.exp(-place.setting[1] * ((X[:, None] - X[None]) ** 2).sum(-1))
    assert Kernel("rbf", place.setting[1]).definite
    step = np.eye(len(K)) - 1e-2 * K
    rows = {(config, metric): value for config, _, metric, value in results.store.rows(cells[0])}
    assert rows["eta=0.01", "kappa_inf"] == pytest.approx(np.linalg.norm(step, np.inf))
    assert rows["eta=0.01", "kappa_2"] == pytest.approx(np.linalg.norm(step, 2))
    assert rows["eta=0.01", "lambda_max"] == pytest.approx(np.linalg.eigvalsh(K)[-1])


def test_in_the_spectral_norm_no_step_moves_two_runs_apart(results):
    for cells in results.cells.values():
        for cell in cells:
            rows = {(config, metric): value for config, _, metric, value in results.store.rows(cell)}
            for eta in ETAS:
                assert rows[f"eta={eta:g}", "largest_ratio_2"] <= rows[f"eta={eta:g}", "kappa_2"] + 1e-9
                assert rows[f"eta={eta:g}", "largest_ratio_inf"] <= rows[f"eta={eta:g}", "induced_bound"] + 1e-9


def test_the_table_and_the_figure_are_written(results, tmp_path, monkeypatch):
    monkeypatch.setattr(write, "_bounds", partial(write._bounds, n_games=20, rounds=40))  # tests/theory plays more
    table = stability_table(results)
    assert list(table.columns[:3]) == ["poisoned", "step", "kappa_inf"]
    assert len(table) == len(SUITE.levels) * len(ETAS)
    written = {path.name for path in write.write_outputs(results, tmp_path, {})}
    assert {"accuracy.md", "rows.csv", "stability.png", "run.json"} == written
    bounds = (tmp_path / "accuracy.md").read_text().split("## Bounds, checked along games")[1].strip()
    violated = {line.split(" | ")[0].strip("| "): line.split(" | ")[-3] for line in bounds.splitlines()[2:]}
    assert violated["lemma 1 printed"] != "0"  # the paper's Lemma 1 fails on real rounds
    assert violated["lemma 1 proven"] == violated["lemma 2 printed"] == "0"
