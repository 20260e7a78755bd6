"""Speed of the default fit beside SVC.fit, and what its stopping rule and its step rest on.

    python benchmarks/game.py [--part beside|stop|classes|step]

Prints Markdown tables. MNIST and tables are read from $FLORAL_DATA; every ratio is measured within this run.
"""

import argparse
import platform
import time
import warnings
from functools import partial
from itertools import pairwise

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_blobs,
    make_classification,
    make_gaussian_quantiles,
    make_moons,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_bench.public_tables import load_table
from floral_bench.reporting.making import begin
from floral_learn import FloralClassifier, poison
from floral_learn.game.arrays import NUMPY

THREE = {"n_informative": 8, "n_classes": 3, "random_state": 0}
EASY = THREE | {"class_sep": 5.0, "flip_y": 0}
LOOKS = (24, 32, 48, 64, 96, 128, 192)
CHOSEN_ON = ("moon", "breast cancer", "digits", "pima", "phoneme", "banknote")
REPORTED = ("magic04", "spambase", "htru2", "satimage", "wine")


def row(*cells):
    print("| " + " | ".join(str(c) for c in cells) + " |", flush=True)


def header(title, *columns):
    print(f"\n### {title}\n")
    row(*columns)
    row(*["---"] * len(columns))


def data(name, seed=0):
    """Rows and class numbers."""
    own = {"breast cancer": load_breast_cancer, "digits": load_digits, "wine": load_wine, "iris": load_iris}
    if name == "moon":
        return make_moons(3000, noise=0.2, random_state=seed)
    X, y = own[name](return_X_y=True) if name in own else load_table(name)[:2]
    return np.asarray(X, dtype=float), np.unique(y, return_inverse=True)[1]


