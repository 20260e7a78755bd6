"""Other ways to read answers, compared on development problems: the data sets on which the review's rule was chosen.

    python benchmarks/review_rules.py --jobs 4 --rows runs/rules.jsonl [--limit 600] [--card]

The small sets of ``floral bench questions`` and synthetic ones with rare or overlapping classes; none of the tables on
which the review is judged. One line of JSON per problem and rule; known ones are not run again. ``--card`` prints, by
rule and number of answers: recovered share, mean and worst difference to SVC where poison took less than two points,
and the worst of all.
"""

from __future__ import annotations

import argparse
import json
import random
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from joblib import Parallel, delayed
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_bench.arena_data import load_arena
from floral_bench.questions.problems import SMALL
from floral_learn import LabelReview
from floral_learn.attacks import poison
from floral_learn.review import label_review, posterior, read_labels
from floral_learn.review.rows import measured_rows

MARKS = (5, 10, 20, 50, 100)
SYNTHETIC = (
    "blobs", "blobs 10", "blobs 5", "noisy", "noisy 15", "moons 10", "moons 5", "circles 10", "cancer 10", "normal",
    "normal 10", "normal 20",
)  # fmt: skip
ATTACKS = ("clean", "random", "farthest", "near-boundary", "class-biased", "alfa", "evasive")
_GRID, _BORNE_OUT = posterior.default_components, label_review.borne_out


