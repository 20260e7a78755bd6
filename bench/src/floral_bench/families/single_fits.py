"""Cells that are one fit of one estimator: libsvm to optimality, FLORAL without a grid, smoothing, centroids.

``svc-default`` and ``floral-default`` are what a user gets who sets nothing. ``floral-fixed`` is `FloralClassifier`
with the suite's C and gamma and a budget of 2 %; ``floral-told`` has the true level as its budget, as the paper tells
the baselines. No clean label takes part in any other choice.
"""

from __future__ import annotations

from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
from sklearn.svm import SVC

from floral_bench.contenders import ESTIMATORS
from floral_bench.families.sanitise import NOT_SETTINGS, sanitiser_parameters
from floral_bench.metrics import binary_scores, label_scores, multiclass_hinge
from floral_bench.spec import Cell, CellResult
from floral_learn.datasets import Dataset
from floral_learn.game.arrays import backend_for
from floral_learn.game.gram import DENSE_ROWS
from floral_learn.game.kernels import Kernel, resolve_gamma
from floral_learn.paper.defenses import DEFENSES

# methods whose estimator is DEFENSES[name] with C and gamma, trained by libsvm
LIBSVM = ("svm-libsvm", "ln-svm-libsvm", "curie-libsvm", "ls-svm-libsvm", "k-lid-libsvm")
SVCS = ("svc", "svc-default")
FIXED_BUDGET = 0.02
KEPT = 2  # kernel matrices: training rows with themselves, and test rows with these
GRID_SIDE = 90  # points per side of a stored decision map


def make_estimator(cell: Cell, device: str | None = None) -> Any:
    """The unfitted estimator of a cell."""
    name = cell.method.name
    if name in ESTIMATORS:
        return ESTIMATORS[name](cell.seed, **dict(cell.method.params))
    settings = {"C": cell.C, "gamma": cell.gamma} if cell.C is not None else {}
    given = {key: value for key, value in cell.method.params if key not in NOT_SETTINGS}
    game = {"device": device, "random_state": cell.seed}
    if name in LIBSVM:
        own = sanitiser_parameters(cell)
        return DEFENSES[name.removesuffix("-libsvm")](**settings, **own, cache_size=1000)
    if name == "floral-default":
        return DEFENSES["floral"](**game)
    if name in ("floral-fixed", "floral-multiclass"):
        given = {"budget": FIXED_BUDGET, **given}
        return DEFENSES["floral"](**settings, **game, **given)
    if name == "floral-told":
        budget = cell.level / 100 if cell.level else FIXED_BUDGET
        return DEFENSES["floral"](**settings, budget=budget, **game, **given)
    if name in SVCS:
        return SVC(**settings, cache_size=1000)
    if name in ("rs", "rsrnn"):
        return DEFENSES[name](**given, random_state=cell.seed)
    return DEFENSES[name](**settings, **given)


def run_fits(
    cells: list[Cell], labels: list[np.ndarray], dataset: Dataset, device: str | None = None
) -> list[CellResult]:
    """Fit and score each cell; an exception is that cell's error."""
    shared = SharedKernel(dataset.X_train, device) if len(dataset.X_train) > DENSE_ROWS else None

    def work(result: CellResult, y: np.ndarray) -> None:
        cell = result.cell
        model = make_estimator(cell, device)
        if shared is not None and cell.method.name in (*LIBSVM, *SVCS):
            model = shared.lend(model)
        model.fit(dataset.X_train, y)
        score(result, model, dataset, y)
        if dict(cell.method.params).get("map"):
            result.traces["", "map"] = decision_map(model, dataset)

    return [CellResult.of(cell, partial(work, y=y)) for cell, y in zip(cells, labels, strict=True)]


def score(result: CellResult, model: Any, dataset: Dataset, y: np.ndarray) -> None:
    """Rows of a fitted model: test metrics, and the recovery rate where there is an attacker inside."""
    for name, value in label_scores(model.predict(dataset.X_test), dataset.y_test).items():
        result.add(name, value)
    if hasattr(model, "decision_function"):
        values = np.asarray(model.decision_function(dataset.X_test))
        if values.ndim == 1:
            positive = dataset.y_test == dataset.classes[1]
            result.add("hinge_loss", float(binary_scores(values[:, None], positive)["hinge_loss"][0]))
        else:
            codes = np.searchsorted(dataset.classes, dataset.y_test)
            result.add("hinge_loss", multiclass_hinge(values, codes))
    poisoned = y != dataset.y_train_clean
    if hasattr(model, "flip_rate_") and poisoned.any():
        result.add("recovery_rate", float(model.flip_rate_[poisoned].mean()))


def map_grid(dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """The two axes of a decision map: the range of all rows, with a margin."""
    rows = np.concatenate([dataset.X_train, dataset.X_test])
    low, high = rows.min(0), rows.max(0)
    margin = 0.05 * (high - low)
    first, second = (np.linspace(a, b, GRID_SIDE) for a, b in zip(low - margin, high + margin, strict=True))
    return first, second


def decision_map(model: Any, dataset: Dataset) -> np.ndarray:
    """Decision values on a grid over the plane, (side, side), for data sets of two features."""
    first, second = map_grid(dataset)
    points = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    if hasattr(model, "decision_function"):
        values = np.asarray(model.decision_function(points))
    else:
        values = np.where(model.predict(points) == dataset.classes[1], 1.0, -1.0)
    return np.clip(values, -5, 5).reshape(GRID_SIDE, GRID_SIDE).astype(np.float16)


class SharedKernel:
    """exp(-gamma |a - b|^2) between rows, once for all SVMs that libsvm fits on them; the last few matrices are kept.

    libsvm computes entries of K as it needs them, many times over: on 10,000 images a fit takes it a minute, and a few
    seconds where K is given. The model is the same to rounding.

    `device` is where K is computed, in float64.
    """

    def __init__(self, X: np.ndarray, device: str | None = None) -> None:
        self.X, self.backend = np.asarray(X, np.float64), backend_for(device)
        self._known: dict[tuple[Any, ...], np.ndarray] = {}

    def lend(self, model: Any) -> Any:
        """`model` with its rbf kernel replaced by this one; others are returned as they are."""
        svm = getattr(model, "estimator", model)
        if svm.get_params().get("kernel") == "rbf":
            svm.set_params(kernel=partial(self.between, gamma=resolve_gamma(svm.gamma, self.X)))
        return model

    def between(self, A: np.ndarray, B: np.ndarray, gamma: float) -> np.ndarray:
        """K of all pairs of rows."""
        A, B = np.ascontiguousarray(A, np.float64), np.ascontiguousarray(B, np.float64)
        key = (*(blake2b(rows.data, digest_size=16).digest() + str(rows.shape).encode() for rows in (A, B)), gamma)
        if key not in self._known:
            while len(self._known) >= KEPT:
                del self._known[next(iter(self._known))]
            kernel = Kernel("rbf", gamma)
            left, right = (kernel.prepare(rows, self.backend, "float64") for rows in (A, B))
            self._known[key] = self.backend.numpy(kernel(left, right, self.backend))
        return self._known[key]

    def __deepcopy__(self, memo: Any) -> SharedKernel:
        return self  # estimators are cloned inside others, and K must not be
