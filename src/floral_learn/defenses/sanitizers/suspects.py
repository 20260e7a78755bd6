"""Which labels two judges contradict, from the class shares that they give each row."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from floral_learn.defenses.sanitizers.one_way import OneWay, clumped, one_way_flips
from floral_learn.defenses.sanitizers.rule import Rule

Shares = NDArray[np.float64]
Codes = NDArray[np.intp]


def find_suspects(
    X: Any, shares: Shares, near: Shares, codes: Codes, weight: NDArray[np.float64], rule: Rule
) -> tuple[NDArray[np.bool_], NDArray[np.float64], OneWay | None]:
    """Suspects (n,), the weights (n,) to try, and the class that lost labels, if one did; from shares (n, M).

    X (n, d) are the rows on one scale.
    """
    lost = [
        pattern
        for pattern in one_way_flips(shares, near, codes, weight)
        if pattern.counts(rule) and clumped(X, pattern.inside, codes == pattern.code) <= rule.most_clumped
    ]
    if lost:
        most = max(lost, key=lambda pattern: float(weight[pattern.foreign].sum()))
        return most.foreign, np.where(most.foreign, 0.0, 1.0), most
    mean = (shares + near) / 2
    both = rule.scattered == "both"
    suspects = scattered_suspects(shares, near, codes) if both else confident_suspects(mean, codes)
    if rarest_share(codes, weight) < rule.scattered_share:
        return suspects, np.ones(len(codes)), None
    others = restoring_weights(mean, codes) if rule.scattered == "restored" else np.ones(len(codes))
    doubted = suspects & ~undecided(suspects, codes, weight)
    return suspects, np.where(doubted, rule.scattered_weight, others), None


def scattered_suspects(shares: Shares, near: Shares, codes: Codes) -> NDArray[np.bool_]:
    """Labels (n,) for which both judges name the same other class."""
    said = shares.argmax(axis=1)
    return (said != codes) & (near.argmax(axis=1) == said)


def mixed_suspects(X: Any, shares: Shares, near: Shares, codes: Codes, most_clumped: float) -> NDArray[np.bool_]:
    """Scattered suspects (n,) that lie at random among the rows that both judges give to one class.

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


def confident_suspects(shares: Shares, codes: Codes) -> NDArray[np.bool_]:
    """Labels (n,) that look more like another class than that class's own labels do on average.

    The rule of confident learning (Northcutt, Jiang and Chuang, 2021): a threshold per class, so that a class that
    has lost labels is not always outvoted.
    """
    sure, named = _confident(shares, codes)
    return sure & (named != codes)


def restoring_weights(shares: Shares, codes: Codes) -> NDArray[np.float64]:
    """One over the share of its class's labels that seem to have been kept, (n,); at most ten."""
    sure, named = _confident(shares, codes)
    n_classes = shares.shape[1]
    joint = np.zeros((n_classes, n_classes))  # given, named
    np.add.at(joint, (codes[sure], named[sure]), 1.0)
    rows = joint.sum(axis=1, keepdims=True)
    joint *= np.bincount(codes, minlength=n_classes)[:, None] / np.where(rows > 0, rows, 1.0)
    named_mass = joint.sum(axis=0)
    kept = np.where(named_mass > 0, np.diag(joint) / np.where(named_mass > 0, named_mass, 1.0), 1.0)
    return (1.0 / np.maximum(kept, 0.1))[codes]


def _confident(shares: Shares, codes: Codes) -> tuple[NDArray[np.bool_], Codes]:
    present = np.unique(codes)
    typical = np.array([shares[codes == code, code].mean() for code in present])
    sure = np.where(shares[:, present] >= typical, shares[:, present], -1.0)
    return sure.max(axis=1) >= 0, present[sure.argmax(axis=1)]


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
