"""The shipped rule, called as a user calls it, on problems and models that no rule was chosen or judged on; resumable.

    python benchmarks/arena_unseen.py run FOLDER --splits 1-2 --processes 4 --seconds 500
    python benchmarks/arena_unseen.py table FOLDER
    python benchmarks/arena_unseen.py merge FOLDER docs/results/arena/unseen.csv

Eight data sets, four attacks at 10 and 30 % beside clean labels, and models as scikit-learn makes them (the arena has
smaller forests): a forest, boosting, an SVM with C = 10, logistic regression and three nearest neighbours, each plain,
behind ``ContradictedLabels`` and behind cleanlab's CleanLearning (which cannot weigh neighbours). FOLDER gets one csv
file per data set and split, and under ``making/`` how each was made.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets as shipped
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_bench.arena_data import load_arena
from floral_bench.arena_methods import CleanlabClassifier
from floral_bench.reporting.making import Making, begin, beside_merged, keep_parts, makings
from floral_learn import ContradictedLabels, SanitizedClassifier, poison
from floral_learn.datasets import load_mnist

Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
MODELS: dict[str, Any] = {
    "logistic regression": LogisticRegression(max_iter=1000),
    "SVC, C = 10": SVC(C=10.0),
    "3 nearest neighbours": KNeighborsClassifier(3),
    "random forest": RandomForestClassifier(random_state=0),
    "boosting": HistGradientBoostingClassifier(random_state=0),
}
MOST_CLASSES = {"boosting": 3}  # one tree per class and round
ATTACKS = ("random", "class-biased", "near-boundary", "farthest")
LEVELS = (10, 30)
SIDES = {"safe": "ContradictedLabels", "cleanlab": "CleanLearning"}
FIELDS = (
    "data", "split", "attack", "level", "model", "plain", "safe", "cleanlab", "plain_balanced", "safe_balanced",
    "cleanlab_balanced", "acted", "memorised", "plain_seconds", "safe_seconds", "cleanlab_seconds",
)  # fmt: skip


def split_rows(X: np.ndarray, y: np.ndarray, seed: int) -> Parts:
    """At most 1,000 training and 1,000 test rows, standardised."""
    X, Z, y, t = train_test_split(X, y, train_size=min(1000, 2 * len(y) // 3), stratify=y, random_state=seed)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), scaler.transform(Z[:1000]), y, t[:1000]


def mnist(digits: tuple[int, int], seed: int) -> Parts:
    """Two digits, 50 principal components."""
    found = load_mnist(digits=digits, n_train=1000, n_test=1000, random_state=seed)
    components = PCA(50, random_state=0).fit(found.X_train)
    return components.transform(found.X_train), components.transform(found.X_test), found.y_train, found.y_test


def labelme(seed: int) -> Parts:
    """Eight scenes with their true labels; the arena has them with people's votes."""
    data = load_arena("labelme", seed)
    return data.X_train, data.X_test, data.y_train, data.y_test


def even_digits(seed: int) -> Parts:
    """Even against odd digits: each class is made of five clouds."""
    X, y = shipped.load_digits(return_X_y=True)
    return split_rows(X, y % 2, seed)


def friedman(seed: int) -> Parts:
    """A noisy, bent surface above its highest 30 %."""
    X, value = shipped.make_friedman1(2000, 10, noise=1.0, random_state=seed)
    return split_rows(X, (value > np.quantile(value, 0.7)).astype(int), seed)


def made(maker: Callable[..., Any], seed: int, **given: Any) -> Parts:
    """One of scikit-learn's generators."""
    X, y = maker(n_samples=2000, random_state=seed, **given)
    return split_rows(X, np.unique(y, return_inverse=True)[1], seed)


DATA: dict[str, Callable[[int], Parts]] = {
    "mnist-3-5": lambda seed: mnist((3, 5), seed),
    "hastie": lambda seed: made(shipped.make_hastie_10_2, seed),
    "labelme, true labels": labelme,
    "friedman": friedman,
    "digits, even or odd": even_digits,
    "shells": lambda seed: made(shipped.make_gaussian_quantiles, seed, n_features=5, n_classes=3),
    "mnist-4-9": lambda seed: mnist((4, 9), seed),
    "clusters": lambda seed: made(
        shipped.make_classification, seed, n_features=20, n_informative=8, n_clusters_per_class=3, weights=[0.7],
        class_sep=0.8, flip_y=0.02,
    ),
}  # fmt: skip


def cells(X: np.ndarray, y: np.ndarray, seed: int) -> Iterator[tuple[str, int, np.ndarray]]:
    """(attack, level, labels), clean ones first."""
    yield "clean", 0, y
    for attack in ATTACKS:
        for level in LEVELS:
            yield attack, level, poison(X, y, attack=attack, budget=level / 100, random_state=seed).y


