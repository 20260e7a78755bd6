"""Random flips: the baseline that every attack has to beat."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Problem, RankingAttack


@dataclass
class RandomFlips(RankingAttack):
    """Flip ``budget`` rows drawn uniformly without replacement; the new class is uniform too. O(n)."""

    name: ClassVar[str] = "random"
    needs_features: ClassVar[bool] = False

    def _rank(self, problem: Problem) -> tuple[np.ndarray, np.ndarray | None]:
        return problem.rng.random(len(problem.y)), None
