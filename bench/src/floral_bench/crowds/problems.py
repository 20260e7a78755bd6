"""Items with votes: a real crowd, and simulated ones over real tables.

A simulated person errs more on hard items. What it says then is either what the item looks like (the other classes of a
linear model) or its own habit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import datasets as shipped
from sklearn.linear_model import LogisticRegression

from floral_learn.datasets.files import find_file

# Rules of the crowd room were chosen on digits, wine and breast cancer.
HELD_OUT = ("satimage", "phoneme", "spambase", "pima", "banknote")
REAL = ("labelme",)
MOST_ITEMS, MOST_TEST = 400, 1000


@dataclass(frozen=True)
class CrowdKind:
    """How people vote."""

    items_per_person: float  # people = items / this, at least 20
    votes_per_item: float
    difficulty: float  # spread, in log-odds
    looks: float  # share of mistakes that the item's looks explain
    long_tail: bool = False


KINDS = {
    "dense": CrowdKind(20, 5, 0.6, 0.5),
    "sparse": CrowdKind(17, 2.5, 0.6, 0.5),
    "tail": CrowdKind(10, 3, 0.6, 0.5, long_tail=True),
    "hard": CrowdKind(17, 2.5, 1.5, 0.85),
}


@dataclass(frozen=True)
class CrowdProblem:
    """Items, truth and votes (-1: none), and items to test a model on."""

    X: np.ndarray
    y: np.ndarray
    votes: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @property
    def classes(self) -> list[int]:
        """All classes."""
        return list(range(int(max(self.y.max(), self.votes.max())) + 1))


def load_problem(name: str, kind: str, seed: int) -> CrowdProblem:
    """Votes on data set `name`; `kind` is one of KINDS, or "real"."""
    if name in REAL:
        data = _file("labelme_crowd")
        return CrowdProblem(data["X"], data["y"], data["answers"], data["X_test"], data["y_test"])
    X, y = _table(name)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    n = min(MOST_ITEMS, int(0.7 * len(y)))
    train, test = order[:n], order[n : n + MOST_TEST]
    spread = X[train].std(axis=0)
    X = (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1)
    votes = simulate_votes(X[train], y[train], KINDS[kind], rng)
    return CrowdProblem(X[train], y[train], votes, X[test], y[test])


def simulate_votes(X: np.ndarray, y: np.ndarray, kind: CrowdKind, rng: np.random.Generator) -> np.ndarray:
    """Table of votes (n, people), -1 where there is none."""
    n, k = len(y), int(y.max()) + 1
    people = max(20, int(n / kind.items_per_person))
    skill = rng.beta(8, 2, people)
    habit = rng.dirichlet(np.full(k, 0.5), size=(people, k))
    activity = rng.pareto(1.2, people) + 0.2 if kind.long_tail else np.ones(people)
    # The people of each item, without repetition: the largest of activity-weighted random keys.
    keys = np.log(rng.random((n, people))) / activity
    voted = np.minimum(int(kind.votes_per_item) + (rng.random(n) < kind.votes_per_item % 1), people)
    rank = np.argsort(np.argsort(-keys, axis=1), axis=1)
    item, person = np.nonzero(rank < voted[:, None])
    odds = np.log(skill / (1 - skill))[person] - (kind.difficulty * rng.standard_normal(n))[item]
    right = rng.random(len(item)) < 1 / (1 + np.exp(-odds))
    wrong = np.where(
        rng.random(len(item))[:, None] < kind.looks, _looks(X, y, k)[item], habit[person, y[item]]
    )  # (votes, classes)
    wrong[np.arange(len(item)), y[item]] = 0
    wrong = np.cumsum(wrong + 1e-9 * (np.arange(k) != y[item][:, None]), axis=1)
    said = (rng.random(len(item))[:, None] * wrong[:, -1:] < wrong).argmax(axis=1)
    votes = np.full((n, people), -1)
    votes[item, person] = np.where(right, y[item], said)
    return votes


def _looks(X: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    model = LogisticRegression(C=0.02, max_iter=300).fit(X, y)
    probability = np.zeros((len(y), k))
    probability[:, model.classes_] = np.sqrt(model.predict_proba(X))
    return probability + 0.01


def _table(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name in ("digits", "wine"):
        X, y = (shipped.load_digits if name == "digits" else shipped.load_wine)(return_X_y=True)
    else:
        data = _file(name)
        X, y = data["X"], data["y"]
    return np.asarray(X, dtype=float), np.unique(y, return_inverse=True)[1]


def _file(name: str) -> Any:
    """A table of FLORAL_DATA/tables."""
    return np.load(find_file(f"tables/{name}.npz"))