def split(name, seed, rows):
    """Standardised training and test rows of a data set, with their labels."""
    X, y = data(name, seed)
    order = np.random.default_rng(seed).permutation(len(y))
    size = min(rows, int(0.6 * len(y)))
    train, test = order[:size], order[size : size + 2000]
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def beside():
    """Seconds of FloralClassifier() over those of SVC() at the same C and gamma, each seed of the game in turn."""
    from floral_bench.datasets import load_mnist

    header(
        "The default beside SVC", "data", "SVC", "FLORAL", "ratio", "ratio of CPU seconds", "goal", "rounds", "kernel"
    )
    digits = load_mnist(digits=(1, 7), n_train=10_000)
    X, y = digits.X_train, digits.y_train
    flipped = y.copy()
    some = np.random.default_rng(0).permutation(len(y))[: len(y) // 10]
    flipped[some] = -y[some]
    table, codes = data("satimage")
    few = np.random.default_rng(0).permutation(len(codes))[:2000]
    wide = {"n_informative": 20, "n_redundant": 0, "flip_y": 0.05, "random_state": 0}
    cases = [
        ("Moon, 500 rows", *make_moons(500, noise=0.2, random_state=0), {}, 12.0, 21),
        ("satimage, 2,000 rows, six classes", StandardScaler().fit_transform(table[few]), codes[few], {}, 6.0, 9),
        ("12,000 x 20, three easy classes", *make_classification(12_000, 20, **EASY), {}, 5.0, 7),
        ("12,000 x 20, three classes", *make_classification(12_000, 20, **THREE), {}, 5.0, 3),
        ("MNIST 1 vs 7, 10,000 rows, clean", X, y, {"gamma": 0.005}, 0.25, 3),
        ("MNIST 1 vs 7, 10,000 rows, 10 % flipped", X, flipped, {"gamma": 0.005}, 0.03, 1),
        ("50,000 x 20, three classes", *make_classification(50_000, 20, **THREE), {}, None, 1),
        ("100,000 x 100, two classes", *make_classification(100_000, 100, **wide), {}, "8 s", 1),
    ]
    FloralClassifier(n_rounds=2, tol=None).fit(X[:200], y[:200])  # imports and thread pools
    for name, rows, labels, params, goal, repeat in cases:
        if len(rows) > 60_000:
            rows = rows.astype(np.float32)
        models, seconds, rounds = [SVC(**params)] if len(rows) < 20_000 else [], [], []
        for seed in range(repeat):  # in turn, so that a noisy moment hits both
            floral = FloralClassifier(random_state=seed, **params)
            seconds.append([clock(partial(model.fit, rows, labels)) for model in (*models, floral)])
            rounds.append(floral.n_iter_)
        wall, cpu = np.median(seconds, axis=0).T
        both = (f"{wall[0]:.3f} s", f"{wall[1] / wall[0]:.2f}", f"{cpu[1] / cpu[0]:.2f}") if models else ("", "", "")
        kernel = floral.gram_.split(", ")[0]
        row(name, both[0], f"{wall[-1]:.3f} s", *both[1:], goal or "", f"{np.median(rounds):.0f}", kernel)


def clock(call):
    """Wall and CPU seconds."""
    began = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - began[0], time.process_time() - began[1]


def stop(rows=600, splits=2):
    """Accuracy minus SVC's where the game ends by one rule or another, and after how many rounds."""
    rules = {  # looks, and how many times as still a game must be at its looks before round 64
        "looks from 48 on": (LOOKS[2:], 1.0),
        "from 24 on": (LOOKS, 1.0),
        "from 24 on, a third of tol before 64": (LOOKS, 3.0),
    }
    header(f"Where to end, {rows:,} rows", "data", "rule", "clean", "poisoned", "worst", "mean rounds")
    for group, names in (("chosen on", CHOSEN_ON), ("reported", REPORTED)):
        cells = [cell for name in names for seed in range(splits) for cell in stop_cells(name, seed, rows)]
        for rule, (looks, surer) in rules.items():
            ends = []
            for attack, gains, movements in cells:
                still = [r for r in looks[1:] if movements[looks, r] <= 3e-4 / (surer if r < 64 else 1.0)]
                end = still[0] if still else looks[-1]
                ends.append((attack == "clean", gains[end], end))
            clean, gain, end = np.array(ends, dtype=float).T
            means = (f"{gain[clean == 1].mean():+.4f}", f"{gain[clean == 0].mean():+.4f}")
            row(f"{group} ({len(names)})", rule, *means, f"{gain.min():+.3f}", f"{end.mean():.0f}")


def stop_cells(name, seed, rows):
    """For clean and poisoned labels: accuracy minus SVC's after each number of rounds, and movements between looks."""
    X, y, unseen, truth = split(name, seed, rows)
    for attack, level in (("clean", 0.0), ("random", 0.2), ("farthest", 0.1), ("near-boundary", 0.1)):
        given = poison(X, y, attack=attack, budget=level, random_state=seed).y if level else y
        svc = SVC().fit(X, given).score(unseen, truth)
        fits = {r: FloralClassifier(tol=None, n_rounds=r, random_state=seed).fit(X, given) for r in LOOKS}
        gains = {r: clf.score(unseen, truth) - svc for r, clf in fits.items()}
        values = {r: clf.model_.columns(X, NUMPY) for r, clf in fits.items()}
        pairs = fits[LOOKS[0]].model_.pairs
        plays = np.ones((len(y), 1), dtype=bool)
        if pairs is not None:
            plays = (given[:, None] == pairs[:, 0]) | (given[:, None] == pairs[:, 1])
        movements = {}
        for looks in (LOOKS, LOOKS[2:]):
            for former, now in pairwise(looks):
                squares = np.where(plays, (values[now] - values[former]) ** 2, 0.0).sum(axis=0) / plays.sum(axis=0)
                movements[looks, now] = squares.mean() / (now - former)
        yield attack, gains, movements


def several_classes(splits=3):
    """Accuracy against SVC on clean labels, same C and kernel."""
    header("Several classes, clean labels: accuracy minus SVC's", "data", "SVC", "pairs", "one-vs-rest")
    found = {}
    for seed in range(splits):
        sets = {name: partial(data, name) for name in ("digits", "wine", "iris", "satimage")}
        sets["nested"] = partial(make_gaussian_quantiles, n_samples=3000, n_features=4, n_classes=3, random_state=seed)
        sets["100 blobs"] = partial(
            make_blobs, 3000, centers=100, cluster_std=0.2, center_box=(-50, 50), random_state=seed
        )
        for name, make in sets.items():
            X, y = make()
            order = np.random.default_rng(seed).permutation(len(y))
            size = min(1000, int(0.6 * len(y)))
            train, test = order[:size], order[size : size + 1000]
            X = X if name == "100 blobs" else StandardScaler().fit(X[train]).transform(X)
            svc = SVC().fit(X[train], y[train]).score(X[test], y[test])
            both = (FloralClassifier(multi_class=how, random_state=seed) for how in ("pairs", "one-vs-rest"))
            scores = [clf.fit(X[train], y[train]).score(X[test], y[test]) - svc for clf in both]
            found.setdefault(name, []).append([svc, *scores])
    for name, values in (found | {"mean": [np.mean(v, axis=0) for v in found.values()]}).items():
        svc, pairs, rest = np.mean(values, axis=0)
        row(name, f"{svc:.3f}", f"{pairs:+.4f}", f"{rest:+.4f}")


def step():
    """How far a step can move two points apart after new flips: ||H(I - eta K)||, where no dual is at a bound."""
    factors = (1.0, 1.5, 2.0)
    header(
        "The step after new flips",
        "data", "rows", "lambda_max(K) / lambda_max(HKH)", *(f"eta = {f:g} / lambda_max(HKH)" for f in factors),
    )  # fmt: skip
    for name in ("moon", "breast cancer", "wine", "digits", "pima", "magic04", "phoneme", "spambase"):
        X = make_moons(500, noise=0.2, random_state=0)[0] if name == "moon" else data(name)[0]
        if name != "moon":
            X = StandardScaler().fit_transform(X[np.random.default_rng(0).permutation(len(X))[:1000]])
        n = len(X)
        K, H = rbf_kernel(X, gamma=1 / (X.shape[1] * X.var())), np.eye(n) - 1 / n
        plain, centred = (float(np.linalg.eigvalsh(matrix)[-1]) for matrix in (K, H @ K @ H))
        norms = [np.linalg.norm(H @ (np.eye(n) - factor / centred * K), 2) for factor in factors]
        row(name, f"{n:,}", f"{plain / centred:.1f}", *(f"{norm:.2f}" for norm in norms))


PARTS = {"beside": beside, "stop": stop, "classes": several_classes, "step": step}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=list(PARTS), help="one of the tables; all by default")
    part = parser.parse_args().part
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(f"{begin(trial=True).heading()}, Python {platform.python_version()}, numpy {np.__version__}")
    for name, table in PARTS.items():
        if part in (None, name):
            table()


if __name__ == "__main__":
    main()
