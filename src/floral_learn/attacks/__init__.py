"""Label attacks on data sets: ``poison(X, y) -> PoisonResult(y, indices, scores)``."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from floral_learn.base.alignment import align
from floral_learn.base.validation import count_points, encode_labels

from .adaptive import Adaptive
from .alfa import Alfa
from .alfa_tilt import AlfaTilt
from .base import LabelAttack, PoisonResult, VictimEffect
from .boundary import Farthest, NearBoundary
from .constraints import aimed_rows, allowed_rows
from .display import PoisonDisplay
from .evasive import Evasive
from .gradient import Gradient
from .lfa import LabelFlipping
from .pointwise import Pointwise
from .random_flips import ClassBiased, RandomFlips
from .top_k import RandomizedTopK, TopK

__all__ = [
    "ATTACKS", "Adaptive", "Alfa", "AlfaTilt", "ClassBiased", "Evasive", "Farthest", "Gradient", "LabelAttack",
    "LabelFlipping", "NearBoundary", "Pointwise", "PoisonDisplay", "PoisonResult", "RandomFlips", "RandomizedTopK",
    "TopK", "VictimEffect", "poison",
]  # fmt: skip


# name on the command line -> class, in this order; a new attack is one file and one name here
_CLASSES: tuple[type[LabelAttack], ...] = (
    RandomFlips, ClassBiased, Farthest, NearBoundary, TopK, RandomizedTopK, Alfa, AlfaTilt, LabelFlipping, Gradient,
    Evasive, Adaptive, Pointwise,
)  # fmt: skip
ATTACKS = {attack.name: attack for attack in _CLASSES}


def attack_class(name: Any) -> type[LabelAttack]:
    """Return the class behind a name of ``ATTACKS``; an unknown name is an error that lists them."""
    if name not in ATTACKS:
        raise ValueError(f"attack={name!r} is unknown; choose one of {', '.join(ATTACKS)}")
    return ATTACKS[name]


def named_attacks(attacks: Any, **settings: Any) -> dict[str, LabelAttack]:
    """Return name -> attack from names, attacks, a list of both, or a dict whose values are either.

    An attack given by name is made with ``settings``; one that is given as an object stays as it is.

    Examples
    --------
    >>> from floral_learn.attacks import Farthest, named_attacks
    >>> list(named_attacks(["random", Farthest()]))
    ['random', 'farthest']
    """
    if not isinstance(attacks, Mapping):
        several = [attacks] if isinstance(attacks, str | LabelAttack) else attacks
        attacks = {one if isinstance(one, str) else one.name: one for one in several}
    made = {name: attack_class(one)(**settings) for name, one in attacks.items() if isinstance(one, str)}
    return {name: made.get(name, one) for name, one in attacks.items()}


def poison(
    X: Any,
    y: Any,
    *,
    attack: str = "farthest",
    budget: float | int = 0.1,
    random_state: Any = None,
    target: Any = None,
    **attack_params: Any,
) -> PoisonResult:
    """Flip ``budget`` labels of (X, y) with a published attack, chosen by name from ``ATTACKS``.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n, d)
        Rows; the attacks that look at labels only take ``None`` too.
    y : array-like of shape (n,)
        Labels of any kind, matched with the rows by index where both have one; never modified.
    attack : str, default="farthest"
        One of ``ATTACKS``: random, class-biased, farthest, near-boundary, top-k, randomized-top-k, alfa, alfa-tilt,
        lfa, gradient, evasive, adaptive, pointwise.
    budget : float or int, default=0.1
        Flips: a float in [0, 1] is a fraction of all rows (rounded down), an int a count.
    random_state : int, Generator, RandomState or None
        Source of every random choice.
    target : label, (m, d) array, or array of row numbers, optional
        What the attacker is after. A label of y: this class should be missed, so only its labels are flipped, those
        that the attack likes best. Rows (of features, or numbers of rows of X): these should be misread, so the labels
        around them are flipped: the nearest rows of the label that each target would get, in turn. The attack then
        chooses only the new labels. ``attack="pointwise"`` finds for such rows the fewest flips that turn them.
    **attack_params : dict
        Parameters of the attack's class, for example ``C=10, gamma=1`` (alfa, alfa-tilt), ``surrogate=...`` (all that
        need a victim), ``mask=...`` or ``class_limits=...`` (all).

    Returns
    -------
    PoisonResult
        The poisoned labels in the order of X, which rows changed, and the attack's ranking of all rows.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import poison
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> result = poison(X, y, attack="farthest", budget=0.1)
    >>> len(result.indices), int((result.y != y).sum())
    (10, 10)

    Make a model misread one row, and see what that does to it:

    >>> from sklearn.svm import SVC
    >>> aimed = poison(X[1:], y[1:], budget=15, target=X[:1])
    >>> before, after = (SVC().fit(X[1:], labels).predict(X[:1]) for labels in (aimed.before, aimed.y))
    >>> bool(before != after)
    True
    >>> effect = aimed.effect_on(SVC(), X[1:], X, y)  # prints accuracy and recalls, before and after
    """
    cls = attack_class(attack)
    allowed = [field.name for field in fields(cls)]
    if unknown := sorted(set(attack_params) - set(allowed)):
        raise TypeError(f"attack {attack!r} has no parameter {', '.join(unknown)}; it has {', '.join(allowed)}")
    if target is not None and np.ndim(target) > 0 and "target" in allowed:
        attack_params["target"] = target
    elif target is not None:
        first, whose = (y, "y") if X is None else (X, "X")
        mask = align(first, attack_params.get("mask"), (whose, "mask"))
        classes, codes = encode_labels(align(first, y), f"attack {attack!r}")
        permitted = allowed_rows(mask, len(codes))
        flips = count_points(budget, len(codes), "budget")
        attack_params["mask"] = aimed_rows(target, X, codes, classes, flips, permitted)
    return cls(budget=budget, random_state=random_state, **attack_params).poison(X, y)
