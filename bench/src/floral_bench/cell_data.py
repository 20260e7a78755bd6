"""The data of a cell: rows of a replication and its clean or poisoned labels."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.svm import SVC

from floral_bench.data_kinds import kind_of
from floral_bench.spec import Attack, Data
from floral_learn.datasets import Dataset

# Attacks whose flips are chosen one after the other: a smaller budget is the beginning of a larger one.
GREEDY = ("lfa",)
# Attacks with an SVM inside take C and gamma by themselves, the others take a classifier.
_OWN_SVM = ("alfa", "alfa-tilt")
_SVM_BY_DEFAULT = ("top-k", "randomized-top-k", "lfa", "gradient")
# The attacker's SVM where a suite names none (the arena, a user's table): that of the published cells.
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
        return [np.array(_reference(data, f"{family}-{level:g}")) for level in levels]
    if attack.name == "votes":  # real wrong labels: what people said
        return [np.array(dataset.info["votes"]) for _ in levels]
    clean = dataset.y_train_clean
    if attack.name in GREEDY and len(levels) > 1:
        result = _poison(dataset, attack, max(levels), seed, device)
        return [_first_flips(clean, result, int(len(clean) * level / 100 + 1e-9)) for level in levels]
    return [_poison(dataset, attack, level, seed, device).y for level in levels]


def _reference(data: Data, labels: str) -> np.ndarray:
    return load(Data(data.name, (*data.params, ("labels", labels)))).y_train


def _poison(dataset: Dataset, attack: Attack, level: float, seed: int, device: str | None) -> Any:
    from floral_learn.attacks import ATTACKS

    arguments = dict(attack.params)
    if arguments.pop("duals", "optimal") == "early":  # those of an SVM that was stopped, as the paper trains it
        from floral_bench.families.plain_rounds import EarlyStoppedSVC

        given = {name: arguments.pop(name) for name in ("C", "gamma", "eta")}
        arguments["surrogate"] = EarlyStoppedSVC(**given, device=device)
    if attack.name == "alfa-tilt":
        arguments["device"] = device
    if attack.name not in _OWN_SVM and "C" in arguments:
        svm = SVC(C=arguments.pop("C"), gamma=arguments.pop("gamma"), cache_size=1000)
        if attack.name in ("top-k", "randomized-top-k", "lfa"):
            arguments["surrogate"] = svm
    if attack.name not in _OWN_SVM and "kernel" in arguments:  # the arena's second "farthest": another victim
        arguments["surrogate"] = SVC(kernel=arguments.pop("kernel"), C=_ATTACKER_C)
    if attack.name in _OWN_SVM:
        arguments.setdefault("C", _ATTACKER_C)
    several = attack.name == "gradient" and len(np.unique(dataset.y_train_clean)) > 2  # its default is no SVM then
    if attack.name in _SVM_BY_DEFAULT and not several:
        arguments.setdefault("surrogate", SVC(C=_ATTACKER_C))
    if attack.name == "lfa" and len(dataset.y_val):
        arguments |= {"X_val": dataset.X_val, "y_val": dataset.y_val}
    budget = int(len(dataset.y_train_clean) * level / 100 + 1e-9)
    if arguments.pop("of", None) == "rarest":  # the arena's one-way flips: twice the level, of that class's labels
        names, counts = np.unique(dataset.y_train_clean, return_counts=True)
        arguments["class_weights"] = {names[counts.argmin()]: 1.0}
        budget = int(counts.min() * 2 * level / 100 + 1e-9)
    attacker = ATTACKS[attack.name](budget=budget, random_state=seed, **arguments)
    return attacker.poison(dataset.X_train, dataset.y_train_clean)


def _first_flips(clean: np.ndarray, result: Any, count: int) -> np.ndarray:
    labels = clean.copy()
    first = result.indices[:count]
    labels[first] = result.y[first]
    return labels
