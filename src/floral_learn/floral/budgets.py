"""B and k: from what a user says to the attacker that plays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_learn.base.validation import check_flip_distribution, count_points
from floral_learn.floral.settings import Settings
from floral_learn.game.attackers import Attacker, NoAttack, RandomizedTopK
from floral_learn.game.pairs import Pairs


@dataclass(frozen=True)
class Budget:
    """The attacker, and what ``budget_`` and ``flips_`` show."""

    attacker: Attacker
    points: int
    flips: int


def resolve_budget(settings: Settings, labels: np.ndarray, classes: np.ndarray, pairs: Pairs | None = None) -> Budget:
    """The attacker for a budget (B) and flips (k; None is half of B) on rows with class numbers `labels`.

    With `per_class` the candidates of a class are at most that share of its own rows, so that a rare class is never
    taken whole, and of two classes the larger one has no more of them than the smaller, so that a rare class is not
    flooded either; without, they are the B largest duals of all rows, as in the paper. The game of a pair of classes
    gets 2 / M of the share of its own rows, so that as many labels are flipped per round, over all pairs, as in a game
    of two classes.
    """
    n, width = len(labels), 1 if len(classes) == 2 else len(classes)
    budget, flips, per_class = settings.budget, settings.flips, settings.per_class
    distribution = check_flip_distribution(settings.flip_distribution, len(classes))
    if isinstance(budget, dict):
        columns = _per_column(budget, n, classes)
        per_class, points = False, int(columns.sum())
    else:
        points = count_points(budget, n, "budget")
        columns = np.full(width, points)
    most = int(columns.max())
    k = most // 2 if flips is None else count_points(flips, n, "flips")
    if k > most:
        raise ValueError(f"flips={flips!r} is {k} points, more than the budget of {most} to choose from")
    if most < 2 or k == 0:
        return Budget(NoAttack(), 0, 0)
    if pairs is not None:
        # A row plays in M - 1 of M (M - 1) / 2 pairs: 2 / M of the share in each makes about B candidates in all.
        share = most / n * 2 / len(classes)
        return Budget(_pair_attacker(share, k / most, labels, pairs, per_class), points, k)
    if not per_class:
        return Budget(RandomizedTopK(columns, k, distribution), points, k)
    counts = np.bincount(labels, minlength=len(classes))
    caps = class_caps(most / n, np.minimum(counts, counts[::-1]) if width == 1 else counts)
    k = min(k, int(caps.sum()) if flips is not None else int(caps.sum()) // 2)
    if k == 0:
        return Budget(NoAttack(), 0, 0)
    return Budget(RandomizedTopK(0, k, distribution, class_budget=caps), int(caps.sum()), k)


def class_caps(share: float, counts: np.ndarray) -> np.ndarray:
    """Candidates of each class: `share` of its own rows, rounded down."""
    return np.floor(share * counts + 1e-9).astype(int)


def _pair_attacker(share: float, flipped: float, labels: np.ndarray, pairs: Pairs, per_class: bool) -> Attacker:
    counts = np.bincount(labels, minlength=int(pairs.classes.max()) + 1)
    caps = class_caps(share, np.repeat(counts[pairs.classes].min(axis=1, keepdims=True), 2, axis=1))
    total = caps.sum(axis=1) if per_class else np.floor(share * counts[pairs.classes].sum(axis=1) + 1e-9).astype(int)
    k = np.floor(flipped * total + 1e-9).astype(int)
    return RandomizedTopK(total[:, None], k, class_budget=caps if per_class else None)


def _per_column(budget: dict[Any, Any], n: int, classes: np.ndarray) -> np.ndarray:
    """B_m, the candidates that the attacker of each class names (Algorithm 3), (M,)."""
    if len(classes) == 2:
        raise ValueError("budget= as a dict needs three or more classes: with two there is one attacker")
    known = classes.tolist()
    if set(budget) != set(known):
        raise ValueError(f"budget= must have exactly the classes {sorted(map(str, known))} as keys")
    return np.array([count_points(budget[c], n, f"budget[{c!r}]") for c in known])
