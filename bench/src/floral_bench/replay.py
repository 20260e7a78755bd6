"""The paper's three algorithms in plain numpy, from its listings, beside what PaperFloralClassifier played.

The flips are those that the classifier recorded, so that a replay draws nothing; whether the listing allows them is
asked of the replay's own duals. Everything else is done again, by no code of the library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.datasets import load_iris, make_blobs, make_moons

from floral_bench.reporting.environment import environment
from floral_learn.datasets import load_moon
from floral_learn.paper import PaperFloralClassifier

STEPS: dict[str, Any] = {"n_rounds": 60, "learning_rate": 0.05, "decay": (0.5, 20)}
CYCLE = np.roll(np.eye(3), 1, axis=1)  # q: a flipped label of class c becomes class c + 1
BITS = 1 - 2.0**-15  # of a dual, so much is compared: two that differ by less are ties
DEPARTURES = """\
Where the classifier departs from the listings: line 10 of Algorithm 2 sums the unclipped z, as its derivation does (the
listing has the clipped duals), and takes half of each step, since whole ones can go round in a circle; duals are
compared with 16 bits, equal ones in a random order; only rows with a dual above zero are candidates. The replay has the
first two too; the last two only allow or forbid flips."""


def gram(X: np.ndarray, gamma: float) -> np.ndarray:
    """exp(-gamma |a - b|^2) for all pairs of rows."""
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=-1))


def algorithm_2(z: np.ndarray, y: np.ndarray, C: float, rounds: int = 100_000) -> np.ndarray:
    """Project z (n,) onto {a : y'a = 0, 0 <= a <= C}: the listing, with its line 10 corrected and half of each step."""
    mu = 0.0
    for _ in range(rounds):
        dual = np.clip(z - mu * y, 0, C)
        full, inside = dual >= C, (dual > 0) & (dual < C)
        size = max(inside.sum(), 1)
        new = (size - inside.sum()) / size * mu + (C * y[full].sum() + (z * y)[inside].sum()) / size
        if abs(new - mu) <= 1e-15 * max(1, abs(mu)):
            break
        mu = (mu + new) / 2
    return np.clip(z - mu * y, 0, C)


def step(K: np.ndarray, dual: np.ndarray, y: np.ndarray, C: float, eta: float) -> np.ndarray:
    """Lines 5 and 6 of Algorithm 1."""
    return algorithm_2(dual - eta * (y * (K @ (y * dual)) - 1), y, C)


def algorithm_1(K: np.ndarray, y: np.ndarray, C: float, flips: np.ndarray, etas: np.ndarray) -> tuple[Any, list[Any]]:
    """Signed duals (n, 1) of the last round, with the labels of that round; and the duals before each round."""
    dual, before = np.zeros(len(y)), []
    for points, eta in zip(flips, etas, strict=True):
        before.append(dual[:, None])
        told = y.copy()
        told[points[points >= 0]] *= -1
        dual = step(K, dual, told, C, eta)
    return (dual * told)[:, None], before


def algorithm_3(
    K: np.ndarray, codes: np.ndarray, C: float, flips: np.ndarray, etas: np.ndarray, q: np.ndarray
) -> tuple[Any, list[Any]]:
    """The same for several classes: one column per class, labels redrawn from a `q` that leaves no choice."""
    duals, before = np.zeros((len(codes), len(q))), []
    for points, eta in zip(flips, etas, strict=True):
        before.append(duals)
        told, chosen = codes.copy(), points[points >= 0]
        told[chosen] = q[codes[chosen]].argmax(axis=1)
        signs = np.where(told[:, None] == np.arange(len(q)), 1.0, -1.0)
        duals = np.column_stack([step(K, duals[:, m], signs[:, m], C, eta) for m in range(len(q))])
    return duals * signs, before


@dataclass(frozen=True)
class Case:
    """A fit that is replayed."""

    algorithm: str
    data: str
    rows: Callable[[], tuple[np.ndarray, np.ndarray]]
    gamma: float
    C: float
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Replay:
    """What a replay found."""

    case: Case
    n: int
    rounds: int
    difference: float  # of any signed dual at the end
    allowed: int  # rounds whose flips are as many as asked, each once, among the B largest duals of the replay
    attacked: int  # rounds with an attacker
    as_listed: float  # share of the rounds whose projection is Algorithm 2's, not the exact root in its place


def moons() -> tuple[np.ndarray, np.ndarray]:
    """60 rows of two classes."""
    return make_moons(60, noise=0.25, random_state=0)


def blobs() -> tuple[np.ndarray, np.ndarray]:
    """60 rows of three classes."""
    return make_blobs(60, centers=3, cluster_std=3.0, random_state=0)[:2]


def paper_moon() -> tuple[np.ndarray, np.ndarray]:
    """The training rows of Moon, with clean labels."""
    moon = load_moon()
    return moon.X_train, moon.y_train


SMALL = {"budget": 12, "flips": 6, "warm_up": 3, **STEPS}
PAPERS = {"budget": 50, "flips": 25, "n_rounds": 500, "learning_rate": 7e-4, "decay": (0.1, 100)}
SEVERAL = {"budget": {0: 8, 1: 5, 2: 3}, "flips": 4, "flip_distribution": CYCLE, **STEPS}
CASES = (
    Case("1 and 2", "Moon", paper_moon, 1.0, 10.0, PAPERS),
    Case("1 and 2, k = B", "Moon", paper_moon, 1.0, 10.0, PAPERS | {"flips": 50}),
    Case("1 and 2", "make_moons", moons, 1.0, 0.3, SMALL),
    Case("1 and 2", "make_moons", moons, 1.0, 10.0, SMALL),
    Case("1, exact root", "make_moons", moons, 1.0, 0.3, SMALL | {"projection": "exact"}),
    Case("3 and 2", "make_blobs", blobs, 0.1, 0.3, SEVERAL),
    Case("3 and 2", "make_blobs", blobs, 0.1, 10.0, SEVERAL),
    Case("3 and 2", "iris", lambda: load_iris(return_X_y=True), 0.5, 10.0, SEVERAL | {"learning_rate": 0.02}),
)


def replay(case: Case) -> Replay:
    """Play a game with the library and again from the listings."""
    X, y = case.rows()
    K, several = gram(X, case.gamma), len(np.unique(y)) > 2
    clf = PaperFloralClassifier(kernel="precomputed", C=case.C, random_state=0, **case.settings).fit(K, y)
    flips, etas = clf.history_["flips"], np.ravel(clf.history_["step"])
    codes = np.searchsorted(clf.classes_, y)
    if several:
        weights, before = algorithm_3(K, codes, case.C, flips, etas, CYCLE)
    else:
        weights, before = algorithm_1(K, 2.0 * codes - 1, case.C, flips, etas)
    ours = np.zeros(weights.shape)
    ours[clf.support_] = clf.dual_coef_.T
    named = case.settings["budget"]
    budgets = list(named.values()) if isinstance(named, dict) else [named]
    free = case.settings.get("warm_up", 1)
    k, allowed = case.settings["flips"], 0
    for points, duals in zip(flips[free:], before[free:], strict=True):
        least = [np.sort(column)[-budget] * BITS for column, budget in zip(duals.T, budgets, strict=True)]
        good = ((duals[points] >= least) & (duals[points] > 0)).any(axis=1)
        allowed += bool(good.all()) and len(set(points.tolist()) - {-1}) == k
    listed = float(clf.history_["projected"].mean())
    difference = float(np.abs(ours - weights).max())
    return Replay(case, len(y), len(flips), difference, allowed, len(flips) - free, listed)


def page() -> str:
    """The table, with date, commit, machine and command."""
    where = environment()
    lines = [
        f"{where['date'][:10]}, commit {where.get('commit', 'unknown')}, {where['system']}: `floral bench replay`.",
        "",
        "| algorithm | data | rows | C | rounds | largest difference of a dual | rounds whose flips the listing allows |",  # noqa: E501
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for found in map(replay, CASES):
        case, share = found.case, f"{found.allowed} of {found.attacked}"
        cells = (case.algorithm, case.data, found.n, f"{case.C:g}", found.rounds, f"{found.difference:.1e}", share)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join([*lines, "", DEPARTURES])
