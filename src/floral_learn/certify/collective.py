"""How many predictions can one set of r label flips change: bounds for any size, exact by a mixed integer program.

Certificates of single predictions let the attacker choose other flips for each of them; here one choice has to do for
all. Let q_ji be the share of the lead of prediction j that the best flip of label i takes off (at most 1, for the rival
that loses most by it). Flips z in {0, 1}^n change prediction j only if sum_i q_ji z_i >= 1, so

    max  sum_j b_j   s.t.   b_j <= sum_i q_ji z_i,   0 <= b_j <= 1,   0 <= z_i <= 1,   sum_i z_i <= r

is at least the number of predictions that r flips change. By weak duality so is, for every v >= 0,

    sum_j max(0, 1 - v_j) + the r largest of sum_j v_j q_ji,

which costs one product with q. Small problems are then solved as they are (`_solve`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from floral_learn.base import Shown

from .cheapest_flips import Attacker, class_scores

MILP_ENTRIES = 10**6  # of a constraint matrix: HiGHS reads and presolves so many in about a second


@dataclass(frozen=True, repr=False)
class CollectiveCertificate(Shown):
    """How many of n predictions one set of flips can change.

    Attributes
    ----------
    flips : int
        Labels that are flipped at most.
    n_predictions : int
        Predictions that count: all, or the right ones.
    one_by_one : int
        Predictions that so many flips change where the attacker may choose other flips for each.
    at_most : int
        No set of flips changes more predictions. The certificate.
    at_least : int
        The flips of `rows` to `labels` change so many.
    rows, labels : ndarrays of shape (k,)
        Training rows and their new labels.
    """

    flips: int
    n_predictions: int
    one_by_one: int
    at_most: int
    at_least: int
    rows: np.ndarray
    labels: np.ndarray

    @property
    def exact(self) -> bool:
        """Whether both bounds are the same number."""
        return self.at_least == self.at_most

    def _facts(self) -> dict[str, str]:
        between = f"{self.at_most:,}" if self.exact else f"{self.at_least:,} to {self.at_most:,}"
        return {
            "predictions": f"{self.n_predictions:,}",
            "flipped labels": f"{self.flips:,}",
            "can be changed together": between,
            "can be changed one by one": f"{self.one_by_one:,}",
        }


class _Predictions:
    """Predictions that flips can change one by one, and what a flip does to each."""

    def __init__(self, a: np.ndarray, slack: np.ndarray, attacker: Attacker, flips: int) -> None:
        self.a, self.slack, self.attacker, self.flips = a, slack, attacker, flips
        self.scores = class_scores(a, attacker.codes, attacker.n_classes)
        self.winner = self.scores.argmax(axis=1)
        lead = self.scores.max(axis=1)[:, None] - self.scores
        self.room = lead - slack[:, None]  # what flips may take off a lead and certainly not end it
        self.room[np.arange(len(a)), self.winner] = np.inf
        self.lost = self.room.min(axis=1) <= 0  # ties: nothing was promised, with no flip at all
        self.usable = np.zeros(lead.shape, dtype=bool)
        self.share = np.zeros(a.shape)
        for step in range(1, attacker.n_classes):
            other = (self.winner + step) % attacker.n_classes
            room = self.room[np.arange(len(a)), other]
            gains = attacker.gains(a, self.winner, other)
            most = -np.sort(np.partition(-gains, min(flips, a.shape[1]) - 1, axis=1)[:, :flips], axis=1)
            usable = (most.sum(axis=1) >= room) & ~self.lost
            self.usable[usable, other[usable]] = True
            share = np.minimum(gains[usable] / room[usable, None], 1.0)
            self.share[usable] = np.maximum(self.share[usable], share)

    def margins(self, codes: np.ndarray) -> np.ndarray:
        """What is left of each lead (J,) once labels are `codes`; below 0 the prediction is another for sure."""
        scores = class_scores(self.a, codes, self.attacker.n_classes)
        winning = scores[np.arange(len(scores)), self.winner]
        scores[np.arange(len(scores)), self.winner] = -np.inf
        return winning + self.slack - scores.max(axis=1)

    def changed(self, codes: np.ndarray) -> int:
        """Predictions that are others for sure once labels are `codes`."""
        return int((self.margins(codes) < 0).sum())

    def best_attack(self) -> np.ndarray:
        """Labels (n,) after the best attack found: on all predictions, then on those that it came nearest to."""
        best = self.attacker.codes
        for power in (0.5, 1.0, 2.0, 4.0, 8.0):
            target, before = np.ones(len(self.a), dtype=bool), -1
            codes = self.attack(target, power)
            while (count := self.changed(codes)) > before:
                before = count
                best = codes if count > self.changed(best) else best
                target[:] = False
                by_margin = np.argsort(self.margins(codes), kind="stable")
                target[by_margin[: max(1, count + count // 2)]] = True
                codes = self.attack(target, power)
        return best

    def attack(self, target: np.ndarray, power: float, rounds: int = 40) -> np.ndarray:
        """Labels (n,) after flips that take most off the leads of targets that still stand, a few at a time."""
        attacker, rows = self.attacker, np.arange(len(self.a))
        may = attacker.possible[attacker.codes] & attacker.reachable[:, None]
        codes, free = attacker.codes.copy(), may.any(axis=1)
        for count in np.diff(np.linspace(0, self.flips, min(rounds, self.flips) + 1).astype(int)):
            scores = class_scores(self.a, codes, attacker.n_classes)
            lead = scores[rows, self.winner][:, None] - scores + self.slack[:, None]
            lead[rows, self.winner] = np.inf
            left = lead.min(axis=1)
            near = np.maximum(left / np.abs(left).max(), 1e-3) ** -power
            weight = np.where(target & (left >= 0), near, 0.0)
            towards = np.zeros(scores.shape)
            towards[rows, lead.argmin(axis=1)] = weight
            towards[rows, self.winner] = -weight
            worth = self.a.T @ towards  # (n, M): what label m at row i does for the rivals
            now = worth[np.arange(len(codes)), codes]
            gain = np.where(may & free[:, None], worth - now[:, None], 0.0)
            chosen = np.argsort(-gain.max(axis=1), kind="stable")[:count]
            chosen = chosen[gain[chosen].max(axis=1) > 0]
            codes[chosen], free[chosen] = gain[chosen].argmax(axis=1), False
        return codes


def most_changed(
    a: np.ndarray, slack: np.ndarray, attacker: Attacker, flips: int, time_limit: float
) -> tuple[int, int, np.ndarray, np.ndarray]:
    """Most predictions that `flips` flips change, at most and at least, and the flips that change the latter number.

    Parameters
    ----------
    a : ndarray of shape (J, n)
        Weights of the labels at rows that so many flips can change one by one.
    slack : ndarray of shape (J,)
        Rounding of their leads.
    time_limit : float
        Seconds for the mixed integer program.
    """
    none = np.empty(0, dtype=np.intp)
    if flips == 0 or len(a) == 0:
        return len(a), 0, none, none  # with no flip only ties are left
    predictions = _Predictions(a, slack, attacker, flips)
    at_most = min(len(a), int(predictions.lost.sum()) + _floor(_dual_bound(predictions)))
    codes = predictions.best_attack()
    at_least = predictions.changed(codes)
    if at_least < at_most and time_limit > 0:
        bound, solved = _solve(predictions, time_limit)
        at_most = min(at_most, int(predictions.lost.sum()) + _floor(bound))
        if predictions.changed(solved) > at_least:
            codes, at_least = solved, predictions.changed(solved)
    rows = np.flatnonzero(codes != attacker.codes)
    return at_most, at_least, rows, codes[rows]


def _floor(bound: float) -> int:
    """The largest whole number up to a bound that may be a rounding error too low."""
    return int(np.floor(min(bound, np.iinfo(np.int32).max) + 1e-5))


def _dual_bound(predictions: _Predictions, steps: int = 200) -> float:
    """The smallest dual value that `steps` subgradient steps find; each of them is a bound."""
    share, flips = predictions.share[~predictions.lost], predictions.flips
    v, least = np.ones(len(share)), float(len(share))
    for step in range(steps):
        column = v @ share
        top = np.argpartition(-column, min(flips, len(column)) - 1)[:flips]
        least = min(least, float(np.maximum(0.0, 1.0 - v).sum() + column[top].sum()))
        slope = share[:, top].sum(axis=1) - (v < 1)
        direction = slope / (np.linalg.norm(slope) + 1e-12)
        v = np.maximum(0.0, v - direction * np.sqrt(len(v)) / (2.0 + step))
    return least


def _solve(predictions: _Predictions, time_limit: float) -> tuple[float, np.ndarray]:
    """The mixed integer program: an upper bound, the optimum where time allows, and the labels (n,) of its solution.

    z_p says that flip p is made, b_jd that rival d passes the winner of j: sum_p g_jdp z_p >= room_jd where b_jd = 1.
    """
    attacker, codes = predictions.attacker, predictions.attacker.codes
    changes = codes[:, None] != np.arange(attacker.n_classes)
    row, new = np.nonzero(attacker.possible[codes] & attacker.reachable[:, None] & changes)
    j, d = np.nonzero(predictions.usable)
    if len(row) * len(j) > MILP_ENTRIES or len(j) == 0:
        return np.inf if len(j) else 0.0, codes
    winner, rival = predictions.winner[j][:, None], d[:, None]
    before, after = ((code == winner) * 1.0 - (code == rival) for code in (codes[row], new))
    gain = predictions.a[j][:, row] * (before - after)
    room = predictions.room[j, d]
    against = -np.sort(np.minimum(gain, 0.0), axis=1)[:, : predictions.flips].sum(axis=1)
    # sum_p gain_p z_p >= room b - against (1 - b), with coefficients of at most 1
    scale = room + against
    P, B = len(row), len(j)
    passes = np.hstack([np.minimum(gain / scale[:, None], 1.0), -np.eye(B)])
    helps = np.hstack([np.clip(gain / room[:, None], 0.0, 1.0), -np.eye(B)])
    flip, pass_ = np.arange(P), P + np.arange(B)
    one_label = csr_array((np.ones(P), (row, flip)), shape=(len(codes), P + B))
    one_rival = csr_array((np.ones(B), (j, pass_)), shape=(len(predictions.a), P + B))
    done = milp(
        np.r_[np.zeros(P), -np.ones(B)],
        integrality=1,
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(passes, -against / scale, np.inf),
            LinearConstraint(helps, 0.0, np.inf),
            LinearConstraint(one_label, -np.inf, 1.0),
            LinearConstraint(one_rival, -np.inf, 1.0),
            LinearConstraint(np.r_[np.ones(P), np.zeros(B)][None], -np.inf, float(predictions.flips)),
        ],
        options={"time_limit": time_limit},
    )
    bound = np.inf if done.mip_dual_bound is None else -float(done.mip_dual_bound)
    attacked = codes.copy()
    if done.x is not None:
        made = done.x[:P] > 0.5
        attacked[row[made]] = new[made]
    return bound, attacked
