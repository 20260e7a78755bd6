"""What each SVM-type method makes of the given labels before its rounds start: labels, caps, and the scale of K."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_bench.data_kinds import kind_of
from floral_bench.spec import Cell
from floral_learn.datasets import Dataset
from floral_learn.paper import CurieFilter, KLIDWeights, KNNRelabel


@dataclass(frozen=True)
class Prepared:
    """One training set of a game: labels as 0/1, a cap on each dual (0 leaves a row out), K's off-diagonal factor."""

    labels: np.ndarray
    cap: np.ndarray
    poisoned: np.ndarray
    gram_scale: float = 1.0


NOT_SETTINGS = ("map", "encoder", "matched")  # parameters of a method that no estimator takes


def assumed_noise(level: float, matched: bool = False) -> float:
    """The poisoning level that the paper tells the baselines: the true one, 5 % on clean labels, 25 % at most.

    `matched` drops the upper end, which is where the paper's list of settings stops.
    """
    return min(max(level, 5.0), 50.0 if matched else 25.0) / 100


def sanitiser_parameters(cell: Cell) -> dict[str, Any]:
    """Settings of the baselines as the paper gives them; the method's own parameters overrule."""
    own = dict(cell.method.params)
    level = assumed_noise(cell.level, bool(own.get("matched")))
    neighbors = kind_of(cell.data).n_neighbors
    given: dict[str, dict[str, Any]] = {
        "ln-svm": {"noise": level},
        "curie": {"confidence": 1 - level, "n_neighbors": neighbors},
        "ls-svm": {"threshold": 1 - level, "n_neighbors": neighbors},
        "k-lid": {"random_state": cell.seed},
    }
    return given.get(cell.method.name.removesuffix("-libsvm"), {}) | {
        key: value for key, value in own.items() if key not in NOT_SETTINGS
    }


def prepare(cell: Cell, dataset: Dataset, y: np.ndarray) -> Prepared:
    """Labels, caps and scale for one cell of the game."""
    C, n = float(cell.C or 1.0), len(y)
    positive = dataset.classes[1]
    codes = (y == positive).astype(int)
    cap = np.full(n, C)
    poisoned = y != dataset.y_train_clean
    name, settings = cell.method.name, sanitiser_parameters(cell)
    if name == "ln-svm":
        variance = settings["noise"] * (1 - settings["noise"])
        return Prepared(codes, cap, poisoned, 1 - 4 * variance)
    if name == "curie":
        curie = CurieFilter(**settings)
        curie.fit_resample(dataset.X_train, y)
        kept = np.isin(np.arange(len(y)), curie.sample_indices_)
        return Prepared(codes, np.where(kept, C, 0.0), poisoned)
    if name == "ls-svm":
        _, cleaned = KNNRelabel(**settings).fit_resample(dataset.X_train, y)
        return Prepared((cleaned == positive).astype(int), cap, poisoned)
    if name == "k-lid":
        weight = KLIDWeights(**settings).fit(dataset.X_train, y).sample_weight_
        return Prepared(codes, C * np.asarray(weight), poisoned)
    if name not in ("floral", "largest-loss", "floral-slip", "floral-printed", "svm"):
        raise ValueError(f"{name!r} is not trained by projected gradient rounds")
    return Prepared(codes, cap, poisoned)
