"""Crowds with a known truth: public ones, attacked ones, honest ones; and how sure labels of them are."""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from floral_bench.crowds.peers import long_of
from floral_learn import poison_votes

FEATURED = ("labelme", "music", "product")
FUNCTIONS = ("youtube", "semeval")  # votes are those of labelling functions
PUBLIC = ("zc_us", "cf_amt", "web", "trec", "sp_amt", "adult", "bluebird", "music", "rte", "dogs", "product", "labelme",
          *FUNCTIONS)  # fmt: skip
ATTACKS = ("spam", "pair", "far", "sleeper", "collusion", "targeted")
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


def public(name: str) -> tuple[np.ndarray, Any, np.ndarray]:
    """Truth (n,), -1 where nobody knows it, votes as a long frame on tasks 0 to n - 1, and classes."""
    home = Path(os.environ["FLORAL_DATA"])
    if name in FUNCTIONS:
        with lzma.open(home / "real" / f"wrench_{name}.jsonl.xz", "rt") as file:
            rows = [row for row in map(json.loads, file) if row["split"] == "train"]
        y, votes = np.array([row["label"] for row in rows]), long_of(np.array([row["votes"] for row in rows]))
    elif (home / "real" / f"crowd_{name}.npz").exists():
        data = np.load(home / "real" / f"crowd_{name}.npz")
        votes = pd.DataFrame({name: data[name].astype(int) for name in ("task", "worker", "label")})
        y = data["y"].astype(int)
    else:
        _, y, table, _ = load(name)
        votes = long_of(table)
    return *_voted(y, votes), np.arange(max(y.max(), votes["label"].max()) + 1)


def redrawn_people(y: np.ndarray, votes: Any, seed: int) -> tuple[np.ndarray, Any]:
    """A bootstrap of the people: as many as there are, drawn with replacement, each draw somebody else."""
    rng, people = np.random.default_rng(seed), np.unique(votes["worker"])
    mine = dict(list(votes.groupby("worker")))
    drawn = [mine[who].assign(worker=new) for new, who in enumerate(rng.choice(people, len(people)))]
    return _voted(y, pd.concat(drawn, ignore_index=True))


def _voted(y: np.ndarray, votes: Any) -> tuple[np.ndarray, Any]:
    """The tasks with votes, numbered anew."""
    there, task = np.unique(votes["task"], return_inverse=True)
    return y[there], votes.assign(task=task)


def sure(found: Any, y: np.ndarray, known: np.ndarray) -> dict[str, float]:
    """How many labels were expected to be right, the decided ones, and how many of the `known` of these are."""
    said, decided = found.probability.max(axis=1), found.decided
    out = {"expected": said.mean(), "decided": decided.mean()}
    if len(some := known[decided[known]]):
        out |= {"right_decided": (found.labels == y)[some].mean(), "said_decided": said[some].mean()}
    return {name: float(value) for name, value in out.items()}


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
