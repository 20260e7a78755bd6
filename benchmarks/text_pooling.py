"""Frozen MiniLM on film reviews: the vector at the first token, or the mean over tokens that it was made for?

    python benchmarks/text_pooling.py draws --cache DIR                  # reviews of three draws of IMDB, into DIR
    python benchmarks/text_pooling.py run --cache DIR --device cuda      # one line per cell, into DIR
    python benchmarks/text_pooling.py table --cache DIR                  # the table of docs/results/text.md

Both heads have C = 1 and gamma = "scale", the defaults of SVC; told means a budget of the share of wrong labels.
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
import time
from pathlib import Path

import numpy as np
from sklearn.svm import SVC

from floral_bench.metrics import sample_deviation
from floral_bench.reporting.making import begin
from floral_learn import FloralClassifier, poison
from floral_learn.datasets import load_imdb
from floral_learn.files.atomic_files import write_atomically

DRAWS, TRAIN, TEST, TOKENS = (1, 2, 3), 1000, 1000, 128
POOLINGS = ("first", "mean")
CELLS = ((None, 0.0), ("random", 0.25), ("farthest", 0.1), ("farthest", 0.25))
HEADS = ("SVC()", "FloralClassifier()", "FloralClassifier, told")


def draws(folder: Path) -> None:
    """Write the texts of all draws as one file."""
    found = []
    for seed in DRAWS:
        data = load_imdb(n_train=TRAIN, n_val=0, n_test=TEST, random_state=seed)
        parts = {"train": data.X_train, "y": data.y_train, "test": data.X_test, "y_test": data.y_test}
        found.append({name: part.tolist() for name, part in parts.items()})
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "draws.json.xz", lzma.compress(json.dumps(found).encode()))


def run(folder: Path, device: str | None) -> None:
    """Embed every draw in both ways and score every head."""
    from floral_learn import TextClassifier

    making, started = begin(), time.perf_counter()
    rows = []
    for seed, draw in zip(DRAWS, json.loads(lzma.decompress((folder / "draws.json.xz").read_bytes())), strict=True):
        y, y_test = np.array(draw["y"]), np.array(draw["y_test"])
        for pooling in POOLINGS:
            encoder = TextClassifier(max_length=TOKENS, pooling=pooling, device=device, random_state=0)
            embedding = time.perf_counter()
            encoder.freeze(np.unique(y))
            X, X_test = encoder.embed(draw["train"]), encoder.embed(draw["test"])
            seconds = time.perf_counter() - embedding
            for attack, level in CELLS:
                given = y if attack is None else poison(X, y, attack=attack, budget=level, random_state=seed).y
                for name in HEADS:
                    budget = {"budget": level} if name == HEADS[2] and level else {}
                    head = SVC() if name == HEADS[0] else FloralClassifier(random_state=seed, **budget)
                    score = head.fit(X, given).score(X_test, y_test)
                    rows.append((seed, pooling, attack or "none", level, name, f"{score:.4f}", f"{seconds:.2f}"))
    names = ("draw", "pooling", "attack", "level", "head", "accuracy", "seconds")
    text = "\n".join(",".join(f'"{cell}"' for cell in row) for row in (names, *rows)) + "\n"
    write_atomically(folder / "text_pooling.csv", text)
    print(f"{making.heading()}, {len(rows)} heads, {time.perf_counter() - started:.0f} s")


def table(folder: Path) -> None:
    """Print mean and sample deviation over the draws, one row per head and attack."""
    with open(folder / "text_pooling.csv", encoding="utf-8", newline="") as stream:
        found = list(csv.DictReader(stream))
    print("| labels flipped | head | first token | mean of tokens |\n|---|---|---:|---:|")
    for attack, level in CELLS:
        for name in HEADS:
            cells = []
            for pooling in POOLINGS:
                values = [
                    float(row["accuracy"])
                    for row in found
                    if (row["pooling"], row["attack"], float(row["level"]), row["head"])
                    == (pooling, attack or "none", level, name)
                ]
                cells.append(f"{np.mean(values):.3f} ± {sample_deviation(values):.3f}")
            label = "none" if attack is None else f"{attack}, {100 * level:g} %"
            print(f"| {label} | `{name}` | {cells[0]} | {cells[1]} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("draws", "run", "table"))
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--device", default=None)
    args = parser.parse_args()
    if args.action == "run":
        run(args.cache, args.device)
    else:
        {"draws": draws, "table": table}[args.action](args.cache)


if __name__ == "__main__":
    main()
