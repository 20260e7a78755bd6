"""The arena: what a user with only untrusted labels would run, on 24 data sets under ten attacks.

Each data set is an ordinary suite (``arena-moon`` and so on); ``floral bench arena`` runs all of them and adds one
card, in which a cell is a data set, an attack and a level. No method is told the attack, its level or a clean label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from floral_bench.adapt_suite import adapt
from floral_bench.arena_data import ARENA as NAMES
from floral_bench.arena_data import SEVERAL_CLASSES
from floral_bench.arena_methods import BASES, methods
from floral_bench.data_kinds import arena_kind
from floral_bench.reporting.results import attack_title, by_metric, cell_frame
from floral_bench.reporting.tables import markdown
from floral_bench.spec import Attack, Cell, Data, Suite, params
from floral_bench.store import Store

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
        title=f"{name}, told nothing",
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


CELL = ["data", "attack", "level"]
LEVEL, FAR_BELOW = 0.0005, -0.02  # differences that count as none, and as harm


def arena_frame(cells: Sequence[Cell], store: Store) -> pd.DataFrame:
    """One row per finished fit: data, attack, level, split, method, scores, seconds."""
    fits = [cell for cell in cells if cell.method.name != "attack"]
    costs = store.costs(cell.key for cell in fits)

    def named(cell: Cell) -> dict[str, Any]:
        attack = "clean" if cell.attack is None else attack_title(cell.attack)
        where = {"data": cell.data.name.removeprefix("arena-"), "attack": attack, "level": cell.level}
        took = costs.get(cell.key, (0.0,))[0]
        return where | {"split": cell.seed, "method": cell.method.title, "seconds": took}

    found = by_metric(cell_frame(fits, store, named))
    return found.reindex(columns=[*CELL, "split", "method", "accuracy", "balanced_accuracy", "seconds"])


def over_plain(frame: pd.DataFrame, metric: str = "accuracy") -> pd.DataFrame:
    """Each method minus the plain model behind it, (cells, methods): paired by split, then averaged."""
    wide = frame.pivot_table(index=[*CELL, "split"], columns="method", values=metric)
    paired = {name: wide[name] - wide[BASES[name]] for name in wide if BASES.get(name) in wide and BASES[name] != name}
    return pd.DataFrame(paired).groupby(level=CELL).mean()


def score_card(frame: pd.DataFrame) -> pd.DataFrame:
    """A row per method, best first: mean accuracies, and differences to the plain model behind it over poisoned cells.

    ``above`` is the share of poisoned cells that are higher by more than 0.0005, ``below`` that of cells more than 0.02
    under it, ``clean_gain`` the mean difference on clean labels, ``seconds`` a median per fit.
    """
    accuracy = frame.groupby([*CELL, "method"])["accuracy"].mean().unstack("method")
    plain, even = over_plain(frame), over_plain(frame, "balanced_accuracy")
    poisoned, rows = accuracy.index.get_level_values("level") > 0, []
    for name, mine in accuracy.items():
        row = {"method": name, "clean": mine[~poisoned].mean(), "poisoned": mine[poisoned].mean()}
        if name in plain:
            bad = plain.index.get_level_values("level") > 0
            gain = plain.loc[bad, name].dropna()
            row |= {"gain": gain.mean(), "median": gain.median(), "above": (gain > LEVEL).mean()}
            row |= {"below": (gain < FAR_BELOW).mean(), "worst": gain.min(), "balanced": even.loc[bad, name].mean()}
            row |= {"clean_gain": plain.loc[~bad, name].mean()}
        rows.append(row | {"seconds": frame[frame.method == name]["seconds"].median()})
    card = pd.DataFrame(rows)
    return card.sort_values("poisoned", ascending=False, kind="stable", ignore_index=True)


FORMS = {
    "clean": ("clean", ".4f"), "poisoned": ("poisoned", ".4f"), "gain": ("over plain, mean", "+.4f"),
    "median": ("median", "+.4f"), "above": ("cells above", ".0%"), "below": ("cells > 0.02 below", ".0%"),
    "worst": ("worst cell", "+.3f"), "balanced": ("balanced, over plain", "+.4f"),
    "clean_gain": ("clean, over plain", "+.4f"), "seconds": ("s per fit", ".2f"),
}  # fmt: skip


def arena_card(frame: pd.DataFrame) -> str:
    """The card as Markdown."""
    card = score_card(frame)
    for name, (title, form) in FORMS.items():
        if name in card:
            card[name] = ["" if value != value else f"{value:{form}}" for value in card[name]]
            card = card.rename(columns={name: title})
    cells = frame[frame.level > 0].drop_duplicates(CELL)
    return f"{len(cells)} poisoned cells of {cells.data.nunique()} data sets.\n\n{markdown(card)}"
