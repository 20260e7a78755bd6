"""The secret walk: a random order of all rows, drawn after the labels are fixed."""

from __future__ import annotations

import secrets
from collections.abc import Container, Iterable

import numpy as np


def drawn(n: int, seed: int | None, before: np.ndarray) -> np.ndarray:
    """A uniformly random order of n rows, by the system's entropy where `seed` is None.

    Rows that have an order already (`before`, the first rows) keep it among themselves, and the others fall in between
    at random: as if the order had been drawn for all of them at once.
    """
    rng = np.random.default_rng(secrets.randbits(128) if seed is None else seed)
    walk = rng.permutation(n)
    walk[walk < len(before)] = before
    return walk


def unbroken(walk: Iterable[int], known: Container[int]) -> list[int]:
    """The rows at the start of `walk` that are all `known`."""
    found = []
    for row in walk:
        if row not in known:
            break
        found.append(int(row))
    return found


def on_walk(number: int, share: float) -> bool:
    """Whether question `number`, from 0, walks: evenly spread, so that `share` of all do."""
    return int((number + 1) * share) > int(number * share)
