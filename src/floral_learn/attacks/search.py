"""What the attacks that search share: whole numbers for settings, flips as labels, and the best of many tries."""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from .base import LabelAttack, Problem


@dataclass
class SVMAttack(LabelAttack):
    """An attack on an SVM of two classes, with the parameters of ``sklearn.svm.SVC`` or of a `surrogate`."""

    _: KW_ONLY
    C: float = 1.0
    kernel: str = "rbf"
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0
    surrogate: Any = None

    multiclass: ClassVar[bool] = False
    accept_sparse: ClassVar[bool] = False


@dataclass(frozen=True)
class Try:
    """A set of rows to flip, its ranking of all rows (n,), and what it is worth to the attacker."""

    worth: float
    indices: np.ndarray
    scores: np.ndarray
    details: dict[str, Any] = field(default_factory=dict)


def best_of(problem: Problem, tries: Iterable[Try], total: int) -> tuple[Try, np.ndarray]:
    """Return the first of the tries that are worth most, and what each was worth, (total,)."""
    worth: list[float] = []
    best: Try | None = None
    for found in tries:
        worth.append(found.worth)
        best = found if best is None or found.worth > best.worth else best
        problem.progress(len(worth), total)
    assert best is not None
    return best, np.array(worth)


def check_whole(attack: LabelAttack, **least: int) -> None:
    """Refuse parameters that are not whole numbers from the given least ones on."""
    for name, lowest in least.items():
        value = getattr(attack, name)
        if not isinstance(value, Integral) or isinstance(value, bool) or value < lowest:
            raise ValueError(f"{name}={value!r} must be a whole number of at least {lowest}")


def check_one_of(attack: LabelAttack, **allowed: tuple[str, ...]) -> None:
    """Refuse parameters that are none of the given words."""
    for name, words in allowed.items():
        if (value := getattr(attack, name)) not in words:
            raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, words))}")


def flipped(labels: np.ndarray, other: np.ndarray, sets: Iterable[np.ndarray]) -> np.ndarray:
    """Return labels (n, sets): of each set of rows the label in `other`, of all further rows that in `labels`."""
    changed = [np.where(np.isin(np.arange(len(labels)), rows), other, labels) for rows in sets]
    return np.stack(changed, axis=1)
