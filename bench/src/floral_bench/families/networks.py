"""The nn and nn-pgd cells: all levels and replications of a suite are one stack of networks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace

import numpy as np

from floral_bench.batched_mlp import BatchedMLP, NetworkSettings, train_mlps
from floral_bench.cell_data import load
from floral_bench.data_kinds import kind_of
from floral_bench.families.single_fits import GRID_SIDE, map_grid
from floral_bench.metrics import binary_scores
from floral_bench.spec import Cell, CellResult, Data
from floral_learn.datasets import Dataset

DEFAULT = NetworkSettings(epochs=50)
EPSILON = 8 / 255
_TRAINING = {field.name for field in fields(NetworkSettings)}


def network_of(data: Data) -> NetworkSettings:
    """The network for a data set, and its training."""
    return replace(DEFAULT, **kind_of(data).network)


def settings_of(cell: Cell) -> NetworkSettings:
    """The network and its training for a cell; the method's parameters overrule."""
    base = network_of(cell.data)
    given = {name: value for name, value in cell.method.params if name in _TRAINING}
    return replace(base, epsilon=EPSILON if cell.method.name == "nn-pgd" else 0.0, **given)


def run_networks(cells: list[Cell], labels: list[np.ndarray], device: str | None = None) -> list[CellResult]:
    """Train one network a cell; cells must share the method and the shape of their data."""
    sets = [load(cell.data) for cell in cells]
    X = np.stack([dataset.X_train for dataset in sets])
    X_test = np.stack([dataset.X_test for dataset in sets])
    targets = np.stack([y == dataset.classes[1] for dataset, y in zip(sets, labels, strict=True)])
    seeds = [cell.seed for cell in cells]
    with one_thread():
        trained = train_mlps(X, targets, X_test, seeds, settings_of(cells[0]), device=device)
    results = []
    for j, (cell, dataset) in enumerate(zip(cells, sets, strict=True)):
        result = CellResult(cell)
        scores = binary_scores(trained.logits[:, j].T, dataset.y_test == dataset.classes[1])
        result.add_course(scores)
        results.append(result)
    if dict(cells[0].method.params).get("map"):
        _add_maps(results, trained, sets)
    return results


@contextmanager
def one_thread() -> Iterator[None]:
    """Layers this small gain nothing from a second thread, and lose much on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _add_maps(results: list[CellResult], trained: BatchedMLP, sets: list[Dataset]) -> None:
    grids = [np.stack(np.meshgrid(*map_grid(dataset)), axis=-1).reshape(-1, 2) for dataset in sets]
    for result, values in zip(results, trained.decision_function(np.stack(grids)), strict=True):
        result.traces["", "map"] = np.clip(values, -5, 5).reshape(GRID_SIDE, GRID_SIDE).astype(np.float16)
