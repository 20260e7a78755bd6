"""Algorithm 1 once more, in plain numpy, for what the library itself does not play.

Two things need it. The paper's projection *as printed* (Algorithm 2) is not a projection: its update reads
mu_t = phi(mu_{t-1}) / |I_z| where the derivation in the appendix has mu_{t-1} + phi(mu_{t-1}) / |I_z|, so that mu
swings between two values for as long as it is let. And an attack on "the duals of the SVM" means those of an SVM that
was stopped after a fixed number of rounds, far from the optimum, as the paper's tables train it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics.pairwise import rbf_kernel

from floral_learn.core.game import step_schedule
from floral_learn.core.projections import project
from floral_learn.datasets import Dataset
from floral_learn.evaluation.families.games import DECAY, configurations
from floral_learn.evaluation.metrics import binary_scores
from floral_learn.evaluation.spec import Cell, CellResult, Grid, Setting

PRINTED_ROUNDS, PRINTED_TOLERANCE = 1000, 1e-21  # T_proj and epsilon of the paper
SWING = 1e-12
_METRICS = ("accuracy", "balanced_accuracy", "hinge_loss")

Project = Callable[[np.ndarray, np.ndarray, float], np.ndarray]


def project_as_printed(z: np.ndarray, signs: np.ndarray, cap: float) -> np.ndarray:
    """Algorithm 2 on columns z (n, R), without its lines 5 to 7: what comes out need not satisfy ``signs' dual = 0``.

    Those lines stop where the sum is zero to the last bit, which float64 meets or misses by chance: met, the result is
    the exact projection; missed, mu swings until the rounds are over. Only the second reading can be repeated.
    """
    last, going = np.zeros(z.shape[1]), np.arange(z.shape[1])  # columns leave once their end is known
    mu, before = np.zeros(z.shape[1]), np.full(z.shape[1], np.nan)
    for t in range(1, PRINTED_ROUNDS + 1):
        part, sign = z[:, going], signs[:, going]
        dual = np.clip(part - mu * sign, 0, cap)
        signed = dual * sign
        inner = (dual > 0) & (dual < cap)
        count = inner.sum(0)
        eta = np.maximum(count, 1)
        # points at the cap add C y, points inside lambda y, points at zero nothing: all of it is lambda' y
        new = (eta - count) / eta * mu + signed.sum(0) / eta
        settled = np.abs(new - mu) <= PRINTED_TOLERANCE
        swings = np.abs(new - before) <= SWING  # to rounding; which of its two values comes last is known
        ends = settled | swings if t < PRINTED_ROUNDS else np.ones(len(going), bool)
        even = (PRINTED_ROUNDS - t) % 2 == 0
        last[going[ends]] = np.where(settled | even, new, mu)[ends]
        going, before, mu = going[~ends], mu[~ends], new[~ends]
        if not len(going):
            break
    return np.clip(z - last * signs, 0, cap)


def project_exactly(z: np.ndarray, signs: np.ndarray, cap: float) -> np.ndarray:
    """The projection onto {0 <= dual <= cap, signs' dual = 0}, column by column."""
    return np.asarray(project(z, signs, cap).dual)


def play(
    K: np.ndarray,
    signs: np.ndarray,
    cap: float,
    steps: np.ndarray,
    pools: np.ndarray,
    flips: np.ndarray,
    seed: int,
    projection: Project,
    after_round: Callable[[int, np.ndarray, np.ndarray], Any] = lambda number, weights, bias: None,
) -> np.ndarray:
    """Play R games at once and return their duals (n, R); steps are (T, R), pools B and flips k are (R,).

    `after_round` gets the round's number, the signed duals (n, R) and the bias (R,) by the KKT rule.
    """
    rng = np.random.default_rng(seed)
    n, width = len(signs), steps.shape[1]
    dual, order = np.zeros((n, width)), rng.permutation(n)
    for number, eta in enumerate(steps, start=1):
        given = np.repeat(signs[:, None], width, axis=1)
        if number > 1:  # there is nothing to rank in the first round
            for j in np.flatnonzero(pools):
                pool = order[np.argsort(-dual[order, j], kind="stable")[: pools[j]]]
                given[rng.permutation(pool)[: flips[j]], j] *= -1
        z = dual - eta * (given * (K @ (given * dual).astype(K.dtype)) - 1)
        dual = projection(z, given, cap)
        values = K @ (given * dual).astype(K.dtype)
        free = (dual > 0) & (dual < cap)
        bias = np.where(free, given - values, 0).sum(0) / np.maximum(free.sum(0), 1)
        after_round(number, given * dual, bias)
    return dual


def run_printed(
    cells: list[Cell],
    labels: list[np.ndarray],
    dataset: Dataset,
    progress: Callable[[float], None] = lambda share: None,
) -> list[CellResult]:
    """FLORAL with the projection as the paper prints it, for every point of each cell's grid."""
    positive = dataset.y_test == dataset.classes[1]
    results = []
    for number, (cell, y) in enumerate(zip(cells, labels, strict=True)):
        grid, points = cell.grid or Grid(), configurations(cell, len(y))
        K, test = (rbf_kernel(X, dataset.X_train, gamma=cell.gamma) for X in (dataset.X_train, dataset.X_test))
        steps = np.stack([step_schedule(p[3], grid.rounds, (DECAY, p[4]) if p[4] else None) for p in points], axis=1)
        scores: list[np.ndarray] = []
        signs = np.where(y == dataset.classes[1], 1.0, -1.0)
        pools, flips = (np.array([point[i] for point in points]) for i in (1, 2))
        keep = partial(_keep_scores, test, scores)
        play(K, signs, float(cell.C or 1.0), steps, pools, flips, cell.seed, project_as_printed, keep)
        results.append(_result(cell, points, np.stack(scores), positive))
        progress((number + 1) / len(cells))
    return results


def _keep_scores(test: np.ndarray, scores: list[np.ndarray], _: int, weights: np.ndarray, bias: np.ndarray) -> None:
    scores.append(test @ weights + bias)


def _result(cell: Cell, points: list[Any], scores: np.ndarray, positive: np.ndarray) -> CellResult:
    """Best, last and average rows from the decision values (T, m, R)."""
    result = CellResult(cell)
    accuracy = ((scores > 0) == positive[None, :, None]).mean(1)
    mean = binary_scores(scores[len(scores) // 2 :].mean(0), positive)
    last = binary_scores(scores[-1], positive)
    for j, (config, budget, flips, eta, decay) in enumerate(points):
        result.settings[config] = Setting(budget, flips, eta, decay)
        peak = int(np.argmax(accuracy[:, j]))
        best = binary_scores(scores[peak][:, j : j + 1], positive)
        for name in _METRICS:
            result.add(name, best[name][0], "best", config)
            result.add(name, last[name][j], "last", config)
            result.add(name, mean[name][j], "average", config)
        result.add("round", peak + 1, "best", config)
        result.traces[config, "accuracy"] = accuracy[:, j].astype(np.float16)
    return result


class EarlyStoppedSVC(ClassifierMixin, BaseEstimator):
    """An SVM after so many projected gradient rounds, for an attack on its duals (``dual_coef_``, ``support_``)."""

    def __init__(self, C: float = 5.0, gamma: float = 0.005, eta: float = 1e-4, rounds: int = 500) -> None:
        self.C, self.gamma, self.eta, self.rounds = C, gamma, eta, rounds

    def fit(self, X: np.ndarray, y: np.ndarray) -> EarlyStoppedSVC:
        """Train on two classes; K is held in float32."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        signs = 2.0 * codes - 1
        K = rbf_kernel(np.asarray(X, np.float32), gamma=self.gamma)
        steps, none = np.full((self.rounds, 1), self.eta), np.zeros(1, int)
        dual = play(K, signs, self.C, steps, none, none, 0, project_exactly)[:, 0]
        self.support_, self.dual_coef_ = np.arange(len(dual)), (signs * dual)[None, :]
        return self
