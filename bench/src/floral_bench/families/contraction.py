"""The constants of the paper's Lemma 1 and what real iterations do: is a step a contraction?

Two runs of the SVM's projected gradient steps on the same labels, one from zero and one from random feasible duals, are
compared after every round: ratio_t = |a_t - b_t| / |a_{t-1} - b_{t-1}|. The lemma bounds it in the infinity norm by
kappa = |I - eta Q|_inf; the projection's own Jacobian I - yy'/m has infinity norm 2 - 2/m, so that the composed step is
only bounded by their product. In the spectral norm the projection is nonexpansive and the bound is
max |1 - eta lambda_i|.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from floral_bench.spec import Cell, CellResult, Grid
from floral_learn.datasets import Dataset
from floral_learn.game.dual import PROJECTIONS, gradient
from floral_learn.game.gram import DenseGram
from floral_learn.game.kernels import Kernel
from floral_learn.paper.lemmas import constants, kappa_z

if TYPE_CHECKING:
    import pandas as pd

    from floral_bench.reporting.results import Results

COLUMNS = (
    "kappa_inf", "induced_bound", "largest_ratio_inf", "share_above_kappa_inf",
    "kappa_2", "largest_ratio_2", "lambda_max", "lambda_min",
)  # fmt: skip


def run_stability(cells: list[Cell], labels: list[np.ndarray], dataset: Dataset) -> list[CellResult]:
    """Constants and measured ratios of each cell, one configuration an eta."""
    results = [CellResult(cell) for cell in cells]
    for result, y in zip(results, labels, strict=True):
        _measure(result, dataset, (y == dataset.classes[1]).astype(int))
    return results


def _measure(result: CellResult, dataset: Dataset, codes: np.ndarray) -> None:
    cell = result.cell
    grid = cell.grid or Grid()
    gram = DenseGram.from_rows(dataset.X_train, Kernel("rbf", float(cell.gamma or 1.0)))
    signs = 2.0 * codes - 1
    distances = _distances(gram, signs, float(cell.C or 1.0), grid, cell.seed)
    for j, eta in enumerate(grid.etas):
        config = f"eta={eta:g}"
        known = constants(gram.matrix, eta)
        kappa = known.kappa_infinity
        ratios = {norm: d[1:, j] / np.maximum(d[:-1, j], 1e-300) for norm, d in distances.items()}
        numbers = {
            "kappa_inf": kappa,
            "induced_bound": kappa_z(gram.n) * kappa,
            "largest_ratio_inf": ratios["inf"].max(),
            "share_above_kappa_inf": float((ratios["inf"] > kappa * (1 + 1e-9)).mean()),
            "kappa_2": known.kappa_spectral,
            "largest_ratio_2": ratios["2"].max(),
            "lambda_max": known.lambda_max,
            "lambda_min": known.lambda_min,
        }
        for name, value in numbers.items():
            result.add(name, float(value), config=config)
        for norm, ratio in ratios.items():
            result.traces[config, f"ratio_{norm}"] = ratio


def _distances(gram: DenseGram, signs: np.ndarray, C: float, grid: Grid, seed: int) -> dict[str, np.ndarray]:
    """|a_t - b_t| for t = 0 .. T and every eta, (T + 1, etas), in both norms."""
    count, n = len(grid.etas), gram.n
    etas = np.tile(grid.etas, 2)  # first the runs from zero, then those from random duals
    y = np.asfortranarray(np.repeat(signs[:, None], 2 * count, 1))
    cap, project = np.full((n, 1), C), PROJECTIONS["exact"]
    random = np.random.default_rng(seed).uniform(0, C, size=(n, 1))
    dual = np.asfortranarray(np.concatenate([np.zeros((n, count)), np.repeat(random, count, 1)], axis=1))
    dual = project(dual, y, cap, np.zeros(2 * count), gram.backend).dual
    gaps = [dual[:, :count] - dual[:, count:]]
    for _ in range(grid.rounds):
        step = dual - etas * gradient(gram.matmat(y * dual), y)
        dual = project(step, y, cap, np.zeros(2 * count), gram.backend).dual
        gaps.append(dual[:, :count] - dual[:, count:])
    return {
        "inf": np.array([np.abs(gap).max(0) for gap in gaps]),
        "2": np.array([np.linalg.norm(gap, axis=0) for gap in gaps]),
    }


def stability_table(results: Results) -> pd.DataFrame:
    """A row per level and eta: means over replications."""
    frame = results.frame[results.frame.statistic == "final"]
    table = frame.pivot_table(index=["level", "config"], columns="metric", values="value", sort=False)
    table = table[[name for name in COLUMNS if name in table.columns]].map(lambda value: float(f"{value:.4g}"))
    table = table.reset_index().rename(columns={"level": "poisoned", "config": "step"})
    return table.assign(poisoned=[f"{level:g} %" for level in table.poisoned]).rename_axis(columns=None)