def compared(model: Any, parts: Parts, given: np.ndarray) -> dict[str, Any]:
    """Scores of the model, plain and behind each defense."""
    X, Z, _, truth = parts
    row: dict[str, Any] = {}
    safe = SanitizedClassifier(ContradictedLabels(), clone(model))
    for name, fitted in (("plain", clone(model)), ("safe", safe), ("cleanlab", CleanlabClassifier(clone(model)))):
        started = time.process_time()
        predicted = fitted.fit(X, given).predict(Z)
        row |= {name: (predicted == truth).mean(), f"{name}_balanced": balanced_accuracy_score(truth, predicted)}
        row[f"{name}_seconds"] = round(time.process_time() - started, 4)
    return row | {"acted": int(safe.sanitizer_.acted_), "memorised": safe.sanitizer_.memorised_}


def run_task(folder: Path, name: str, split: int, end: float, making: Making) -> str:
    """Run what is missing of one data set and split, until `end` (time.time())."""
    if time.time() > end:
        return ""
    path, started, count = folder / f"unseen.{name.replace(', ', '-').replace(' ', '-')}.{split}.csv", time.time(), 0
    there = (
        set()
        if not path.exists()
        else set(pd.read_csv(path)[["attack", "level", "model"]].itertuples(index=False, name=None))
    )
    parts, note = DATA[name](split), making.beside(path)
    for attack, level, given in cells(parts[0], parts[2], split):
        for title, model in MODELS.items():
            if len(np.unique(parts[2])) > MOST_CLASSES.get(title, 99) or (attack, level, title) in there:
                continue
            if time.time() > end:
                return f"{name} {split}: out of time after {count} cells"
            where = {"data": name, "split": split, "attack": attack, "level": level, "model": title}
            cell_started = time.perf_counter()
            append(path, where | compared(model, parts, given))
            note.add(time.perf_counter() - cell_started)
            count += 1
    return f"{name} {split}: {count} cells, {time.time() - started:.1f} s"


def append(path: Path, row: dict[str, Any]) -> None:
    """Add a row in one write."""
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        writer.writeheader()
    writer.writerow({key: round(value, 6) if isinstance(value, float) else value for key, value in row.items()})
    with path.open("a", newline="") as stream:
        stream.write(text.getvalue())


def score_card(rows: pd.DataFrame) -> pd.DataFrame:
    """Differences to the plain model, by model: means over cells of means over splits."""
    cell = ["model", "data", "attack", "level"]
    lines = []
    for side in SIDES:
        change = pd.DataFrame({
            "accuracy": rows[side] - rows.plain, "balanced": rows[f"{side}_balanced"] - rows.plain_balanced
        }).join(rows[cell]).groupby(cell).mean().reset_index()  # fmt: skip
        for model in [title for title in MODELS if title in set(rows.model)]:
            part = change[change.model == model]
            poisoned, clean = part[part.level > 0], part[part.level == 0]
            lines.append({
                "model behind": model, "told nothing": SIDES[side], "cells": len(part),
                "clean": clean.accuracy.mean(), "poisoned": poisoned.accuracy.mean(),
                "worst cell": part.accuracy.min(), "cells > 0.02 below": (part.accuracy < -0.02).mean(),
                "balanced, poisoned": poisoned.balanced.mean(),
            })  # fmt: skip
    return pd.DataFrame(lines).sort_values("model behind", kind="stable")


def read(folder: Path) -> pd.DataFrame:
    """All rows of a folder, or of a csv file."""
    if folder.is_file():
        return pd.read_csv(folder)
    return pd.concat([pd.read_csv(part) for part in sorted(folder.glob("unseen.*.csv"))], ignore_index=True)


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table", "merge"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path, nargs="?", help="where merge writes")
    parser.add_argument("--splits", default="1-2")
    parser.add_argument("--data", default="", help="only these data sets, separated by semicolons")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="start no cell after this")
    parser.add_argument("--trial", action="store_true", help="run a tree with local changes, for a look")
    given = parser.parse_args()
    if given.what == "table":
        print(score_card(read(given.folder)).round(4).to_string(index=False))
        return
    if given.what == "merge":
        times = [name for name in FIELDS if name.endswith("_seconds")]
        read(given.folder).drop(columns=times).to_csv(given.out, index=False)
        keep_parts(makings(given.folder), beside_merged(given.out))
        return
    making = begin(trial=given.trial)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    end = time.time() + given.seconds
    first, _, last = given.splits.partition("-")
    names = given.data.split(";") if given.data else list(DATA)
    tasks = [(name, split) for split in range(int(first), int(last or first) + 1) for name in names]
    with ProcessPoolExecutor(given.processes) as pool:
        waiting = [pool.submit(run_task, given.folder, *task, end, making) for task in tasks]
        for task, done in zip(tasks, waiting, strict=True):
            try:
                told = done.result()
            except Exception as error:  # one broken cell must not end the others
                told = f"{task}: {type(error).__name__}: {error}"
            if told:
                print(told, flush=True)


if __name__ == "__main__":
    main()
