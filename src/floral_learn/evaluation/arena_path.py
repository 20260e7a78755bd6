"""FLORAL at every fixed budget of a path, as columns of one game: plain settings, and what the oracle picks from."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from floral_learn.core.arrays import NUMPY
from floral_learn.core.attackers import RandomizedTopK
from floral_learn.core.choose_gram import choose_gram
from floral_learn.core.game import Game, solve, step_schedule
from floral_learn.core.kernels import Kernel, resolve_gamma
from floral_learn.core.state import GameState
from floral_learn.datasets import Dataset
from floral_learn.evaluation.metrics import label_scores
from floral_learn.evaluation.spec import Cell, CellResult

# (C, budget as a share of the rows): the paper's C and SVC's
POINTS = (*((10.0, b) for b in (0.0, 0.02, 0.1, 0.2)), *((1.0, b) for b in (0.0, 0.05, 0.1, 0.2, 0.4)))
ROUNDS = 500


def config_name(cap: float, budget: float) -> str:
    """How the store and the tables call a point of the path."""
    return f"C={cap:g} B={budget:g}"


def run_paths(
    cells: list[Cell],
    labels: list[np.ndarray],
    dataset: Dataset,
    progress: Callable[[float], None] = lambda share: None,
) -> list[CellResult]:
    """Play every (C, budget) of the path on each cell's labels: rbf, gamma="scale", automatic step, averaged model."""
    kernel = Kernel("rbf", resolve_gamma("scale", dataset.X_train))
    gram = choose_gram(dataset.X_train, kernel, gram="dense")
    eta = 1.0 / gram.lambda_max(200, 1e-10, centred=True)
    rows, test = (kernel.prepare(X, NUMPY, "float64") for X in (dataset.X_train, dataset.X_test))
    values = kernel(test, rows, NUMPY)
    n, classes = len(rows), dataset.classes
    width = 1 if len(classes) == 2 else len(classes)
    counts = np.array([int(budget * n) for _, budget in POINTS])
    results = []
    for number, (cell, y) in enumerate(zip(cells, labels, strict=True)):
        result, started = CellResult(cell), time.perf_counter()
        game = Game(
            gram,
            np.searchsorted(classes, y),
            np.repeat(np.array([[cap for cap, _ in POINTS]]), width, axis=1) * np.ones((n, 1)),
            step_schedule(eta, ROUNDS),
            RandomizedTopK(np.repeat(counts[:, None], width, axis=1), counts // 2),
            n_classes=len(classes),
            seeds=1000 * cell.seed + np.arange(len(POINTS)),
        )
        found = solve(game, callback=_forget_flips)
        scores = (values @ found.mean_weights + found.mean_bias).reshape(len(test), len(POINTS), width)
        chosen = (scores[..., 0] > 0).astype(int) if width == 1 else scores.argmax(axis=2)
        for j, (cap, budget) in enumerate(POINTS):
            for name, value in label_scores(classes[chosen[:, j]], dataset.y_test).items():
                result.add(name, value, "average", config_name(cap, budget))
        # The time of one point: columns share the products, so that this is less than a fit of its own takes.
        result.seconds = (time.perf_counter() - started) / len(POINTS)
        results.append(result)
        progress((number + 1) / len(cells))
    return results


def _forget_flips(state: GameState) -> bool:
    """The game keeps every round's flips, which nobody asks for here."""
    state.history.rows["flips"][-1] = state.history.rows["flips"][-1][:0]
    return False
