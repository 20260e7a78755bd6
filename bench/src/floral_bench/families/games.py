"""All cells that are trained by projected gradient rounds on the same rows, as columns of one game.

FLORAL's grid (k x eta x decay), the plain SVM and the sanitised, weighted or noise-corrected SVMs (eta x decay) differ
only in labels, caps, budgets and steps; a column each. Test accuracy after every round is one product for all of them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.linalg import solve_triangular

from floral_bench.families.plain_rounds import project_as_printed
from floral_bench.families.sanitise import Prepared, prepare
from floral_bench.spec import Cell, CellResult, Grid, Setting
from floral_learn.datasets import Dataset
from floral_learn.game.arrays import Array, NumpyBackend, backend_for
from floral_learn.game.attackers import Attacker, LargestLoss, RandomizedTopK
from floral_learn.game.game import Game, GameResult, GameState, solve, step_schedule
from floral_learn.game.gram import Gram, choose_gram
from floral_learn.game.kernels import Kernel
from floral_learn.game.low_rank import LowRankGram

ATTACKED = ("floral", "largest-loss", "floral-slip", "floral-printed")
PRINTED = "floral-printed"  # its projection is numpy's alone
DECAY = 0.1
TRACED_ROWS = 3000  # flip rates of single rows are kept up to here, for the pictures of small data sets
_TRACED = ("accuracy", "balanced_accuracy", "hinge_loss")


@dataclass(frozen=True)
class Column:
    """One game: a cell at one point of its grid."""

    cell: int
    config: str
    at: Setting


def configurations(cell: Cell, n: int) -> dict[str, Setting]:
    """Every point of the cell's grid by its name; methods without an attacker have B = k = 0."""
    grid = cell.grid or Grid()
    attackers = [(0, 0)]
    if cell.method.name in ATTACKED:
        attackers = [(B, B // 2) for B in grid.budgets] or [(2 * round(s * n), round(s * n)) for s in grid.flips]
    points = product(attackers, (*grid.etas, *grid.more_etas), (*grid.more_decays, *grid.decays))
    return {
        f"{f'B={B} k={k} ' if B else ''}eta={eta:g} decay={decay or 'none'}": Setting(B, k, eta, decay)
        for (B, k), eta, decay in points
    }


class ScaledGram(Gram):
    """K with its off-diagonal part times a factor of its own in each column: LN-SVM's expected Gram beside plain ones.

    The diagonal of K is one (rbf). `scale` has one entry per column of the game; wider products repeat it.
    """

    kind = "scaled"

    def __init__(self, base: Gram, scale: np.ndarray) -> None:
        self.base, self.backend = base, base.backend
        self.n, self.dtype, self.nbytes = base.n, base.dtype, base.nbytes
        self.scale = scale

    def matmat(self, columns: Array) -> Array:
        """The product, column by column with its own scale."""
        scale = self.backend.array(np.tile(self.scale, columns.shape[1] // len(self.scale)))
        return self.base.matmat(columns) * scale + columns * (1 - scale)


class TestScores:
    """Decision values of test rows after each round, from one product for all columns (float32)."""

    __test__ = False  # not a test class, whatever its name suggests to pytest

    def __init__(self, gram: Gram, kernel: Kernel, X: np.ndarray, X_test: np.ndarray) -> None:
        base = gram.base if isinstance(gram, ScaledGram) else gram
        self.backend: NumpyBackend = base.backend
        test = kernel.prepare(X_test, self.backend, "float32")
        if isinstance(base, LowRankGram):
            marks = kernel.prepare(X[base.landmarks], self.backend, "float32")
            values = self.backend.numpy(kernel(test, marks, self.backend))
            # f = k(test, landmarks) corner^-T (F' w): the triangular solve is done once, here.
            half = solve_triangular(base.corner, values.T.astype(np.float64), lower=True).T
            self.inner: Array | None = base.factor
            self.outer = self.backend.array(np.ascontiguousarray(half, dtype=np.float32))
        else:
            self.inner = None
            self.outer = kernel(test, kernel.prepare(X, self.backend, "float32"), self.backend)

    def __call__(self, weights: Array, bias: Array) -> Array:
        """f on the test rows, (m, columns)."""
        weights = self.backend.cast(weights, self.outer.dtype)
        if self.inner is not None:
            weights = self.inner.T @ weights
        return self.outer @ weights + self.backend.cast(bias, self.outer.dtype)


def run_games(
    cells: list[Cell],
    labels: list[np.ndarray],
    dataset: Dataset,
    device: str | None = None,
    traced: tuple[str, ...] = ("accuracy",),
) -> list[CellResult]:
    """Run cells that share data, C, gamma and rounds; `labels` are the training labels of each.

    A cell whose preparation fails (a sanitiser that leaves one class, say) is an error of its own. `traced` are the
    metrics of which every round is kept.
    """
    results = [CellResult(cell) for cell in cells]
    prepared: dict[int, Prepared] = {}
    for number, (cell, y) in enumerate(zip(cells, labels, strict=True)):
        try:
            prepared[number] = prepare(cell, dataset, y)
        except Exception as error:
            results[number] = CellResult.failed(cell, error)
    if not prepared:
        return results
    n = len(dataset.y_train)
    columns = [Column(number, *point) for number in prepared for point in configurations(cells[number], n).items()]
    first = cells[0]
    backend = backend_for(None if first.method.name == PRINTED else device)
    kernel = Kernel("rbf", float(first.gamma or 1.0))
    gram: Gram = choose_gram(dataset.X_train, kernel, rng=np.random.default_rng(first.seed), backend=backend)
    steepest = gram.lambda_max(30, 1e-3, centred=True)
    _warn_of_steps(columns, steepest, n)
    recorder = _play(columns, cells, prepared, gram, kernel, dataset)
    for number, result in enumerate(results):
        if result.error is None:
            own = [j for j, column in enumerate(columns) if column.cell == number]
            recorder.write(result, own, columns, traced)
            for j in own:
                if columns[j].at.eta * steepest > 2:
                    result.add("eta_lambda_max", columns[j].at.eta * steepest, "last", columns[j].config)
    return results


def _warn_of_steps(columns: list[Column], steepest: float, n: int) -> None:
    """Absolute step sizes do not carry from 500 rows to 20,000: lambda_max grows with n."""
    wild = sorted({column.at.eta for column in columns if column.at.eta * steepest > 2})
    if wild:
        names = ", ".join(f"{eta:g}" for eta in wild)
        warnings.warn(
            f"eta = {names} is above 2 / lambda_max = {2 / steepest:.3g} of these {n:,} rows: those games oscillate",
            UserWarning,
            stacklevel=3,
        )


def _play(
    columns: list[Column],
    cells: list[Cell],
    prepared: dict[int, Prepared],
    gram: Gram,
    kernel: Kernel,
    dataset: Dataset,
) -> _Recorder:
    parts = [prepared[column.cell] for column in columns]
    scale = np.array([part.gram_scale for part in parts])
    gram = gram if np.all(scale == 1) else ScaledGram(gram, scale)
    rounds = (cells[0].grid or Grid()).rounds
    steps = np.stack([steps_of(column, cells[column.cell], rounds) for column in columns], axis=1)
    flips, budget = (np.array([getattr(column.at, name) for column in columns]) for name in ("flips", "budget"))
    name = cells[columns[0].cell].method.name
    attacker: Attacker = LargestLoss(flips) if name == "largest-loss" else RandomizedTopK(budget[:, None], flips)
    game = Game(
        gram=gram,
        labels=np.stack([part.labels for part in parts], axis=1),
        cap=np.stack([part.cap for part in parts], axis=1),
        steps=steps,
        attacker=attacker,
        # Seeds by replication and place in the grid, so that a column plays the same game in any batch.
        seeds=np.array(
            [1000 * cells[c.cell].seed + list(configurations(cells[c.cell], gram.n)).index(c.config) for c in columns]
        ),
    )
    poisoned = np.stack([part.poisoned for part in parts], axis=1)
    positive = dataset.y_test == dataset.classes[1]
    recorder = _Recorder(TestScores(gram, kernel, dataset.X_train, dataset.X_test), positive, poisoned, rounds)
    recorder.close(solve(replace(game, projection=project_as_printed) if name == PRINTED else game, recorder.note))
    return recorder


def steps_of(column: Column, cell: Cell, rounds: int) -> np.ndarray:
    """The steps of a column, (rounds,); "floral-slip" has those that the authors' published code takes.

    There the decay holds only in rounds that are multiples of its period, and is forgotten in the next.
    """
    eta, decay = column.at.eta, column.at.decay
    if decay is None:
        return step_schedule(eta, rounds)
    if cell.method.name == "floral-slip":
        return np.where(np.arange(1, rounds + 1) % decay == 0, DECAY, 1.0) * eta
    return step_schedule(eta, rounds, (DECAY, decay))


class _Recorder:
    """Metrics of every column after every round, and of the averaged model at the end."""

    def __init__(self, scores: TestScores, positive: np.ndarray, poisoned: np.ndarray, rounds: int) -> None:
        self.scores, self.poisoned = scores, poisoned
        self.backend = scores.backend
        self.positive = self.backend.array(positive)
        width = poisoned.shape[1]
        # What a round gives stays on the device until the end: a copy to the host would make it wait in every round.
        self._seen: list[dict[str, Array]] = []
        self._hits: dict[int, Array] = {}
        self._mask = self.backend.array(poisoned)
        self._columns = self.backend.arange(width)
        self.traces: dict[str, np.ndarray] = {}
        self.recovery = np.full((rounds, width), np.nan, np.float32)
        self.average: dict[str, np.ndarray] = {}
        self.residual = np.zeros(width)
        self.flip_rate = np.zeros(poisoned.shape)

    def note(self, state: GameState) -> None:
        bias = state.history["bias"][-1]
        self._seen.append(self._metrics(self.scores(state.signs * state.dual, bias)))
        flips = self.backend.cast(state.history["flips"][-1], self.backend.int64)
        if len(flips):
            # a row of -1 is an empty place
            found = (flips >= 0) & self._mask[flips.clip(0, None), self._columns]
            self._hits[state.round - 1] = found.sum(0)
        # The game keeps every round's flips: at n = 10,000 and k = 2,500 they would outgrow the Gram.
        state.history["flips"][-1] = state.history["flips"][-1][:0]

    def close(self, result: GameResult) -> None:
        scores = self.scores(self.backend.columns(result.mean_weights), self.backend.array(result.mean_bias))
        self.average = {name: self.backend.numpy(value) for name, value in self._metrics(scores).items()}
        for name in _TRACED:
            self.traces[name] = np.stack([self.backend.numpy(seen[name]) for seen in self._seen]).astype(np.float32)
        total = self.poisoned.sum(0)
        for row, hits in self._hits.items():
            share = self.backend.numpy(hits) / np.maximum(total, 1)
            self.recovery[row] = np.where(total > 0, share, np.nan)
        self.residual, self.flip_rate = result.residual, result.flip_rate

    def _metrics(self, scores: Array) -> dict[str, Array]:
        xp, cast, single = self.backend.xp, self.backend.cast, self.backend.dtype("float32")
        positive = self.positive[:, None]
        hit = cast((scores > 0) == positive, single)
        up = cast(self.positive, single)
        share_up = (up @ hit) / up.sum()
        share_down = ((1 - up) @ hit) / (1 - up).sum()
        hinge = (1 - xp.where(positive, scores, -scores)).clip(0, None).mean(0)
        return {"accuracy": hit.mean(0), "balanced_accuracy": (share_up + share_down) / 2, "hinge_loss": hinge}

    def write(self, result: CellResult, own: list[int], columns: list[Column], traced: tuple[str, ...]) -> None:
        """Rows: the peak over rounds ("best"), the last round and the averaged model, for each configuration."""
        attacked = result.cell.method.name in ATTACKED and result.cell.level > 0
        for j in own:
            config = columns[j].config
            result.settings[config] = columns[j].at
            accuracy = self.traces["accuracy"][:, j]
            peak = int(np.argmax(accuracy))
            for name in _TRACED:
                result.add(name, self.traces[name][peak, j], "best", config)
                result.add(name, self.traces[name][-1, j], "last", config)
                result.add(name, self.average[name][j], "average", config)
            result.add("round", peak + 1, "best", config)
            result.add("kkt_residual", self.residual[j], "last", config)
            for name in traced:
                result.traces[config, name] = self.traces[name][:, j].clip(0, 6e4).astype(np.float16)
            if attacked:
                result.add("recovery_rate", float(np.nanmean(self.recovery[:, j])), "average", config)
                result.traces[config, "recovery"] = self.recovery[:, j].astype(np.float16)
                if len(self.flip_rate) <= TRACED_ROWS:
                    result.traces[config, "flip_rate"] = self.flip_rate[:, j].astype(np.float16)
