"""The data of a cell: rows of a replication and its clean or poisoned labels."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.svm import SVC

from floral_bench.data_kinds import kind_of
from floral_bench.spec import Attack, Data, params
from floral_learn.attacks import ATTACKS
from floral_learn.attacks.gradient import Gradient
from floral_learn.datasets import Dataset

# Attacks whose flips are chosen one after the other: a smaller budget is the beginning of a larger one.
GREEDY = ("lfa",)
# Attacks with an SVM inside take C and gamma by themselves, the others take a classifier.
_OWN_SVM = ("alfa", "alfa-tilt")
_SVM_BY_DEFAULT = ("top-k", "randomized-top-k", "lfa", "gradient")
# The attacker's SVM where a suite names none (a user's table): that of the published cells.
_ATTACKER_C = 10.0


@lru_cache(maxsize=4)
def load(data: Data) -> Dataset:
    """The data set behind a cell; the last few are kept, since cells of one replication follow each other."""
    return kind_of(data).load(**{name: value for name, value in data.params if name != "sha256"})


def poisoned_labels(
    data: Data, attack: Attack, levels: list[float], seed: int, device: str | None = None
) -> list[np.ndarray]:
    """Training labels after `attack` at each of `levels` (percent of the rows); `device` is for an SVM's rounds."""
    dataset = load(data)
    if attack.name == "reference":
        family = dict(attack.params)["family"]
        published = [params(**dict(data.params), labels=f"{family}-{level:g}") for level in levels]
        return [np.array(load(Data(data.name, labels)).y_train) for labels in published]
    clean = dataset.y_train_clean
    if attack.name in GREEDY and len(levels) > 1:
        result = _poison(dataset, attack, max(levels), seed, device)
        return [_first_flips(clean, result, flips_at(level, len(clean))) for level in levels]
    return [_poison(dataset, attack, level, seed, device).y for level in levels]


def gradient_labels(surrogate: Any, X: Any, y: np.ndarray, levels: list[float], seed: int) -> list[np.ndarray]:
    """Labels after the gradient attack at each of `levels` (percent), by a network trained on clean labels."""
    budgets = [flips_at(level, len(y)) for level in levels]
    return [Gradient(budget=k, surrogate=surrogate, random_state=seed).poison(X, y).y for k in budgets]


def flips_at(level: float, n: int) -> int:
    """How many of `n` labels are `level` percent."""
    return int(n * level / 100 + 1e-9)


def _poison(dataset: Dataset, attack: Attack, level: float, seed: int, device: str | None) -> Any:
    arguments = dict(attack.params)
    if arguments.pop("duals", "optimal") == "early":  # those of an SVM that was stopped, as the paper trains it
        from floral_bench.families.plain_rounds import EarlyStoppedSVC

        given = {name: arguments.pop(name) for name in ("C", "gamma", "eta")}
        arguments["surrogate"] = EarlyStoppedSVC(**given, device=device)
    if attack.name not in _OWN_SVM and "C" in arguments:
        svm = SVC(C=arguments.pop("C"), gamma=arguments.pop("gamma"), cache_size=1000)
        if attack.name in ("top-k", "randomized-top-k", "lfa"):
            arguments["surrogate"] = svm
    if attack.name in _OWN_SVM:
        arguments.setdefault("C", _ATTACKER_C)
    several = attack.name == "gradient" and len(np.unique(dataset.y_train_clean)) > 2  # its default is no SVM then
    if attack.name in _SVM_BY_DEFAULT and not several:
        arguments.setdefault("surrogate", SVC(C=_ATTACKER_C))
    if attack.name == "lfa" and len(dataset.y_val):
        arguments |= {"X_val": dataset.X_val, "y_val": dataset.y_val}
    budget = flips_at(level, len(dataset.y_train_clean))
    attacker = ATTACKS[attack.name](budget=budget, random_state=seed, **arguments)
    return attacker.poison(dataset.X_train, dataset.y_train_clean)


def _first_flips(clean: np.ndarray, result: Any, count: int) -> np.ndarray:
    labels = clean.copy()
    first = result.indices[:count]
    labels[first] = result.y[first]
    return labels
