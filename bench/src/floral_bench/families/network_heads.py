"""FLORAL on the last-layer features of a network, after some epochs and at the end, and network and head in turns.

All poisoned versions of a replication's labels train one stack of networks (`batched_mlp`), those of the ``nn`` cells
with the same seed; the heads are fitted one by one. Heads know nothing of clean labels: ``FloralClassifier`` with its
defaults, with the attacker off ("svm"), or with B = level, as the paper tells its baselines.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from floral_bench.batched_mlp import BatchedMLP, NetworkSettings, train_mlps
from floral_bench.cell_data import gradient_labels as labels_by_gradient
from floral_bench.cell_data import load
from floral_bench.families.networks import network_of, one_thread, settings_of
from floral_bench.metrics import binary_scores
from floral_bench.mlp import NeuralNetClassifier
from floral_bench.spec import Attack, Cell, CellResult, Data
from floral_learn.datasets import Dataset
from floral_learn.floral.classifier import FloralClassifier
from floral_learn.paper.floral_net import sanitised

BUDGETS = (0.02, 0.04, 0.1, 0.2, 0.5)  # the paper's k in 1, 2, 5, 10 and 25 % of the rows, B = 2k
POINTS = (0.05, 0.1, 0.25, 0.5, 1.0)  # shares of the training after which a head is fitted: its curve


def gradient_labels(data: Data, attack: Attack, levels: list[float], seed: int, device: str | None) -> list[np.ndarray]:
    """Training labels after the gradient attack at each of `levels` (percent), by a network trained on clean labels."""
    dataset, given = load(data), dict(attack.params)
    settings = network_of(data)
    network = NeuralNetClassifier(
        settings.hidden, epochs=given.get("epochs", settings.epochs), device=device, random_state=seed
    )
    with one_thread():
        network.fit(dataset.X_train, dataset.y_train_clean)
        return labels_by_gradient(network, dataset.X_train, dataset.y_train_clean, levels, seed)


def run_heads(
    cells: list[Cell], labels: list[np.ndarray], dataset: Dataset, device: str | None = None
) -> list[CellResult]:
    """Cells of one replication: heads on the features of networks, and turns of network and head."""
    settings = settings_of(cells[0])
    keys = [(cell.level, y.tobytes()) for cell, y in zip(cells, labels, strict=True)]
    sets = dict(zip(keys, labels, strict=True))  # cells of several methods share their labels, and so their network
    networks = [list(sets).index(key) for key in keys]
    given = np.stack([(y == dataset.classes[1]).astype(np.float32) for y in sets.values()])
    epochs = sorted({max(1, round(settings.epochs * share)) for share in POINTS})
    first = _stack(dataset, given, cells[0].seed, settings, epochs, device)
    results = []
    for cell, y, number in zip(cells, labels, networks, strict=True):
        result = CellResult(cell)
        if dict(cell.method.params).get("head") == "grid":
            _grid(result, first, number, y, dataset)
        elif cell.method.name == "nn-head":
            _curve(result, first, number, y, dataset, epochs)
        results.append(result)
    _turns(list(zip(results, labels, networks, strict=True)), first, given, dataset, settings, device)
    return results


def _stack(
    dataset: Dataset, targets: np.ndarray, seed: int, settings: NetworkSettings, keep: list[int], device: str | None
) -> BatchedMLP:
    """One network a row of `targets`, all from the same first weights and with the same batches."""
    count = len(targets)
    X, test = (np.repeat(part[None].astype(np.float32), count, 0) for part in (dataset.X_train, dataset.X_test))
    with one_thread():
        return train_mlps(X, targets, test, [seed] * count, settings, keep=keep, device=device)


def _head(cell: Cell, budget: float | None = None) -> Any:
    """The unfitted head of a cell; `budget` in place of its own."""
    given = dict(cell.method.params)
    budgets = {"svm": 0.0, "floral": 0.02, "matched": cell.level / 100 if cell.level else 0.02}
    budget = budgets[given.get("head", "matched")] if budget is None else budget
    return FloralClassifier(budget=budget, n_rounds=given.get("n_rounds", 500), random_state=cell.seed)


def _features(stack: BatchedMLP, number: int, X: np.ndarray, epoch: int | None = None) -> np.ndarray:
    """Features of network `number` for rows X (m, d); the other networks of the stack are left out."""
    alone = BatchedMLP(
        {name: value[number : number + 1] for name, value in stack.parameters.items()},
        stack.logits[:, number : number + 1],
        {e: {name: value[number : number + 1] for name, value in kept.items()} for e, kept in stack.kept.items()},
    )
    return alone.features(X[None], epoch)[0].astype(np.float64)


def _curve(
    result: CellResult, stack: BatchedMLP, number: int, y: np.ndarray, dataset: Dataset, epochs: list[int]
) -> None:
    """A head fitted after each of `epochs`: best is the peak over them, last the trained network's."""
    scores = []
    for epoch in epochs:
        head = _head(result.cell).fit(_features(stack, number, dataset.X_train, epoch), y)
        scores.append(head.decision_function(_features(stack, number, dataset.X_test, epoch)))
    measured = binary_scores(np.stack(scores, axis=1), dataset.y_test == dataset.classes[1])
    result.add_course(measured, epochs)
    poisoned = y != dataset.y_train_clean
    if poisoned.any() and head.budget_:
        result.add("recovery_rate", float(head.flip_rate_[poisoned].mean()), "last")


