"""Everything that a fit is told, in one frozen object: made once, and passed down in place of the estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Settings:
    """The parameters of a classifier that plays the game.

    The first block is what every such classifier has; the second has the values of :class:`FloralClassifier`, which
    :class:`PaperFloralClassifier` turns.
    """

    name: str  # of the classifier, for messages
    kernel: str | Callable[..., Any]
    gamma: str | float
    C: float
    budget: Any
    flips: Any
    n_rounds: int
    tol: float | None
    learning_rate: str | float
    gram: str | int
    device: str | None
    random_state: Any

    degree: int = 3
    coef0: float = 0.0
    class_weight: Any = None
    multi_class: str = "pairs"
    per_class: bool = True  # candidates of a class are at most the budget's share of its own rows
    warm_up: int = 1
    decay: tuple[float, int] | None = None
    average: bool = True
    projection: str = "exact"
    flip_distribution: Any = None
    always_rounds: bool = False  # rounds of projected gradient steps also where nobody attacks
