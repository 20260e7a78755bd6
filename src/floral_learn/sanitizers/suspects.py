"""Which labels two judges contradict, from the class shares that they give each row."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from floral_learn.sanitizers.one_way import OneWay, clumped, one_way_flips
from floral_learn.sanitizers.rule import Rule

Shares = NDArray[np.float64]
Codes = NDArray[np.intp]


def find_suspects(
    X: Any, shares: Shares, near: Shares, codes: Codes, weight: NDArray[np.float64], rule: Rule
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], OneWay | None]:
    """Suspects (n,), those (n,) to try to leave out, and the class that lost labels, if one did; from shares (n, M).

    X (n, d) are the rows on one scale.
    """
    lost = [
        pattern
        for pattern in one_way_flips(shares, near, codes, weight)
        if pattern.counts(rule) and clumped(X, pattern.inside, codes == pattern.code) <= rule.most_clumped
    ]
    if lost:
        most = max(lost, key=lambda pattern: float(weight[pattern.foreign].sum()))
        return most.foreign, most.foreign, most
    suspects = mixed_suspects(X, shares, near, codes, rule.most_clumped)
    if rarest_share(codes, weight) < rule.scattered_share:
        return suspects, np.zeros(len(codes), bool), None
    return suspects, suspects & ~undecided(suspects, codes, weight), None


def mixed_suspects(X: Any, shares: Shares, near: Shares, codes: Codes, most_clumped: float) -> NDArray[np.bool_]:
    """Labels (n,) that both judges contradict and that lie at random among the rows that both give to one class.

    Labels that went wrong at random do. Where labels that the judges contradict keep to themselves, somebody chose
    them, or the classes overlap there, and nobody can tell who is right. X (n, d) are the rows on one scale.
    """
    said = shares.argmax(axis=1)
    agreed = near.argmax(axis=1) == said
    suspects = np.zeros(len(codes), bool)
    for code in np.unique(said[agreed]):
        region, own = agreed & (said == code), codes == code
        if (region & ~own).any() and clumped(X, region, own) <= most_clumped:
            suspects |= region & ~own
    return suspects


def rarest_share(codes: Codes, weight: NDArray[np.float64]) -> float:
    """Labels of the rarest class that has any, as a share of what it would have if all classes were even."""
    mass = np.bincount(codes, weights=weight)
    mass = mass[mass > 0]
    return float(len(mass) * mass.min() / mass.sum())


def undecided(suspects: NDArray[np.bool_], codes: Codes, weight: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Rows (n,) of classes of which most labels are doubted: more than some wrong labels; who is right is open."""
    mass = np.bincount(codes, weights=weight)
    doubted = np.bincount(codes, weights=weight * suspects)
    return (doubted > mass / 2)[codes]
