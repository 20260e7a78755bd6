"""MNIST 1 vs 7: does an attack on the duals of an early-stopped SVM give the paper's table? At full n, on a GPU.

    python benchmarks/mnist_attack.py run --device cuda --out rows.csv     # about seven minutes on an H200
    python benchmarks/mnist_attack.py table --out rows.csv                 # the tables of docs/results/mnist-attack.md

The paper draws its flips from "the largest duals" of an SVM and does not say which. Here they are those of 500
projected gradient rounds on clean labels at a step of the paper's grid; flips are the k largest ("top-k") or k at
random among the 2k largest ("randomized"). Then the paper's grid is trained on the flipped labels.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections import Counter
from pathlib import Path

import numpy as np

from floral_bench.families.games import run_games
from floral_bench.reporting.making import begin, one_commit
from floral_bench.spec import Attack, Cell, Data, Grid, Method, params
from floral_learn.datasets import Dataset, load_mnist
from floral_learn.files.atomic_files import write_atomically
from floral_learn.game.arrays import backend_for
from floral_learn.game.attackers import RandomizedTopK
from floral_learn.game.choose_gram import choose_gram
from floral_learn.game.game import Game, solve, step_schedule
from floral_learn.game.kernels import Kernel

C, GAMMA, ROWS, ROUNDS = 5.0, 0.005, 10_000, 500
METHODS = ("svm", "floral", "curie", "ls-svm")
SOURCES = ((1e-4, "top-k"), (1e-4, "randomized"), (7e-4, "top-k"), (7e-4, "randomized"), (3e-4, "top-k"))
LEVELS = (25, 10, 5)
PART = 3 * (3 + len(Grid().flips)) * len(Grid().etas) * len(Grid().decays)  # best, last, average of every setting
COLUMNS = ("seed", "source", "kind", "level", "method", "statistic", "config", "value")
PAPER = {"svm": (0.974, 0.920, 0.741)}  # last, at 5, 10 and 25 %


def duals(data: Dataset, eta: float, seed: int, device: str | None) -> np.ndarray:
    rng, backend = np.random.default_rng(seed), backend_for(device)
    gram = choose_gram(data.X_train, Kernel("rbf", GAMMA), rng=rng, max_memory="8GB", backend=backend)
    cap, steps = np.full(len(data.y_train), C), step_schedule(eta, ROUNDS)
    game = Game(gram, (data.y_train == 1).astype(int), cap, steps, RandomizedTopK(0, 0), seeds=np.array([seed]))
    return np.abs(np.asarray(solve(game).dual)[:, 0])


def flipped(data: Dataset, weights: np.ndarray, kind: str, level: float, seed: int) -> np.ndarray:
    count = int(len(weights) * level / 100)
    order = np.argsort(-weights, kind="stable")
    rows = order[:count] if kind == "top-k" else np.random.default_rng(seed).permutation(order[: 2 * count])[:count]
    y = data.y_train.copy()
    y[rows] *= -1
    return y


def run(args: argparse.Namespace) -> None:
    """Rows of every split, source and level; those that are whole in the file are not made again."""
    started = time.perf_counter()
    making = begin(device=args.device).beside(args.out)
    one_commit(args.out, making)
    known = finished(args.out)
    with open(args.out, "a", newline="") as stream:
        writer = csv.writer(stream)
        if not stream.tell():
            writer.writerow(COLUMNS)
        for seed in args.seeds:
            data = load_mnist(n_train=ROWS, n_val=3_007, random_state=seed)
            for eta, kind in SOURCES:
                levels = [level for level in LEVELS if (seed, eta, kind, level) not in known]
                weights = duals(data, eta, seed, args.device) if levels else np.empty(0)
                for level in levels:
                    began = time.perf_counter()
                    y = flipped(data, weights, kind, level, seed)
                    at = (Data("mnist", params(seed=seed)), Attack(kind), level)
                    cells = [Cell(*at, Method(m, needs_grid=True), C, GAMMA, Grid(), seed) for m in METHODS]
                    results = run_games(cells, [y] * len(cells), data, device=args.device)
                    writer.writerows(
                        [seed, eta, kind, level, result.cell.method.name, statistic, config, value]
                        for result in results
                        for config, statistic, metric, value in result.rows
                        if metric == "accuracy"
                    )
                    stream.flush()
                    making.add(time.perf_counter() - began)
                    took = time.perf_counter() - started
                    print(f"{took:.0f} s: seed {seed}, {kind} from eta={eta:g}, {level} %", flush=True)


def finished(path: Path) -> set[tuple[int, float, str, int]]:
    """Splits, sources and levels that the file has whole; what a killed run left of others is taken out of the file."""
    if not path.is_file() or not path.stat().st_size:
        return set()
    with open(path, newline="") as stream:
        rows = list(csv.reader(stream))[1:]
    count = Counter(tuple(row[:4]) for row in rows if len(row) == len(COLUMNS))
    whole = {key for key, number in count.items() if number == PART}
    if len(whole) < len(count) or any(len(row) != len(COLUMNS) for row in rows):
        lines = [COLUMNS, *(row for row in rows if len(row) == len(COLUMNS) and tuple(row[:4]) in whole)]
        write_atomically(path, "".join(",".join(f'"{v}"' if "," in v else v for v in line) + "\n" for line in lines))
    return {(int(seed), float(eta), kind, int(level)) for seed, eta, kind, level in whole}


def table(args: argparse.Namespace) -> None:
    import pandas as pd

    frame = pd.read_csv(args.out)
    frame = frame[(frame.statistic == "last") & frame.method.isin(METHODS)]
    means = frame.groupby(["source", "kind", "method", "config", "level"])["value"].mean().unstack("level")[[5, 10, 25]]
    paper = " | ".join(f"{value:.3f}" for value in PAPER["svm"])
    print("| duals of | flips | method, last round | 5 % | 10 % | 25 % |\n|---|---|---|---:|---:|---:|")
    print(f"| the paper, not said | | svm | {paper} |")
    for (source, kind, method), part in means.groupby(level=[0, 1, 2], sort=False):
        best = " | ".join(f"{value:.3f}" for value in part.max())
        print(f"| eta = {source:g} | {kind} | {method}, best of the grid | {best} |")
        if method == "svm":
            worst = " | ".join(f"{value:.3f}" for value in part.min())
            print(f"| eta = {source:g} | {kind} | svm, worst of the grid | {worst} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("run", "table"))
    parser.add_argument("--out", type=Path, default=Path("mnist_attack.csv"), help="the rows")
    parser.add_argument("--device", default=None, help="torch device, such as cuda")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="splits")
    args = parser.parse_args()
    {"run": run, "table": table}[args.action](args)


if __name__ == "__main__":
    main()
