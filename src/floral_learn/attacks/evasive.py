"""An attack on whoever asks questions: many small groups of flips, where few questions are asked."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.neighbors import NearestNeighbors

from .base import Problem, RankingAttack, check_whole


@dataclass
class Evasive(RankingAttack):
    """Flip many small groups of neighbouring rows of one class, so that no answer says much about other rows.

    A reviewer who finds a flipped region has found all of it. Groups of a few rows, spread over the data, have to be
    found one by one, and inside a group each wrong label agrees with its neighbours. New classes are drawn at random.
    Cost: one search for neighbours.

    Parameters
    ----------
    group_size : int, default=5
        Rows per group.

    Notes
    -----
    The other parameters are those of :class:`LabelAttack`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.attacks import Evasive
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> result = Evasive(budget=0.1, group_size=4, random_state=0).poison(X, y)
    >>> len(result.indices), result.details["groups"]
    (20, 5)
    """

    group_size: int = 5

    name: ClassVar[str] = "evasive"

    def _choose(self, problem: Problem) -> Any:
        choice = super()._choose(problem)
        return replace(choice, details={"groups": -(-problem.flips // self.group_size)})

    def _rank(self, problem: Problem) -> tuple[np.ndarray, np.ndarray | None]:
        check_whole(self, group_size=1)
        seeds = problem.rng.permutation(len(problem.y))
        order = grouped(problem.X, problem.y, seeds, int(self.group_size))
        scores = np.empty(len(order))
        scores[order] = -np.arange(len(order), dtype=float)
        return scores, None


def grouped(X: Any, codes: np.ndarray, seeds: np.ndarray, size: int) -> np.ndarray:
    """All rows, group by group: each seed that is still free, then its nearest free rows of the same class.

    A seed's neighbours are sought among the nearest `4 * size` of its class; what those leave out follows in the order
    of the seeds.
    """
    near: dict[int, np.ndarray] = {}
    for code in np.unique(codes):
        mine = np.flatnonzero(codes == code)
        found = NearestNeighbors(n_neighbors=min(4 * size, len(mine))).fit(X[mine])
        neighbours = mine[found.kneighbors(X[mine], return_distance=False)]
        near.update(zip(mine.tolist(), neighbours, strict=True))
    free = np.ones(len(codes), dtype=bool)
    order: list[int] = []
    for seed in seeds.tolist():
        if free[seed]:
            free[seed] = False
            group = [r for r in near[seed].tolist() if free[r]][: size - 1]
            free[group] = False
            order += [seed, *group]
    return np.array(order, dtype=np.intp)
