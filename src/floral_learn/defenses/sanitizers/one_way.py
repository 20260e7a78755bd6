"""Flips that all leave one class, told from a class that is merely hard.

Let a class lose a share of its labels at random, whichever way they went. Where its rows lie, what is left of its own
labels and the foreign ones are then mixed in *one* proportion: going down the rows, ordered by how much they look like
the class, the foreign labels per own label stay level (Scott, Blanchard and Handy, 2013: the slope of the ROC curve at
its foot is the contamination). Classes that overlap by nature do not look like that: at their core the slope is near
zero, and it grows outwards. So the test asks for a level slope, and for a core in which the class's own labels are
outnumbered or nearly so; elsewhere a plain model is right anyway.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

FEWEST = 20  # own labels below which quantiles say nothing
CORE = (0.5, 0.7)  # shares of the class's own labels, from the surest row on
RIM = 0.85
LEVEL = 0.7  # the lowest slope in the core over the slope at the rim: 1 for contamination
MOST_FOREIGN = 0.55  # of all other labels; with more, most labels of the rest would be wrong
OWN_IN_CORE = 0.6  # share of own labels in the core above which a plain model gets it right anyway


@dataclass(frozen=True)
class OneWay:
    """A class that seems to have lost labels: its foreign labels (n,) and the numbers behind the finding."""

    code: int
    foreign: NDArray[np.bool_]
    slopes: tuple[float, ...]
    own_in_core: float

    @property
    def level(self) -> float:
        """How level the slope is: 1 means perfectly mixed."""
        return min(self.slopes[:-1]) / self.slopes[-1] if self.slopes[-1] > 0 else 0.0


def one_way_flips(
    model_shares: NDArray[np.float64],
    near_shares: NDArray[np.float64],
    codes: NDArray[np.intp],
    weight: NDArray[np.float64],
) -> list[OneWay]:
    """The classes that seem to have lost their labels, from what two judges give each class (n, M)."""
    found = []
    for code in range(model_shares.shape[1]):
        own = codes == code
        if own.sum() < FEWEST or own.all():
            continue
        looks = rankdata(model_shares[:, code]) + rankdata(near_shares[:, code])
        candidate = _measure(looks, code, own, weight)
        if candidate.level >= LEVEL and candidate.slopes[-1] <= MOST_FOREIGN and candidate.own_in_core <= OWN_IN_CORE:
            found.append(candidate)
    return found


def _measure(looks: NDArray[np.float64], code: int, own: NDArray[np.bool_], weight: NDArray[np.float64]) -> OneWay:
    order = np.argsort(-looks, kind="stable")
    own_mass = np.cumsum((weight * own)[order])
    other_mass = np.cumsum((weight * ~own)[order])
    hits, misses = own_mass / own_mass[-1], other_mass / other_mass[-1]

    def slope(share: float) -> tuple[float, Any]:
        at = int(np.searchsorted(hits, share - 1e-12))
        return misses[at] / hits[at], at

    slopes = tuple(slope(share)[0] for share in (*CORE, RIM))
    at = slope(CORE[-1])[1]
    border = int(np.argmax(hits - misses))  # the cut that separates best, all classes counted alike
    inside = np.zeros(len(looks), bool)
    inside[order[: border + 1]] = True
    return OneWay(code, inside & ~own, slopes, own_mass[at] / (own_mass[at] + other_mass[at]))
