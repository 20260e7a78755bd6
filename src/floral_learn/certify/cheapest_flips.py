"""The cheapest label flips that change a prediction which is linear in the labels, by one sort per rival class.

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

    def gains(self, a: np.ndarray, winner: np.ndarray, rival: np.ndarray) -> np.ndarray:
        """What the best flip of each label takes off the lead: (m, n), zero where no possible flip helps.

        ``a`` is (m, n), ``winner`` and ``rival`` are (m,) class numbers.
        """
        down, up = self._steps(winner, rival), self._steps(rival, winner)
        gain = np.where(a > 0, a * down[:, self.codes], -a * up[:, self.codes])
        gain[:, ~self.reachable] = 0.0
        return gain

    def _steps(self, high: np.ndarray, low: np.ndarray) -> np.ndarray:
        """How far [m = high] - [m = low] falls by the best flip of a label m: 0, 1 or 2, (m, M)."""
        rows = np.arange(len(high))
        other = np.logical_and(self.possible, ~np.eye(self.n_classes, dtype=bool))
        steps = other[:, low].T.astype(np.float64)  # a label of a third class becomes `low`
        steps[rows, high] = np.where(other[high, low], 2.0, other.any(axis=1)[high])
        steps[rows, low] = 0.0
        return steps


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


def class_scores(a: np.ndarray, codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Scores (m, M): the weights (m, n) of the labels of each class, summed."""
    return a @ (codes[:, None] == np.arange(n_classes)).astype(np.float64)


def survived_flips(a: np.ndarray, slack: np.ndarray, attacker: Attacker) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Winner, flips that it survives and the rival that fewest flips put in its place for sure, each (m,).

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
        ``flips`` is -1 where the lead itself is within the slack, and n where no possible flips change the prediction.
    """
    m, n = a.shape
    scores = class_scores(a, attacker.codes, attacker.n_classes)
    winner = scores.argmax(axis=1)
    leads = scores[np.arange(m), winner][:, None] - scores
    leads[np.arange(m), winner] = np.inf
    nearest = leads.argsort(axis=1, kind="stable")[:, :-1]
    # No flip takes more than 2 |a_i| off any lead: rivals that k flips cannot reach by that need no sort of their own.
    reach = _largest_first(2.0 * np.abs(a) * attacker.reachable)
    survived, sure, closest = np.full(m, n), np.full(m, n + 1), nearest[:, 0].copy()
    for place in range(attacker.n_classes - 1):
        rival = nearest[:, place]
        lead = leads[np.arange(m), rival]
        rows = np.flatnonzero(reach[np.arange(m), sure - 1] >= lead - slack)
        if len(rows) == 0:
            continue
        taken = _largest_first(attacker.gains(a[rows], winner[rows], rival[rows]))
        room, certain = (lead[rows] - slack[rows])[:, None], (lead[rows] + slack[rows])[:, None]
        survived[rows] = np.minimum(survived[rows], (taken < room).sum(axis=1) - 1)
        needed = (taken <= certain).sum(axis=1)
        closer = needed < sure[rows]
        closest[rows[closer]], sure[rows[closer]] = rival[rows[closer]], needed[closer]
    return winner, survived, closest


def _largest_first(gain: np.ndarray) -> np.ndarray:
    """Sums of the 0, 1, 2, ... n largest gains of each row, (m, n + 1)."""
    sums = np.zeros((len(gain), gain.shape[1] + 1))
    np.cumsum(-np.sort(-gain, axis=1), axis=1, out=sums[:, 1:])
    return sums


def turning_flips(
    a: np.ndarray, slack: float, winner: int, rival: int, attacker: Attacker
) -> tuple[np.ndarray, np.ndarray] | None:
    """Labels (k,) whose flips put ``rival`` above ``winner`` for sure, and their new classes; None where none do.

    ``a`` is (n,). The largest gains first, as few as bring the lead below -slack: one more than a row survives, or
    more where the first of these flips end in a tie.
    """
    worth = (np.arange(attacker.n_classes) == winner) * 1.0 - (np.arange(attacker.n_classes) == rival)
    lead = float(a @ worth[attacker.codes])
    gain = attacker.gains(a[None], np.array([winner]), np.array([rival]))[0]
    order = np.argsort(-gain, kind="stable")
    taken = np.cumsum(gain[order])
    if not taken[-1] > lead + slack:
        return None
    rows = order[: int((taken <= lead + slack).sum()) + 1]
    old = attacker.codes[rows]
    may = attacker.possible[old] | (np.arange(attacker.n_classes) == old[:, None])
    # What is left of a_i e_m for each possible class m; the least of them is the best replacement.
    left = np.where(may, a[rows, None] * worth, np.inf)
    return rows, left.argmin(axis=1)
