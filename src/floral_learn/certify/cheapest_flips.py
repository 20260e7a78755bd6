"""The cheapest label flips that turn a prediction which is linear in the labels, by one sort per rival class.

A linear smoother scores class c at x by s_c(x) = sum_i a_i(x) [y_i = c], where the weights a(x) do not depend on the
labels. Let c be the winner and d a rival, and write e_m = [m = c] - [m = d]. The lead of c over d is

    s_c - s_d = sum_i a_i e_{y_i},

a sum with one term per label: replacing label y_i by m takes a_i (e_{y_i} - e_m) off the lead, whatever happens to
the other labels. So each label has one best replacement, the most that k flips can take off is the sum of the k
largest such gains, and the smallest k whose sum reaches the lead is exact. c stays the prediction as long as it leads
every rival, so the minimum over rivals is exact too (docs/certificates.md has the proof).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_learn.game.arrays import NUMPY, Array, NumpyBackend


@dataclass(frozen=True)
class Attacker:
    """What can be done to which labels.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        The given labels, as numbers 0 .. M - 1.
    possible : bool ndarray of shape (M, M)
        ``possible[m, l]``: a label of class m may be replaced by l. The diagonal does not matter.
    reachable : bool ndarray of shape (n,)
        Labels that can be flipped at all; trusted ones cannot.
    """

    codes: np.ndarray
    possible: np.ndarray
    reachable: np.ndarray

    @property
    def n_classes(self) -> int:
        """M."""
        return len(self.possible)

    def steps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the best flip of a label of class m takes off the lead of c over d, per unit of |a_i|.

        Returns three arrays (M, M, M), indexed [c, d, m]: e_m itself, the step where a_i > 0 (to the allowed class
        with the least e) and the step where a_i < 0 (to the allowed class with the most).
        """
        same = np.eye(self.n_classes)
        worth = same[:, None, :] - same[None, :, :]  # e_m for winner c and rival d
        may = self.possible | np.eye(self.n_classes, dtype=bool)  # a label may always stay
        least = np.where(may, worth[:, :, None, :], np.inf).min(axis=3)
        most = np.where(may, worth[:, :, None, :], -np.inf).max(axis=3)
        return worth, worth - least, most - worth


def possible_changes(possible_flips: Mapping[Any, Any] | None, classes: np.ndarray) -> np.ndarray:
    """Which class an attacker can turn into which, (M, M) booleans, from a label -> the labels that can replace it."""
    possible = np.zeros((len(classes), len(classes)), dtype=bool)
    if possible_flips is None:
        return ~np.eye(len(classes), dtype=bool)
    number = {label: code for code, label in enumerate(classes.tolist())}
    for label, targets in possible_flips.items():
        several = targets if isinstance(targets, list | tuple | set | frozenset | np.ndarray) else [targets]
        for known in (label, *several):
            if known not in number:
                raise ValueError(f"possible_flips names {known!r}, which is not a label; labels are {list(number)}")
        possible[number[label], [number[target] for target in several]] = True
    np.fill_diagonal(possible, False)  # a label that stays is no flip
    return possible


def gains(a: Array, winner: Array, rival: Array, attacker: Attacker, backend: NumpyBackend = NUMPY) -> Array:
    """What the best flip of each label takes off the lead: (m, n), zero where no allowed flip helps.

    ``a`` is (m, n), ``winner`` and ``rival`` are (m,) class numbers.
    """
    xp = backend.xp
    _, down, up = (backend.cast(backend.array(table), a.dtype) for table in attacker.steps())
    codes = backend.array(attacker.codes)
    gain = xp.where(a > 0, a * down[winner, rival][:, codes], -a * up[winner, rival][:, codes])
    if not attacker.reachable.all():
        gain = gain * backend.cast(backend.array(attacker.reachable), a.dtype)
    return gain


def survived_flips(
    a: Array, slack: Array, attacker: Attacker, backend: NumpyBackend = NUMPY
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Winner, flips that it survives and the rival that is cheapest to put in its place, each (m,).

    Parameters
    ----------
    a : array of shape (m, n)
        Weights of the labels at m rows.
    slack : array of shape (m,)
        How far a lead can be from the computed one for any labels: sums of rounding errors. A lead within it counts as
        lost, so that rounding and ties never raise a number.
    attacker : Attacker
        What can be flipped.

    Returns
    -------
    winner, flips, rival : ndarrays of shape (m,)
        ``flips`` is -1 where the lead itself is within the slack, and n where no allowed flips turn the prediction.
    """
    xp, n_classes = backend.xp, attacker.n_classes
    codes = backend.array(attacker.codes)
    labels = backend.cast(codes[:, None] == backend.array(np.arange(n_classes)), backend.float64)
    scores = backend.cast(a, backend.float64) @ labels
    winner = scores.argmax(1)
    rows = backend.arange(len(winner))
    fewest, nearest = None, None
    for step in range(1, n_classes):  # every row meets each rival once
        rival = (winner + step) % n_classes
        room = scores[rows, winner] - scores[rows, rival] - slack  # what flips may take and certainly not turn it
        taken = _largest_first(gains(a, winner, rival, attacker, backend), backend)
        flips = backend.cast((taken < room[:, None]).sum(1), backend.int64)
        flips = xp.where(room > 0, flips, -xp.ones_like(flips))
        if fewest is None:
            fewest, nearest = flips, rival
        else:
            closer = flips < fewest
            fewest, nearest = xp.where(closer, flips, fewest), xp.where(closer, rival, nearest)
    found = [backend.numpy(x).astype(np.intp) for x in (winner, fewest, nearest)]
    return found[0], found[1], found[2]


def _largest_first(gain: Array, backend: NumpyBackend) -> Array:
    """Sums of the 1, 2, ... n largest gains of each row, in float64."""
    if backend.name == "torch":
        return backend.xp.cumsum(backend.xp.sort(gain, dim=1, descending=True).values, dim=1, dtype=backend.float64)
    gain.sort(axis=1)
    return np.cumsum(gain[:, ::-1], axis=1, dtype=np.float64)


def turning_flips(
    a: np.ndarray, slack: float, winner: int, rival: int, attacker: Attacker
) -> tuple[np.ndarray, np.ndarray] | None:
    """Labels (k,) whose flips put ``rival`` above ``winner`` for sure, and their new classes; None where none do.

    ``a`` is (n,). The largest gains first, as few as bring the lead below -slack: one more than a row survives, or
    more where the first of these flips end in a tie.
    """
    worth, *_ = attacker.steps()
    lead = float(a.astype(np.float64) @ worth[winner, rival][attacker.codes])
    gain = gains(a[None], np.array([winner]), np.array([rival]), attacker)[0]
    order = np.argsort(-gain, kind="stable")
    taken = np.cumsum(gain[order], dtype=np.float64)
    if not taken[-1] > lead + slack:
        return None
    rows = order[: int((taken <= lead + slack).sum()) + 1]
    may = attacker.possible[attacker.codes[rows]] | (np.arange(attacker.n_classes) == attacker.codes[rows][:, None])
    # What is left of a_i e_m for each allowed class m; the least of them is the best replacement.
    left = np.where(may, a[rows, None] * worth[winner, rival], np.inf)
    return rows, left.argmin(axis=1)
