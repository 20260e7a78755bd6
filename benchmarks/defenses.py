"""Measure the defenses: ``python benchmarks/defenses.py [speed | memory | moon]``, speed if nothing is named.

speed   fit time of every defense as a ratio to SVC.fit, MNIST 1 vs 7, n = 500, 2,000, 10,000, clean and 10 % flipped
memory  peak memory of every sanitiser and of rs at n = 20,000, d = 768
moon    test accuracy of every defense on five Moon splits beside the paper's columns, as Markdown
        (``--paper tables.csv`` names the file with the paper's numbers; ``--figure out.png`` draws them)
"""

import argparse
import csv
import subprocess
import sys
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from sklearn.svm import SVC

from floral_learn.attacks import poison
from floral_learn.datasets import load_mnist, load_moon
from floral_learn.defenses import DEFENSES

LEVELS = (0, 5, 10, 15, 20, 25)
SPLITS = (1, 2, 3, 4, 5)
STEPS = (1e-4, 3e-4, 5e-4, 7e-4)
SVM_NAMES = ("svm", "ln-svm", "curie", "ls-svm", "k-lid")


def build(name, level=0.05, **extra):
    """The defense with the settings of the paper: it is told the share of poisoned labels (5 % if clean)."""
    level = max(level, 0.05)
    told = {"ln-svm": {"noise": level}, "curie": {"confidence": 1 - level}, "ls-svm": {"threshold": 1 - level}}
    model = DEFENSES[name](**told.get(name, {}), **extra)
    if name in ("floral", "curie", "k-lid", "rsrnn"):
        model.set_params(random_state=0)
    return model


# speed


def fastest_fit(make, X, y, repeats):
    times = []
    for _ in range(repeats):
        model = make()
        start = time.perf_counter()
        model.fit(X, y)
        times.append(time.perf_counter() - start)
    return min(times)


def speed(sizes=(500, 2000, 10000)):
    """Print fit times as ratios to SVC.fit (C = 5, gamma = 0.005)."""
    kernel = {"C": 5.0, "gamma": 0.005}
    rows = {}
    for name in DEFENSES:
        if name in SVM_NAMES:
            rows[name] = lambda name=name: build(name, 0.1, **kernel)
    rows["svm (pgd)"] = lambda: build("svm", solver="pgd", **kernel)
    rows["rs"] = lambda: build("rs")
    rows["rs (rbf)"] = lambda: build("rs", kernel="rbf", gamma=0.005)
    rows["dpa"] = lambda: build("dpa", estimator=SVC(**kernel))
    rows["rsrnn"] = lambda: build("rsrnn")
    header = [f"{labels} {n:,}" for labels in ("clean", "10 % flips") for n in sizes]
    table = defaultdict(list)
    for flips in (0.0, 0.1):
        for n in sizes:
            data = load_mnist(n_train=n, dtype=np.float64)
            y = (
                poison(data.X_train, data.y_train, attack="random", budget=flips, random_state=0).y
                if flips
                else data.y_train
            )
            repeats = 3 if n <= 2000 else 1
            base = fastest_fit(lambda: SVC(**kernel), data.X_train, y, repeats)
            table["SVC.fit, seconds"].append(f"{base:.3f}")
            for name, make in rows.items():
                table[name].append(f"{fastest_fit(make, data.X_train, y, repeats) / base:.2f}")
    print(f"| fit time / SVC.fit | {' | '.join(header)} |")
    print("|---|" + "---:|" * len(header))
    for name, cells in table.items():
        print(f"| {name} | {' | '.join(cells)} |")


# memory


