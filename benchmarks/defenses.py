"""Measure the defenses: ``python benchmarks/defenses.py [moon] [rare] [memory] [speed]``, all if nothing is named.

moon    on five Moon splits, test accuracy of the defenses that no suite of the paper has
rare    balanced accuracy on clean labels where one class is rare, for its page
memory  peak memory of every sanitiser and of rs at n = 20,000, d = 768
speed   fit time of every defense as a ratio to SVC.fit, MNIST 1 vs 7, n = 500, 2,000, 10,000, clean and 10 % flipped

Each part prints its tables as Markdown, for docs/results/defenses.md. The paper's baselines on Moon stand in the suites
moon, moon-reference, moon-rs and moon-rsrnn.
"""

import argparse
import subprocess
import sys
import time
from collections import defaultdict
from functools import partial

import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_bench.datasets import load_mnist
from floral_bench.reporting.making import begin
from floral_bench.reporting.tables import grid, spread
from floral_learn import FloralClassifier
from floral_learn.attacks import poison
from floral_learn.datasets import load_moon
from floral_learn.datasets.files import DataNotFoundError, find_file
from floral_learn.paper import PaperFloralClassifier
from floral_learn.paper.defenses import DEFENSES

LEVELS = (0, 5, 10, 15, 20, 25)
SPLITS = (1, 2, 3, 4, 5)
SVM_NAMES = ("svm", "ln-svm", "curie", "ls-svm", "k-lid")


def build(name, level=0.05, **extra):
    """The defense with the settings of the paper: it is told the share of poisoned labels (5 % if clean)."""
    level = max(level, 0.05)
    told = {"ln-svm": {"noise": level}, "curie": {"confidence": 1 - level}, "ls-svm": {"threshold": 1 - level}}
    seed = {"random_state": 0} if name in ("floral", "curie", "k-lid", "rsrnn") else {}
    return DEFENSES[name](**told.get(name, {}), **seed, **extra)


# speed


def fastest_fit(make, X, y, repeats):
    times = []
    for _ in range(repeats):
        model = make()
        start = time.perf_counter()
        model.fit(X, y)
        times.append(time.perf_counter() - start)
    return min(times)


def poisoned(data, attack, share, seed):
    """Training labels of which a share is flipped."""
    y = data.y_train
    return poison(data.X_train, y, attack=attack, budget=share, random_state=seed).y if share else y


def speed(sizes=(500, 2000, 10000)):
    """Print fit times as ratios to SVC.fit (C = 5, gamma = 0.005)."""
    kernel = {"C": 5.0, "gamma": 0.005}
    rows = {name: partial(build, name, 0.1, **kernel) for name in DEFENSES if name in SVM_NAMES}
    rows["rs"] = lambda: build("rs")
    rows["rs (rbf)"] = lambda: build("rs", kernel="rbf", gamma=0.005)
    rows["dpa"] = lambda: build("dpa", estimator=SVC(**kernel))
    rows["rsrnn"] = lambda: build("rsrnn")
    header = [f"{labels} {n:,}" for labels in ("clean", "10 % flips") for n in sizes]
    table = defaultdict(list)
    for flips in (0.0, 0.1):
        for n in sizes:
            data = load_mnist(n_train=n, dtype=np.float64)
            y = poisoned(data, "random", flips, 0)
            repeats = 3 if n <= 2000 else 1
            base = fastest_fit(lambda: SVC(**kernel), data.X_train, y, repeats)
            table["SVC.fit, seconds"].append(f"{base:.3f}")
            for name, make in rows.items():
                table[name].append(f"{fastest_fit(make, data.X_train, y, repeats) / base:.2f}")
    print(grid(["fit time / SVC.fit", *header], ([name, *cells] for name, cells in table.items())))


# memory


