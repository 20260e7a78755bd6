"""Random flips: the baseline that every attack has to beat."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .base import Choice, LabelAttack, Problem, RankingAttack


@dataclass
class RandomFlips(RankingAttack):
    """Flip ``budget`` rows drawn uniformly without replacement; the new class is uniform too. O(n).

    Its parameters are those of :class:`LabelAttack`.

    Examples
    --------
    >>> from floral_learn.attacks import RandomFlips
    >>> result = RandomFlips(budget=3, random_state=0).poison(None, [0] * 10 + [1] * 10)
    >>> len(result.indices)
    3
    """

    name: ClassVar[str] = "random"
    needs_features: ClassVar[bool] = False

    def _rank(self, problem: Problem) -> tuple[np.ndarray, np.ndarray | None]:
        return problem.rng.random(len(problem.y)), None


@dataclass
class ClassBiased(LabelAttack):
    """Flip random rows with a fixed share for each class: asymmetric label noise. O(n).

    Parameters
    ----------
    class_weights : dict or None, default=None
        Label -> weight: classes not named are left alone, and the flips are shared in proportion (largest remainders,
        so that they add up). ``None`` takes all flips from the most frequent class and goes on to the next only once
        that one is used up.

    Notes
    -----
    The other parameters are those of :class:`LabelAttack`.

    Examples
    --------
    >>> from floral_learn.attacks import ClassBiased
    >>> y = ["cat"] * 20 + ["dog"] * 20
    >>> result = ClassBiased(budget=6, class_weights={"cat": 2, "dog": 1}, random_state=0).poison(None, y)
    >>> sum(y[row] == "cat" for row in result.indices)
    4
    """

    class_weights: Mapping[Any, float] | None = None

    name: ClassVar[str] = "class-biased"
    needs_features: ClassVar[bool] = False

    def _choose(self, problem: Problem) -> Choice:
        constraints, n_classes = problem.constraints, len(problem.classes)
        available = np.bincount(problem.y[constraints.allowed], minlength=n_classes)
        room = np.minimum(available, constraints.limits)
        counts = self._shares(problem, room)
        draws = problem.rng.random(len(problem.y))
        scores = draws + (n_classes - np.argsort(np.argsort(-counts, kind="stable")))[problem.y]
        chosen = [
            rows[np.argsort(-draws[rows])][: counts[code]]
            for code in np.argsort(-counts, kind="stable")
            for rows in [np.flatnonzero(constraints.allowed & (problem.y == code))]
        ]
        indices = np.concatenate(chosen)
        return Choice(indices, constraints.new_codes(indices, problem.rng), scores)

    def _shares(self, problem: Problem, room: np.ndarray) -> np.ndarray:
        """Return (M,) flips for each class, summing to the budget."""
        if self.class_weights is None:
            counts = np.zeros_like(room)
            for code in np.argsort(-np.bincount(problem.y), kind="stable"):
                counts[code] = min(room[code], problem.flips - counts.sum())
            return counts
        labels = problem.classes.tolist()
        unknown = [label for label in self.class_weights if label not in labels]
        weights = np.array([float(self.class_weights.get(label, 0.0)) for label in labels])
        if unknown or (weights < 0).any() or weights.sum() <= 0:
            raise ValueError(
                f"class_weights={dict(self.class_weights)!r} must map labels {labels} to non-negative weights, "
                "one of them positive"
            )
        exact = problem.flips * weights / weights.sum()
        counts = np.floor(exact + 1e-9).astype(np.intp)
        counts[np.argsort(counts - exact, kind="stable")[: problem.flips - counts.sum()]] += 1
        if short := [labels[code] for code in np.flatnonzero(counts > room)]:
            raise ValueError(f"class_weights ask for more flips than the classes {short} have rows to flip")
        return counts