def memory(n=20_000, d=768):
    """Print peak memory beyond the data, each method in its own process."""
    script = """
import resource, sys, time
import numpy as np
from scipy import sparse
from floral_learn.defenses.sanitizers import CurieFilter, KLIDWeights, KNNRelabel
from floral_learn.defenses.smoothing import RandomizedSmoothingClassifier
n, d, method = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(0)
y = np.arange(n) % 2
X = rng.normal(size=(n, d)) * np.linspace(2.0, 0.1, d)
X[:, 0] += 2.0 * y
before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
{
    "ls (k=20)": lambda: KNNRelabel(20).fit_sanitize(X, y),
    "ls (k=1000)": lambda: KNNRelabel(1000).fit_sanitize(X, y),
    "curie": lambda: CurieFilter().fit_sanitize(X, y),
    "curie (k=1000)": lambda: CurieFilter(n_neighbors=1000).fit_sanitize(X, y),
    "curie (random)": lambda: CurieFilter(compare="random").fit_sanitize(X, y),
    "curie (all)": lambda: CurieFilter(compare="all").fit_sanitize(X, y),
    "k-lid": lambda: KLIDWeights(random_state=0).fit_sanitize(X, y),
    "rs": lambda: RandomizedSmoothingClassifier().fit(X, y).certify(X[:200]),
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


def moon_split(seed, level, attack="farthest", labels="ours"):
    name = f"{attack}-{level}" if labels == "reference" and level else "clean"
    data = load_moon(seed, labels=name)
    y = data.y_train
    if labels == "ours" and level:
        options = {"gamma": 1.0} if attack == "alfa" else {}
        y = poison(data.X_train, y, attack=attack, budget=level / 100, random_state=seed, **options).y
    return data, y


def paper_values(path, table):
    """(method, level, statistic) -> accuracy, for one table of the paper."""
    with open(path, newline="") as stream:
        return {
            (row["method"], int(row["poison_percent"]), row["statistic"]): float(row["value"])
            for row in csv.DictReader(stream)
            if row["table"] == table and row["metric"] == "accuracy"
        }


def scores(make, splits, level, **where):
    values = []
    for seed in splits:
        data, y = moon_split(seed, level, **where)
        values.append(make(level / 100).fit(data.X_train, y).score(data.X_test, data.y_test))
    return np.array(values)


def moon_methods():
    """Row title -> (the paper's name, what to fit at a level)."""
    kernel = {"C": 10.0, "gamma": 1.0}
    rows = {}
    for name in SVM_NAMES:
        rows[f"{name}, libsvm"] = (name, lambda level, name=name: build(name, level, **kernel))
        for step in STEPS:
            options = {"solver": "pgd", "learning_rate": step, "average": False}
            make = lambda level, name=name, options=options: build(name, level, **kernel, **options)  # noqa: E731
            rows[f"{name}, pgd {step:.0e}"] = (name, make)
    for compare in ("random", "all"):
        make = lambda level, compare=compare: build("curie", level, compare=compare, **kernel)  # noqa: E731
        rows[f"curie ({compare}), libsvm"] = ("curie", make)
    rows["dpa, 10 parts"] = (None, lambda level: build("dpa", estimator=SVC(C=10.0, gamma=1.0)))
    rows["rs, linear"] = (None, lambda level: build("rs"))
    rows["rs, rbf"] = (None, lambda level: build("rs", kernel="rbf", gamma=1.0))
    rows["rsrnn, K=10"] = (None, lambda level: build("rsrnn"))
    rows["floral, B = level, averaged"] = (
        "floral",
        lambda level: build("floral", budget=max(level, 0.02), **kernel),
    )
    return rows


def moon(paper, figure=None, labels="ours"):
    """Print accuracy on Moon, mean and standard deviation over the splits, and the paper's best / last."""
    published = paper_values(paper, "comp-moon")
    splits = SPLITS if labels == "ours" else (1,)
    measured = {}
    print("| method | " + " | ".join(f"{level} %" for level in LEVELS) + " |")
    print("|---|" + "---:|" * len(LEVELS))
    shown = None
    for title, (name, make) in moon_methods().items():
        if name in SVM_NAMES and name != shown:
            cells = [f"{published[name, lv, 'best']:.3f} / {published[name, lv, 'last']:.3f}" for lv in LEVELS]
            print(f"| **{name}, paper best / last** | " + " | ".join(cells) + " |")
            shown = name
        cells = []
        for level in LEVELS:
            values = scores(make, splits, level, labels=labels)
            measured[title, level] = values.mean()
            mark = ""
            if name is not None:
                low, high = sorted(published[name, level, which] for which in ("best", "last"))
                if not low - 0.03 <= values.mean() <= high + 0.03:
                    mark = " ▲" if values.mean() > high else " ▼"
            spread = f" ± {values.std():.3f}" if len(splits) > 1 else ""
            cells.append(f"{values.mean():.3f}{spread}{mark}")
        print(f"| {title} | " + " | ".join(cells) + " |", flush=True)
    if figure:
        draw(measured, published, figure)


def moon_alfa(paper):
    """The paper's RS and RSRNN tables: Moon poisoned by alfa."""
    rows = {}
    for q in (0.1, 0.3, 0.4):
        key = f"rs (q={q}, lambda=0.01)"
        for intercept in (False, True):
            options = {"flip_probability": q, "ridge": 0.01, "fit_intercept": intercept}
            title = key + (", intercept" if intercept else ", no intercept")
            rows[title] = ("comp-moon-rs-comp", key, lambda level, options=options: build("rs", **options))
    for k, alpha, lam in ((2, "0.01", "0.1"), (10, "0.01", "0.1"), (10, "0.1", "1"), (20, "0.01", "0.1")):
        key = f"rsrnn (K={k}, alpha={alpha}, lambda={lam})"
        options = {"n_centroids": k, "complexity": float(alpha), "penalty": float(lam)}
        rows[key] = ("comp-moon-rsrnn-comp", key, lambda level, options=options: build("rsrnn", **options))
    levels = (0, 5, 10, 25)
    print("| method | " + " | ".join(f"{level} %: ours (paper)" for level in levels) + " |")
    print("|---|" + "---:|" * len(levels))
    for title, (table, key, make) in rows.items():
        published = paper_values(paper, table)
        cells = []
        for level in levels:
            values = scores(make, SPLITS, level, attack="alfa")
            theirs = published[key, level, "last"]
            mark = "" if abs(values.mean() - theirs) <= 0.03 else (" ▲" if values.mean() > theirs else " ▼")
            cells.append(f"{values.mean():.3f} ± {values.std():.3f} ({theirs:.3f}){mark}")
        print(f"| {title} | " + " | ".join(cells) + " |", flush=True)


def moon_certificates():
    """Share of test points whose prediction is right and certified against r flips, clean labels, five splits."""
    radii = (0, 5, 10, 25, 50)
    rows = {f"rs, linear, q={q}": lambda q=q: build("rs", flip_probability=q) for q in (0.1, 0.3, 0.4)}
    rows |= {
        f"rs, rbf, q={q}": lambda q=q: build("rs", flip_probability=q, kernel="rbf", gamma=1.0, ridge=1.0)
        for q in (0.1, 0.3)
    }
    for parts in (10, 50, 100):
        rows[f"dpa, {parts} parts"] = lambda m=parts: build("dpa", estimator=SVC(C=10.0, gamma=1.0), n_partitions=m)
    print("| method | accuracy | " + " | ".join(f"right and certified, {r} flips" for r in radii) + " |")
    print("|---|" + "---:|" * (1 + len(radii)))
    for title, make in rows.items():
        found = []
        for seed in SPLITS:
            data, y = moon_split(seed, 0)
            prediction, radius = make().fit(data.X_train, y).certify(data.X_test)
            right = prediction == data.y_test
            found.append([right.mean(), *[(right & (radius >= r)).mean() for r in radii]])
        print(f"| {title} | " + " | ".join(f"{v:.3f}" for v in np.mean(found, axis=0)) + " |", flush=True)


def draw(measured, published, path):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(SVM_NAMES), figsize=(13, 3), sharey=True, layout="constrained")
    for axis, name in zip(axes, SVM_NAMES, strict=True):
        low, high = ([published[name, lv, which] for lv in LEVELS] for which in ("last", "best"))
        axis.fill_between(LEVELS, low, high, color="0.8", label="paper, last to best")
        axis.plot(LEVELS, low, color="0.5", lw=1)
        axis.plot(LEVELS, [measured[f"{name}, libsvm", lv] for lv in LEVELS], "o-", ms=4, label="ours, libsvm")
        axis.plot(LEVELS, [measured[f"{name}, pgd 7e-04", lv] for lv in LEVELS], "s--", ms=4, label="ours, pgd 7e-4")
        axis.set_title(name)
        axis.set_xlabel("flipped labels, %")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("test accuracy, Moon")
    axes[-1].legend(fontsize=8, loc="lower left")
    figure.savefig(path, dpi=90)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="speed", choices=("speed", "memory", "moon"))
    parser.add_argument("--paper", type=Path, help="the paper's numbers, a CSV file")
    parser.add_argument("--figure", type=Path, help="where to draw the Moon figure")
    options = parser.parse_args()
    if options.what == "speed":
        speed()
    elif options.what == "memory":
        memory()
    elif options.paper is None:
        parser.error("moon needs --paper, the CSV file with the paper's numbers")
    else:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
        print(f"{datetime.now(UTC):%Y-%m-%d}, commit {commit.stdout.strip()}\n")
        print("## Farthest flips, five splits\n")
        moon(options.paper, options.figure)
        print("\n## The authors' own labels, one split\n")
        moon(options.paper, labels="reference")
        print("\n## RS and RSRNN, alfa flips, five splits\n")
        moon_alfa(options.paper)
        print("\n## Certificates, clean labels, five splits\n")
        moon_certificates()


if __name__ == "__main__":
    main()