def memory(n=20_000, d=768):
    """Print peak memory beyond the data, each method in its own process."""
    script = """
import resource, sys, time
import numpy as np
from scipy import sparse
from floral_learn.paper import CurieFilter, KLIDWeights, KNNRelabel
from floral_learn.paper.smoothing import RandomizedSmoothingClassifier
n, d, method = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(0)
y = np.arange(n) % 2
X = rng.normal(size=(n, d)) * np.linspace(2.0, 0.1, d)
X[:, 0] += 2.0 * y
before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
{
    "ls (k=20)": lambda: KNNRelabel(20).fit_resample(X, y),
    "ls (k=1000)": lambda: KNNRelabel(1000).fit_resample(X, y),
    "curie": lambda: CurieFilter().fit_resample(X, y),
    "curie (k=1000)": lambda: CurieFilter(n_neighbors=1000).fit_resample(X, y),
    "curie (random)": lambda: CurieFilter(compare="random").fit_resample(X, y),
    "curie (all)": lambda: CurieFilter(compare="all").fit_resample(X, y),
    "k-lid": lambda: KLIDWeights(random_state=0).fit(X, y),
    "rs": lambda: RandomizedSmoothingClassifier().fit(X, y).certified_flips(X[:200]),
}[method]()
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(f"| {method} | {(after - before) / 1024:,.0f} MB | {time.perf_counter() - start:.1f} s |")
"""
    print(f"X alone: {n * d * 8 / 2**20:,.0f} MB; a full distance matrix would be {n * n * 8 / 2**20:,.0f} MB\n")
    print("| sanitiser | peak beyond X | time |\n|---|---:|---:|")
    methods = ("ls (k=20)", "ls (k=1000)", "curie", "curie (k=1000)", "curie (random)", "curie (all)", "k-lid", "rs")
    for method in methods:
        command = [sys.executable, "-W", "ignore", "-c", script, str(n), str(d), method]
        print(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip(), flush=True)


# Moon


def moon():
    """Print accuracy under farthest flips of what the suites do not have, an SVC with the same kernel beside it."""
    kernel = {"C": 10.0, "gamma": 1.0}
    rows = {"svm (libsvm)": lambda share: build("svm", share, **kernel)}
    for compare in ("random", "all"):
        rows[f"curie ({compare})"] = lambda share, how=compare: build("curie", share, compare=how, **kernel)
    rows["dpa, 10 parts"] = lambda share: build("dpa", estimator=SVC(**kernel))
    rows["rs, linear"] = lambda share: build("rs")
    rows["rs, rbf"] = lambda share: build("rs", kernel="rbf", gamma=1.0)
    rows["rsrnn, K=10"] = lambda share: build("rsrnn")
    lines = ([title, *(spread(scores(make, level)) for level in LEVELS)] for title, make in rows.items())
    print(grid(["method", *(f"{level} %" for level in LEVELS)], lines) + "\n")


def scores(make, level):
    """Test accuracies of the five splits."""
    for seed in SPLITS:
        data = load_moon(random_state=seed)
        y = poisoned(data, "farthest", level / 100, seed)
        yield make(level / 100).fit(data.X_train, y).score(data.X_test, data.y_test)


# rare classes


def rare_tables(seed):
    """(name, X, y), rare class 1; htru2 where its file is here."""
    for percent in (10, 5, 3, 2):
        shape = {"n_features": 10, "n_informative": 6, "class_sep": 1.2, "flip_y": 0}
        yield f"{percent} %", *make_classification(4000, weights=[1 - percent / 100], random_state=seed, **shape)
    try:
        with np.load(find_file("tables/htru2.npz", hint="the table htru2")) as stored:
            yield "htru2", stored["X"].astype(float), (stored["y"] > 0).astype(int)
    except DataNotFoundError as error:
        print(f"htru2 is left out: {error}")


def rare(splits=4, train=1000, test=3000):
    """Print balanced accuracy (accuracy) of SVC, FLORAL's default and the paper's candidates without a cap."""
    modern = {"learning_rate": "auto", "average": True, "projection": "exact", "tol": 3e-4}
    methods = {
        "SVC": lambda seed: SVC(),
        "default": lambda seed: FloralClassifier(random_state=seed),
        "no cap": lambda seed: PaperFloralClassifier(random_state=seed, **modern),
    }
    found = defaultdict(lambda: defaultdict(list))
    for seed in range(splits):
        for name, X, y in rare_tables(seed):
            order = np.random.default_rng(seed).permutation(len(y))[: train + test]
            rows, labels = StandardScaler().fit(X[order[:train]]).transform(X[order]), y[order]
            for method, make in methods.items():
                said = make(seed).fit(rows[:train], labels[:train]).predict(rows[train:])
                right = (said == labels[train:]).mean()
                found[name][method].append((balanced_accuracy_score(labels[train:], said), right))
    cells = {name: [np.mean(row[method], axis=0) for method in methods] for name, row in found.items()}
    lines = ([name, *(f"{balanced:.3f} ({plain:.3f})" for balanced, plain in own)] for name, own in cells.items())
    print(grid(["positives", *methods], lines))


PARTS = {"moon": moon, "rare": rare, "memory": memory, "speed": speed}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="what to measure; all of it by default")
    parser.add_argument("--trial", action="store_true", help="measure a tree with local changes, for a look")
    given = parser.parse_args()
    run = begin(trial=given.trial)
    print(run.heading())
    for name in given.parts or PARTS:
        print(f"\n## {name}\n", flush=True)
        started = time.perf_counter()
        PARTS[name]()
        print(f"\n{time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
