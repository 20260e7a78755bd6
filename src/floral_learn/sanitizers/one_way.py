"""Flips that all leave one class, told from a class that is merely hard and from labels that were planted.

Let a class lose a share of its labels at random, whichever way they went. Where its rows lie, what is left of its own
labels and the foreign ones are then mixed in *one* proportion: going down the rows, ordered by how much they look like
the class, the foreign labels per own label stay level (Scott, Blanchard and Handy, 2013: the slope of the ROC curve at
its foot is the contamination). Classes that overlap by nature do not look like that: at their core the slope is near
zero, and it grows outwards. Planted labels lie where the attacker wanted them: inside the region, labels then keep to
their own kind, which a test of nearest neighbours (Schilling, 1986) shows. So the rule asks for a level slope, for a
core in which the class's own labels are outnumbered or nearly so (elsewhere a plain model is right anyway), for labels
that are mixed at random inside the region, and for a class that is not rare as it stands: one that is may well be rare
by nature, with labels planted around it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from floral_learn.labels.neighbours import nearest_rows
from floral_learn.sanitizers.rule import Rule

FEWEST = 40  # own labels below which quantiles say nothing: the first is then made of twelve rows
CORE = (0.3, 0.5, 0.7)  # shares of the class's own labels, from the surest row on
RIM = 0.85
_NEAREST = 5
_MOST_INSIDE = 5000  # rows of the region that are asked for their neighbours


@dataclass(frozen=True)
class OneWay:
    """A class that may have lost labels: the rows (n,) where it lies, the foreign labels there, the numbers behind."""

    code: int
    inside: NDArray[np.bool_]
    foreign: NDArray[np.bool_]
    slopes: tuple[float, ...]
    own_in_core: float
    share: float

    @property
    def level(self) -> float:
        """How level the slope is: 1 means perfectly mixed."""
        return min(self.slopes[:-1]) / self.slopes[-1] if self.slopes[-1] > 0 else 0.0

    def counts(self, rule: Rule) -> bool:
        """Whether the numbers are those of labels lost at random."""
        return (
            self.level >= rule.level
            and self.slopes[-1] <= rule.most_foreign
            and self.own_in_core <= rule.own_in_core
            and self.share >= rule.least_share
            and bool(self.foreign.any())
        )


def one_way_flips(
    model_shares: NDArray[np.float64],
    near_shares: NDArray[np.float64],
    codes: NDArray[np.intp],
    weight: NDArray[np.float64],
) -> list[OneWay]:
    """Every class with enough labels, as two judges see it who give each class a share (n, M)."""
    found = []
    for code in range(model_shares.shape[1]):
        own = codes == code
        if own.sum() >= FEWEST and not own.all():
            looks = rankdata(model_shares[:, code]) + rankdata(near_shares[:, code])
            found.append(_measure(looks, code, own, weight, len(np.unique(codes))))
    return found


def _measure(
    looks: NDArray[np.float64], code: int, own: NDArray[np.bool_], weight: NDArray[np.float64], n_classes: int
) -> OneWay:
    order = np.argsort(-looks, kind="stable")
    own_mass, other_mass = np.cumsum((weight * own)[order]), np.cumsum((weight * ~own)[order])
    hits, misses = own_mass / own_mass[-1], other_mass / other_mass[-1]
    places = [int(np.searchsorted(hits, share - 1e-12)) for share in (*CORE, RIM)]
    core = places[-2]
    border = int(np.argmax(hits - misses))  # the cut that separates best, all classes counted alike
    inside = np.zeros(len(looks), bool)
    inside[order[: border + 1]] = True
    return OneWay(
        code=code,
        inside=inside,
        foreign=inside & ~own,
        slopes=tuple(float(misses[at] / hits[at]) for at in places),
        own_in_core=float(own_mass[core] / (own_mass[core] + other_mass[core])),
        share=float(n_classes * own_mass[-1] / weight.sum()),
    )


def clumped(X: Any, inside: NDArray[np.bool_], own: NDArray[np.bool_]) -> float:
    """How far own labels inside a region keep to themselves, in deviations from labels mixed at random (near 0).

    Counts the pairs of nearest neighbours, rows X (n, d) on one scale, that have labels of one kind, and compares with
    the mean and the deviation that the same labels have when they are shuffled inside the region.
    """
    rows = np.flatnonzero(inside)
    if len(rows) > _MOST_INSIDE:
        rows = np.random.default_rng(0).choice(rows, _MOST_INSIDE, replace=False)
    kind = own[rows]
    if len(rows) < 4 or kind.all() or not kind.any():
        return 0.0
    near = nearest_rows(X[rows], min(_NEAREST, len(rows) - 1))
    mean, deviation = _shuffled_pairs(near, int(kind.sum()))
    return float(((kind[near] == kind[:, None]).sum() - mean) / max(deviation, 1e-12))


def _shuffled_pairs(near: NDArray[np.intp], n_own: int) -> tuple[float, float]:
    """Mean and deviation of the pairs (row, neighbour) of one kind, over all shuffles of `n_own` labels among n rows.

    The square of the number of such pairs is a sum over pairs of pairs: the same two rows, three rows, or four, and
    each happens to be of one kind with a probability that only depends on the counts.
    """
    n, k = near.shape
    counts = (n_own, n - n_own)
    total = float(n * k)
    names_back = (near[near] == np.arange(n)[:, None, None]).any(axis=2)  # each is the other's neighbour
    same = total + float(names_back.sum())
    touching = float(((k + np.bincount(near.ravel(), minlength=n)) ** 2).sum()) - 2 * same
    two, three = (sum(_falling(c, r) for c in counts) / _falling(n, r) for r in (2, 3))
    apart = sum(_falling(c, 4) for c in counts) + 2 * _falling(counts[0], 2) * _falling(counts[1], 2)
    four = apart / _falling(n, 4)
    mean = total * two
    square = same * two + touching * three + (total**2 - same - touching) * four
    return mean, float(np.sqrt(max(square - mean**2, 0.0)))


def _falling(count: int, length: int) -> float:
    """count (count - 1) ... with `length` factors."""
    return float(np.prod([float(count - step) for step in range(length)]))
