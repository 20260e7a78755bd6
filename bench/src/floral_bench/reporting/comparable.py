"""Which numbers of a table can be held against each other: the one rule behind bold type and behind who won."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

from floral_bench.reporting.results import WIDER
from floral_bench.spec import Method, Suite

Row = TypeVar("Row", bound=Hashable)


def comparable(suite: Suite, method: Method, statistic: str) -> str:
    """What a number was allowed to know, in words: numbers of one statistic with the same words can be compared.

    A peak over rounds and a setting of the grid are chosen on test labels; of the others, some are told how many labels
    are poisoned. Single fits have the suite's C and gamma, or settings of their own, such as the defaults of `SVC`.
    Heads on a text encoder are compared with heads on the same one.
    """
    encoder = [f"{name} encoder" for key, name in method.params if key == "encoder"]
    told = method.told
    if method.needs_grid or statistic.removesuffix(WIDER) == "best" or told == "test labels":
        return ", ".join(["chosen on test labels", *encoder])
    shared = method.per_setting and not suite.default_setting
    words = ["told the level" if told else "told nothing", "C of the suite" if shared else "own settings"]
    return ", ".join([*words, *encoder])


def best_of(values: Mapping[Row, float], groups: Mapping[Row, Hashable]) -> set[Row]:
    """The rows with the highest value of their group; none of a group of one, and none where all are level.

    >>> best_of({"a": 0.7, "b": 0.9, "c": 0.8}, {"a": "told", "b": "told", "c": "untold"})
    {'b'}
    """
    members: dict[Hashable, list[float]] = {}
    for row, value in values.items():
        members.setdefault(groups[row], []).append(value)
    return {
        row for row, value in values.items()
        if min(members[groups[row]]) < value and value >= max(members[groups[row]])
    }  # fmt: skip