def _grid(result: CellResult, stack: BatchedMLP, number: int, y: np.ndarray, dataset: Dataset) -> None:
    """A head for each of the paper's budgets on the trained network; the table shows the best on the test set."""
    features, test = (_features(stack, number, X) for X in (dataset.X_train, dataset.X_test))
    for budget in BUDGETS:
        values = _head(result.cell, budget).fit(features, y).decision_function(test)
        for name, value in binary_scores(values[:, None], dataset.y_test == dataset.classes[1]).items():
            result.add(name, value[0], "last", f"B={budget:g}")


def _turns(
    asked: list[tuple[CellResult, np.ndarray, int]],
    stack: BatchedMLP,
    given: np.ndarray,
    dataset: Dataset,
    settings: NetworkSettings,
    device: str | None,
) -> None:
    """Retrain the networks on the soft labels of their heads, as often as the longest cell wants; score on the way."""
    waiting = [(result, y, number) for result, y, number in asked if result.cell.method.name == "nn-turns"]
    total = max((dict(result.cell.method.params)["turns"] for result, _, _ in waiting), default=0)
    # one chain of turns a set of labels: its cells differ in where they read it
    chains = {number: (result.cell, y) for result, y, number in waiting}
    order = list(chains)
    positive = dataset.y_test == dataset.classes[1]
    for turn in range(total + 1):
        heads, soft = {}, []
        for place, number in enumerate(order):
            cell, y = chains[number]
            row = number if turn == 0 else place
            features = _features(stack, row, dataset.X_train)
            head = heads[number] = _head(cell).fit(features, y)
            one_hot = np.stack([1 - given[number], given[number]], axis=1)
            judged = (head.decision_function(features) > 0).astype(int)
            soft.append(sanitised(one_hot, head.flip_rate_, judged)[:, 1])
        for result, _, number in waiting:
            params = dict(result.cell.method.params)
            if params["turns"] != turn:
                continue
            row = number if turn == 0 else order.index(number)
            if params.get("read") == "network":
                values = stack.logits[-1, row]
            else:
                values = heads[number].decision_function(_features(stack, row, dataset.X_test))
            for name, value in binary_scores(values[:, None], positive).items():
                result.add(name, value[0], "last")
        if turn < total:
            stack = _stack(dataset, np.stack(soft), asked[0][0].cell.seed, settings, [], device)
