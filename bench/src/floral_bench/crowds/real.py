"""Crowds with a known truth: real ones, attacked ones, honest ones; and what is measured on them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn import aggregate_votes, poison_votes
from floral_learn.crowd.pairs import benjamini_hochberg
from floral_learn.crowd.annotators import weaker_than_weak
from floral_learn.labels.votes import read_votes

Crowd = tuple[np.ndarray, np.ndarray, np.ndarray]  # truth (n,), votes (n, people) with -1 for none, classes


def load(name: str, most: int = 3000) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Features or None, truth, votes (-1: none) and classes of a real crowd."""
    data = np.load(Path(os.environ["FLORAL_DATA"]) / "tables" / f"{name}_crowd.npz")
    votes, y = data["answers"].astype(int), data["y"].astype(int)
    X = data.get("X", None)
    if set(np.unique(y)) == {-1, 1}:
        votes, y = np.where(votes == 0, -1, (votes + 1) // 2), (y + 1) // 2
    if len(y) > most:
        some = np.random.default_rng(0).permutation(len(y))[:most]
        votes, y, X = votes[some], y[some], None if X is None else X[some]
    votes = votes[:, (votes >= 0).any(axis=0)]
    return X, y, votes, np.arange(max(y.max(), votes.max()) + 1)


def attacked(
    X: Any, y: np.ndarray, votes: np.ndarray, classes: np.ndarray, attack: str, level: float, draw: int
) -> tuple[np.ndarray, np.ndarray]:
    """Votes, and who is owned (A,)."""
    if not level:
        return votes, np.zeros(votes.shape[1], dtype=bool)
    found = poison_votes(votes, X, y, attack=attack, budget=level, classes=classes, missing=-1, random_state=draw)
    return np.asarray(found.votes), np.isin(np.arange(votes.shape[1]), found.annotators)


def best_test(votes: np.ndarray, new: np.ndarray, y: np.ndarray, k: int, owned: np.ndarray, attack: str) -> np.ndarray:
    """p-values (people,) of the library's test where it knows the truth, who lies and in which answers.

    Of the lies alone and of all answers of a liar, whose honest mistakes count as well, the smaller one: a bound.
    """
    given = read_votes(new, missing=-1, classes=range(k))
    item, who = given.items.astype(int)[given.item], given.annotators.astype(int)[given.annotator]
    lies = owned[who] & ((given.label != votes[item, who]) | (attack in ("spam", "pair", "collusion")))
    truth, p = np.eye(k)[y[item]], np.ones(new.shape[1])
    both = [weaker_than_weak(given, truth, [part])[0] for part in (lies, owned[who])]
    p[given.annotators.astype(int)] = np.minimum(*both)
    return p


def people(
    found: Any, y: np.ndarray, votes: np.ndarray, new: np.ndarray, owned: np.ndarray, attack: str
) -> dict[str, int | bool]:
    """How many liars with 20 votes or more, and how many others, are named or said to agree with somebody."""
    told, everybody, k = found.people.set_index("annotator"), np.arange(new.shape[1]), len(found.classes)
    named, agree = (np.isin(everybody, told.index[mask]) for mask in (told["named"], told["agrees_with"] != ""))
    liars = owned & ((new >= 0).sum(axis=0) >= 20)
    accuracy = np.array([(votes[:, a] == y)[votes[:, a] >= 0].mean() for a in everybody])
    weak = accuracy < 1 / k + 0.2 * (1 - 1 / k)  # knew hardly one answer in five before any attack
    best = benjamini_hochberg(best_test(votes, new, y, k, owned, attack))
    who = {
        "liars": liars,
        "liars_named": liars & named,
        "liars_best": liars & best,
        "liars_agree": liars & agree,
        "honest_named": ~owned & ~weak & named,
        "weak_named": ~owned & weak & named,
        "honest_agree": ~owned & agree,
    }
    return {name: int(mask.sum()) for name, mask in who.items()} | {"settled": bool(found.solution.settled)}


def sure(found: Any, y: np.ndarray, votes: np.ndarray) -> dict[str, float]:
    """Labels right, how many were expected to be, the decided ones, and whether intervals of people hold."""
    right, said, decided = found.labels == y, found.probability.max(axis=1), found.decided
    out = {"accuracy": right.mean(), "expected": said.mean(), "decided": decided.mean()}
    if decided.any():
        out |= {"right_decided": right[decided].mean(), "said_decided": said[decided].mean()}
    return {name: float(value) for name, value in out.items()} | {"covered": covered(votes, y, found)}


def covered(votes: np.ndarray, y: np.ndarray, found: Any) -> float:
    """Share of the people whose share of right answers lies in their interval."""
    people = found.annotators.set_index("annotator")
    there = [a for a in range(votes.shape[1]) if (votes[:, a] >= 0).any()]
    share = np.array([(votes[:, a] == y)[votes[:, a] >= 0].mean() for a in there])
    low, high = people.loc[there, "low"].to_numpy(), people.loc[there, "high"].to_numpy()
    return float(((low - 1e-9 <= share) & (share <= high + 1e-9)).mean())


def simulated(seed: int, half_weak: bool = False) -> Crowd:
    """An honest crowd: everybody knows at least one answer in five beyond chance; hard items, shared mistakes.

    With `half_weak` half of the people know no more than that, and nobody shares mistakes: a tempting answer would
    make these worse.
    """
    rng = np.random.default_rng(seed)
    k, n, people = rng.choice([2, 3, 5, 8]), int(rng.integers(150, 400)), int(rng.integers(12, 60))
    per_item, hard, shared = int(rng.integers(3, 8)), rng.choice([0.0, 1.0]), rng.choice([0.0, 0.5])
    y = rng.choice(k, size=n, p=rng.dirichlet(np.full(k, 5.0)))
    knows = rng.uniform(0.2, 0.95, people) if rng.random() < 0.5 else np.clip(rng.beta(6, 3, people), 0.2, 1.0)
    if half_weak:
        knows, shared = np.where(np.arange(people) < people // 2, 0.2, knows), 0.0
    ease = np.exp(-hard * np.abs(rng.standard_normal(n)))  # a hard item halves and quarters what people know
    tempting = (y + rng.integers(1, max(k, 2), size=n)) % k
    rate = (knows[None, :] * (ease / ease.mean())[:, None]).clip(0, 0.98)
    guess = np.where(rng.random((n, people)) < shared, tempting[:, None], rng.integers(k, size=(n, people)))
    # A tempting answer must not make a person worse than chance: it replaces guesses, and half of them at most.
    guess = np.where(rng.random((n, people)) < 0.5, guess, rng.integers(k, size=(n, people)))
    votes = np.where(rng.random((n, people)) < rate, y[:, None], guess)
    return y, np.where(np.argsort(rng.random((n, people)), axis=1) < per_item, votes, -1), np.arange(k)


def redrawn(crowd: str, seed: int) -> Crowd:
    """Votes of a real crowd drawn anew from its fitted confusion matrices, in which everybody knows something."""
    _, _, votes, classes = load(crowd, 1000)
    found = aggregate_votes(votes, missing=-1, classes=classes, random_state=0)
    rng, k = np.random.default_rng(seed), len(classes)
    y, matrix = found.probability.argmax(axis=1), found.confusions.copy()
    share = np.bincount(y, minlength=k) / len(y)
    right = matrix[:, np.arange(k), np.arange(k)] @ share
    chance = (share @ matrix) @ share
    lift = np.clip((chance + 0.2 * (1 - chance) - right) / (1 - right), 0, 1)[:, None, None]
    cumulated = np.cumsum((1 - lift) * matrix + lift * np.eye(k), axis=2)
    item, person = np.nonzero(votes >= 0)
    names = found.votes.annotators.tolist()
    row = np.array([names.index(a) for a in range(votes.shape[1])])[person]
    said = (rng.random(len(item))[:, None] > cumulated[row, y[item]]).sum(axis=1)
    new = np.full_like(votes, -1)
    new[item, person] = np.minimum(said, k - 1)
    return y, new, classes
