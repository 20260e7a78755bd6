"""How many labels of a finite set are wrong, from rows in a secret random order: an interval valid at every moment.

The order of the N rows is drawn after the labels were fixed, and nobody knew it then. After k rows, w of them
wrong, a share W / N is kept as long as a Bayesian with a beta-binomial prior would not have lost faith in it by more
than the factor 1 / alpha: the prior-posterior ratio is a martingale under the true W (Waudby-Smith and Ramdas, 2020),
so the true W is lost at any time with probability at most alpha, however and whenever one stops.
"""

from __future__ import annotations

import secrets
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaln, gammaln

from floral_learn.base import Shown

# wrong labels are the rarer kind; any choice is valid, this one is tight below one half
_PRIOR = (0.5, 1.5)


@dataclass(frozen=True, repr=False)
class Guarantee(Shown):
    """An interval for the share of labels that the reviewer would change.

    Attributes
    ----------
    low, high : float
        The interval.
    checked : int
        Rows of the random order that have been answered so far, without a gap.
    wrong : int
        Answers among them that changed the label.
    unsure : int
        Answers among them that were "not sure" or in which reviewers disagree: right in `low`, wrong in `high`.
    total : int
        Rows in all.
    confidence : float
        The interval holds at every moment at once with at least this probability.
    valid : bool
        False where a seed made the order predictable: an attacker who knows the seed can avoid it.
    """

    low: float
    high: float
    checked: int
    wrong: int
    unsure: int
    total: int
    confidence: float
    valid: bool

    def _facts(self) -> dict[str, str]:
        facts = {
            "labels that would be changed": f"{self.low:.1%} to {self.high:.1%} of {self.total:,}",
            "confidence": f"{self.confidence:.0%}",
            "rows checked at random": f"{self.checked:,}, {self.wrong:,} wrong, {self.unsure:,} unsure",
        }
        return facts if self.valid else facts | {"void": "against an attacker who knows the seed"}

    def __str__(self) -> str:
        words = f"{self.low:.1%} to {self.high:.1%} of {self.total} labels would be changed"
        words += f" ({self.confidence:.0%} confidence, {self.checked} rows checked at random)"
        return words if self.valid else words + "; void against an attacker who knows the seed"


def random_order(n: int, seed: int | None, before: np.ndarray) -> np.ndarray:
    """A uniformly random order of n rows, by the system's entropy where `seed` is None.

    Rows that have an order already (`before`, the first rows) keep it among themselves, and the others fall in between
    at random: as if the order had been drawn for all of them at once.
    """
    if not np.array_equal(np.sort(before), np.arange(len(before))):
        raise ValueError("the order of rows must hold every row once")
    rng = np.random.default_rng(secrets.randbits(128) if seed is None else seed)
    order = rng.permutation(n)
    order[order < len(before)] = before
    return order


def answered_start(order: Iterable[int], known: Container[int]) -> list[int]:
    """The rows at the start of `order` that are all `known`."""
    start = []
    for row in order:
        if row not in known:
            break
        start.append(int(row))
    return start


def is_drawn(number: int, share: float) -> bool:
    """Whether question `number`, from 0, comes from the random order: evenly spread, `share` of all do."""
    return int((number + 1) * share) > int(number * share)


def wrong_bounds(total: int, wrong: np.ndarray, alpha: float, unsure: np.ndarray | None = None) -> tuple[int, int]:
    """Smallest and largest number of wrong labels among `total` that a random order leaves possible, at all times.

    Parameters
    ----------
    total : int
        Rows in all, N.
    wrong : bool ndarray of shape (k,)
        Whether each label, in the random order, is wrong.
    alpha : float
        Probability with which the interval may ever miss.
    unsure : bool ndarray of shape (k,), optional
        Rows without a clear answer: right for the lower bound, wrong for the upper.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.review.guarantee import wrong_bounds
    >>> wrong_bounds(1000, np.zeros(60, dtype=bool), alpha=0.05)
    (0, 76)
    """
    wrong = np.asarray(wrong, dtype=bool)
    unsure = np.zeros(len(wrong), dtype=bool) if unsure is None else np.asarray(unsure, dtype=bool)
    least, most = np.cumsum(wrong & ~unsure), np.cumsum(wrong | unsure)
    if not len(wrong):
        return 0, total
    low = int(_ends(total, least, alpha, upper=False).max())
    high = int(_ends(total, most, alpha, upper=True).min())
    return min(low, high), high


def kept(total: int, checked: Any, wrong: Any, alpha: float, values: Any) -> np.ndarray:
    """Whether numbers W of wrong labels in all are still in the interval; arrays are taken together."""
    checked, wrong, values = np.broadcast_arrays(checked, wrong, values)
    rest = values - wrong
    possible = (rest >= 0) & (rest <= total - checked)
    log = np.full(values.shape, -np.inf)
    log[possible] = _log_choose(total - checked[possible], rest[possible])
    log[possible] -= _log_choose(total, values[possible])
    a, b = _PRIOR
    mixture = betaln(a + wrong, b + checked - wrong) - betaln(a, b)
    return mixture - log < -np.log(alpha)


def _ends(total: int, wrong: np.ndarray, alpha: float, upper: bool) -> np.ndarray:
    """After each of k rows, of which so many were `wrong` (k,), the last W that is kept, up or down from the likeliest.

    By bisection, all at once: the likelihood falls on both sides of the likeliest one.
    """
    checked = np.arange(1, len(wrong) + 1)
    inside = np.clip(np.rint(wrong / checked * total).astype(int), wrong, total - checked + wrong)
    outside = total - checked + wrong + 1 if upper else wrong - 1
    while (np.abs(outside - inside) > 1).any():
        middle = (inside + outside) // 2
        fits = kept(total, checked, wrong, alpha, middle)
        inside, outside = np.where(fits, middle, inside), np.where(fits, outside, middle)
    return inside


def spent_on(alpha: float, appends: int) -> float:
    """The part of `alpha` for the interval after so many calls of `append`: all parts sum to less than `alpha`."""
    return 6 * alpha / (np.pi * (appends + 1)) ** 2


def _log_choose(n: Any, k: np.ndarray) -> np.ndarray:
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
