"""The attacks by name, and the one reading of ``attacks=`` wherever several are taken."""

from collections.abc import Mapping
from typing import Any

from .adaptive import Adaptive
from .alfa import Alfa
from .alfa_tilt import AlfaTilt
from .base import LabelAttack
from .boundary import Farthest, NearBoundary
from .evasive import Evasive
from .gradient import Gradient
from .lfa import LabelFlipping
from .pointwise import Pointwise
from .random_flips import ClassBiased, RandomFlips
from .top_k import RandomizedTopK, TopK

# name on the command line -> class; a new attack is one file and one line here
ATTACKS: dict[str, type[LabelAttack]] = {
    attack.name: attack
    for attack in (
        RandomFlips,
        ClassBiased,
        Farthest,
        NearBoundary,
        TopK,
        RandomizedTopK,
        Alfa,
        AlfaTilt,
        LabelFlipping,
        Gradient,
        Evasive,
        Adaptive,
        Pointwise,
    )
}


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
    >>> from floral_learn.attacks import Farthest
    >>> from floral_learn.attacks.registry import named_attacks
    >>> list(named_attacks(["random", Farthest()]))
    ['random', 'farthest']
    """
    if not isinstance(attacks, Mapping):
        several = [attacks] if isinstance(attacks, str | LabelAttack) else attacks
        attacks = {one if isinstance(one, str) else one.name: one for one in several}
    return {name: attack_class(one)(**settings) if isinstance(one, str) else one for name, one in attacks.items()}
