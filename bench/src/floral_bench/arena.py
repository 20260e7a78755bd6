"""The arena: what a user with only untrusted labels would run, on 24 data sets under ten attacks.

Each data set is an ordinary suite (``arena-moon`` and so on); ``floral bench arena`` runs all of them and adds the
score card of `arena_card`. No method is told the attack, its level or a clean label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from floral_bench.adapt_suite import adapt
from floral_bench.arena_data import ARENA as NAMES
from floral_bench.arena_data import ARENA_FOLDS, SEVERAL_CLASSES
from floral_bench.arena_methods import methods
from floral_bench.data_kinds import arena_kind
from floral_bench.spec import Attack, Data, Suite, params

SPLITS = (1, 2, 3, 4, 5)
LEVELS = (0, 10, 20, 30)
RAREST = Attack("class-biased", params(of="rarest"))
VOTES = Attack("votes")
ATTACKS = (
    Attack("random"),
    Attack("farthest"),
    Attack("farthest", params(kernel="rbf")),
    Attack("near-boundary"),
    Attack("class-biased"),
    RAREST,
    Attack("alfa"),
    Attack("alfa-tilt"),
    Attack("lfa", params(n_first=100, n_check=4)),  # a tenth of the default's cost
)
# alfa and alfa-tilt are defined for two classes; lfa with ten classes tries nine flips per row.
_TWO_CLASSES = ("alfa", "alfa-tilt", "lfa")


def arena_attacks(name: str) -> tuple[Attack, ...]:
    """The attacks on a data set; where people have voted their votes, on reviews the gradient of a network."""
    kind = arena_kind(name)
    if kind.wrong_votes:
        return (VOTES,)
    if kind.attacks:
        return tuple(Attack(attack) for attack in kind.attacks)
    return tuple(a for a in ATTACKS if name not in SEVERAL_CLASSES or a.name not in _TWO_CLASSES)


def arena_suite(name: str) -> Suite:
    """The suite of one data set."""
    return Suite(
        name=f"arena-{name}",
        title=f"{name} (fold {ARENA_FOLDS[name]})",
        data=tuple(Data(f"arena-{name}", params(seed=seed)) for seed in SPLITS),
        attacks=arena_attacks(name),
        levels=(0, votes) if (votes := arena_kind(name).wrong_votes) else LEVELS,
        settings=((0.0, 0.0),),
        methods=methods(),
        seeds=SPLITS,
    )


ARENA_SUITES: dict[str, Suite] = {f"arena-{name}": arena_suite(name) for name in NAMES}

QUICK = ("moon", "digits-3-8", "iris", "imbalanced")
_QUICK_ATTACKS = ("random", "farthest", "class-biased")
_QUICK_METHODS = ("plain-svc", "safe-svc", "floral-default", "plain-boosting", "safe-boosting")


def adapted(
    quick: bool = False,
    reps: int | None = None,
    methods: Sequence[str] = (),
    levels: Sequence[float] = (),
    seed: int | None = None,
) -> list[Suite]:
    """The suites as the user asked for them; quick is one split of four data sets, three attacks, 0 and 30 %."""
    suites = [ARENA_SUITES[f"arena-{name}"] for name in (QUICK if quick else NAMES)]
    if quick:
        suites = [replace(suite, attacks=_few(suite.attacks)) for suite in suites]
        reps = 1 if reps is None else reps
        methods, levels = methods or _QUICK_METHODS, levels or (0, 30)
    return [adapt(suite, quick=quick, reps=reps, methods=methods, levels=levels, seed=seed) for suite in suites]


def _few(attacks: tuple[Attack, ...]) -> tuple[Attack, ...]:
    return tuple(attack for attack in attacks if attack.name in _QUICK_ATTACKS and not attack.params)