def synthetic(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and classes of a synthetic problem; a number after the name is the share of class 1, in percent."""
    kind, _, share = name.partition(" ")
    rng = np.random.default_rng(1000 + seed)
    if kind == "blobs":
        X, y = datasets.make_classification(12_000, 15, n_informative=8, n_clusters_per_class=3, random_state=seed)
    elif kind == "noisy":
        X, y = datasets.make_classification(
            12_000, 6, n_informative=4, n_redundant=0, class_sep=0.5, flip_y=0.1, random_state=seed + 50
        )
    elif kind == "moons":
        X, y = datasets.make_moons(12_000, noise=0.25, random_state=seed)
    elif kind == "circles":
        X, y = datasets.make_circles(12_000, noise=0.15, factor=0.5, random_state=seed)
    elif kind == "cancer":
        X, y = datasets.load_breast_cancer(return_X_y=True)
    else:
        y = (rng.random(12_000) < 0.5).astype(int)
        X = rng.normal(size=(12_000, 10)) * np.where(y == 1, 1.3, 1.0)[:, None]
        X[:, 0] += 1.5 * y
        X[:, 1] -= y
    if not share:
        return X, y
    rare, others = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    size = min(len(rare), int(len(others) * int(share) / (100 - int(share))))
    kept = np.r_[others, rng.choice(rare, size, replace=False)]
    return X[kept], y[kept]


@lru_cache(4)
def problem(name: str, split: int) -> tuple[np.ndarray, ...]:
    """Training rows, their clean labels, test rows, their labels."""
    if name in SMALL:
        data = load_arena(name, split)
        return data.X_train, data.y_train_clean, data.X_test, data.y_test
    X, y = synthetic(name, split)
    size = min(1000, int(len(y) * 2 / 3))
    train, test, y_train, y_test = train_test_split(
        X, y, train_size=size, test_size=min(2000, len(y) - size), stratify=y, random_state=split
    )
    scaler = StandardScaler().fit(train)
    return scaler.transform(train), y_train, scaler.transform(test), y_test


def _regions(**changes: Any) -> Any:
    return lambda lines=0: tuple(replace(c, **changes) if c.height > 0 else c for c in _GRID(lines))


def _weight_of_none(prior: float) -> Any:
    return lambda lines=0: tuple(c if c.height > 0 else replace(c, prior=prior) for c in _GRID(lines))


def _without_none(lines: int = 0) -> Any:
    return tuple(c for c in _GRID(lines) if c.height > 0 or c.centre == -1.0)


def _row_by_row(belief: np.ndarray, codes: np.ndarray, free: np.ndarray) -> np.ndarray:
    best = belief.argmax(axis=1)
    read = np.where(belief.max(axis=1) > 0.5, best, codes)
    return read if len(np.unique(read)) > 1 else codes


def _standardised(*_: Any) -> Any:
    return measured_rows


def _all_that_is_known(*given: Any) -> Any:
    every = _BORNE_OUT(*given)[1]
    return every, every


def _no_weights(belief: np.ndarray, *_: Any) -> np.ndarray:
    return np.ones(len(belief))


GRID, READ, SCALE, SURE, ACT, WEIGH = (
    (posterior, "default_components"), (label_review, "read_classes"), (label_review, "better_scale"),
    (read_labels, "_SURE"), (label_review, "borne_out"), (label_review, "training_weights"),
)  # fmt: skip
RULES: dict[str, list[tuple[tuple[Any, str], Any]]] = {
    "as it is": [],
    "trained on all that is known": [(ACT, _all_that_is_known)],
    "no weights": [(WEIGH, _no_weights)],
    "no hypothesis of clean labels": [(GRID, _without_none)],
    "row by row": [(READ, _row_by_row)],
    "always standardised": [(SCALE, _standardised)],
    "firmer weights": [(SURE, 2.5)],
    "rarer regions": [(GRID, _regions(centre=-2.0))],
    "higher regions": [(GRID, _regions(height=4.0, centre=-2.0))],
    "no regions likelier": [(GRID, _weight_of_none(1.5))],
}


@contextmanager
def rule(name: str) -> Iterator[None]:
    """The review with the parts of a rule in place of its own."""
    patches = [mock.patch.object(where, part, value) for (where, part), value in RULES[name]]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


def run(name: str, split: int, attack: str, level: float, rules: list[str]) -> list[dict[str, Any]]:
    """Accuracy after each number of right answers, by rule."""
    X, y, X_test, y_test = problem(name, split)
    options = {"surrogate": SVC()} if attack == "near-boundary" else {}
    given = y if attack == "clean" else poison(X, y, attack, int(len(y) * level / 100), random_state=split, **options).y
    base = {"data": name, "split": split, "attack": attack, "level": level}
    base |= {k: SVC().fit(X, labels).score(X_test, y_test) for k, labels in (("svc", given), ("clean", y))}
    found = []
    for which in rules:
        with rule(which):
            seed = zlib.crc32(f"{name} {attack} {level} {split}".encode()) % 2**31
            review, count, by_answers = LabelReview(X, given, classes=np.unique(y), random_state=seed), 0, {}
            while count < MARKS[-1]:
                rows = review.ask(1 if count < 10 else 5 if count < 20 else 10)
                review.answer(rows, y[rows])
                count += len(rows)
                if count in MARKS:
                    by_answers[str(count)] = review.train(SVC()).score(X_test, y_test)
        found.append({**base, "rule": which, **by_answers})
    return found


def card(rows: list[dict[str, Any]]) -> str:
    """The rules side by side, on the problems that all of them have run."""
    import pandas as pd

    frame = pd.DataFrame(rows)
    whole = frame.groupby(["data", "split", "attack", "level"])["rule"].transform("nunique") == frame["rule"].nunique()
    frame = frame[whole]
    lines = ["| rule | problems | " + " | ".join(f"{n} answers" for n in MARKS) + " |", "|---" * (2 + len(MARKS)) + "|"]
    for name, part in frame.groupby("rule", sort=False):
        gap, poisoned = part["clean"] - part["svc"], part["level"] > 0
        words = []
        for n in MARKS:
            over = part[str(n)] - part["svc"]
            little = over[gap < 0.02]
            share = over[poisoned].sum() / gap[poisoned].sum()
            words.append(f"{share:.0%}, {little.mean():+.4f}, {little.min():+.3f}, {over.min():+.3f}")
        lines.append(f"| {name} | {len(part)} | " + " | ".join(words) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, or print the card."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--rules", nargs="+", choices=list(RULES), default=list(RULES))
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=float("inf"))
    parser.add_argument("--card", action="store_true")
    given = parser.parse_args()
    known = [json.loads(line) for line in given.rows.read_text().splitlines()] if given.rows.exists() else []
    if given.card:
        print(card(known))
        return
    have = {(r["data"], r["split"], r["attack"], r["level"], r["rule"]) for r in known}
    end = time.time() + given.limit
    todo = []
    for split in range(1, given.splits + 1):
        part = [(n, split, a, v) for n in (*SMALL, *SYNTHETIC) for a in ATTACKS for v in (10.0, 30.0)]
        part = [(n, s, a, 0.0 if a == "clean" else v) for n, s, a, v in part if a != "clean" or v == 10.0]
        random.Random(split).shuffle(part)
        todo += [(*p, left) for p in part if (left := [r for r in given.rules if (*p, r) not in have])]
    given.rows.parent.mkdir(parents=True, exist_ok=True)
    work = Parallel(n_jobs=given.jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")(
        delayed(run)(*job) for job in todo if time.time() < end
    )
    with given.rows.open("a", encoding="utf-8") as out:
        for rows in work:
            out.writelines(json.dumps(row) + "\n" for row in rows)
            out.flush()


if __name__ == "__main__":
    main()
