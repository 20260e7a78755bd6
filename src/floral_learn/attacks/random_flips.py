"""Random flips: the baseline that every attack has to beat."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Problem, RankingAttack


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
