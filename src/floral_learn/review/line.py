"""A line on which rows lie between two classes, and questions that look along it."""

from __future__ import annotations

import numpy as np


def between(first: np.ndarray, last: np.ndarray, share: float) -> np.ndarray:
    """Places (n,) from -2 to 2 by the ranks of both, `share` of the last."""
    mixed = (1 - share) * first + share * last
    return 4.0 * np.argsort(np.argsort(mixed, kind="stable"), kind="stable") / len(mixed) - 2.0


def looks(line: np.ndarray, codes: np.ndarray, free: np.ndarray, done: int, n: int, seed: int) -> np.ndarray:
    """Rows (at most n) spread over the `line`, by turns for each given label, after `done` that were asked before.

    Each label's rows are looked at in halves, quarters and so on of their order, shifted by chance: nobody who placed
    wrong labels can know where.
    """
    shift = np.random.default_rng([seed, 7]).random(codes.max() + 1)
    found: list[int] = []
    for number in range(done, done + n):
        code, turn = number % len(shift), number // len(shift)
        mine = np.flatnonzero(free & (codes == code) & ~np.isin(np.arange(len(codes)), found))
        if len(mine):
            place = int(len(mine) * ((_halves(turn + 1) + shift[code]) % 1.0))
            found.append(int(mine[np.argsort(line[mine], kind="stable")[place]]))
    return np.array(found, dtype=np.intp)


def _halves(number: int) -> float:
    """1/2, 1/4, 3/4, 1/8, 5/8 and so on: van der Corput's sequence, from number 1."""
    value, step = 0.0, 0.5
    while number:
        value += step * (number & 1)
        number, step = number >> 1, step / 2
    return value
