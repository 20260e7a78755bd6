"""Speed of the game beside SVC.fit and beside a plain version of the authors' round, all in one run.

    python benchmarks/game.py [--quick]

Prints Markdown tables. MNIST is read from $FLORAL_DATA; every ratio is measured within this run.
"""

import argparse
import multiprocessing
import os
import platform
import subprocess
import time
from pathlib import Path

import numpy as np
from reference_round import reference_round
from sklearn.datasets import make_classification, make_moons
from sklearn.svm import SVC

from floral_learn import FloralClassifier
from floral_learn.core.attackers import RandomizedTopK
from floral_learn.core.game import Game, solve, step_schedule
from floral_learn.core.gram import DenseGram
from floral_learn.core.kernels import Kernel

C, GAMMA = 5.0, 0.005


def clock(call, repeat=1):
    """Median seconds and the last result."""
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - began)
    return float(np.median(times)), result


def row(*cells):
    print("| " + " | ".join(str(c) for c in cells) + " |", flush=True)


def header(title, *columns):
    print(f"\n### {title}\n")
    row(*columns)
    row(*["---"] * len(columns))


def mnist(n):
    from floral_learn.datasets import load_mnist

    data = load_mnist(digits=(1, 7), n_train=n)
    return data.X_train, data.y_train, data.X_test


def fit(X, y, **params):
    return FloralClassifier(**{"C": C, "gamma": GAMMA, "budget": 0.02, "random_state": 0} | params).fit(X, y)


def against_svc(n, rounds):
    X, clean, test = mnist(n)
    flipped = clean.copy()
    rows = np.random.default_rng(0).choice(n, n // 10, replace=False)
    flipped[rows] = -flipped[rows]
    header(
        f"MNIST 1 vs 7, n = {n:,}, d = {X.shape[1]}, {rounds} rounds",
        "labels", "SVC.fit s", "FLORAL fit s", "FLORAL / SVC", "plain round s", "plain fit (extrapolated) / FLORAL fit",
        "same predictions as dense game",
    )  # fmt: skip
    for name, y in (("clean", clean), ("10 % random flips", flipped)):
        svc, _ = clock(lambda y=y: SVC(C=C, gamma=GAMMA).fit(X, y), 3 if name == "clean" else 1)
        ours, clf = clock(lambda y=y: fit(X, y, n_rounds=rounds), 3)
        dense = fit(X, y, n_rounds=rounds, gram="dense", max_memory="8GB")
        agree = np.mean(clf.predict(test) == dense.predict(test))
        plain = plain_round(X, np.where(y == y.max(), 1.0, -1.0))
        ratio = plain * rounds / ours
        row(name, f"{svc:.2f}", f"{ours:.2f}", f"{ours / svc:.2f}", f"{plain:.2f}", f"{ratio:,.0f}", f"{agree:.4f}")
    print(f"\n{clf.gram_}; budget {clf.budget_}, flips {clf.flips_}; dense: {dense.gram_}")
    gram = DenseGram.from_rows(X, Kernel("rbf", gamma=GAMMA), "float32")
    print(f"\nlambda_max: {gram.lambda_max():,.0f} for K, {gram.lambda_max(centred=True):,.0f} for HKH")


def plain_round(X, signs):
    """Seconds of a plain round, after checking that it plays the same game as ours."""
    few, rows = slice(0, 1500), X[:1500].astype(float)
    gram = DenseGram.from_rows(rows, Kernel("rbf", gamma=GAMMA))
    eta = 1 / gram.lambda_max(centred=True)
    labels = (signs[few] > 0).astype(int)
    game = Game(gram, labels, np.full(len(labels), C), step_schedule(eta, 6), RandomizedTopK(30, 15))
    ours = solve(game)
    dual = np.zeros(len(labels))
    for t in range(6):
        flips = ours.history["flips"][t, :, 0]
        dual, bias = reference_round(rows, signs[few], dual, flips[flips >= 0], eta, C, GAMMA)
        assert abs(bias - ours.history["bias"][t, 0]) < 1e-6, "the plain version plays another game"
    assert np.abs(dual - ours.dual[:, 0]).max() < 1e-8, "the plain version plays another game"
    dual, flips = np.full(len(X), 0.01), np.arange(len(X) // 100)
    return clock(lambda: reference_round(X, signs, dual, flips, 1e-4, C, GAMMA), 2)[0]


def dense_rounds(n, rounds):
    X, y, _ = mnist(n)
    labels = (y == y.max()).astype(int)
    gram = DenseGram.from_rows(X, Kernel("rbf", gamma=GAMMA), "float32")
    eta = 1 / gram.lambda_max(centred=True)

    def play(games, T):
        steps = step_schedule(np.full(games, eta), T)
        attacker = RandomizedTopK(n // 50, n // 100)
        return solve(Game(gram, labels, np.full(n, C), steps, attacker, seeds=np.arange(games)))

    def a_round(games):
        return (clock(lambda: play(games, rounds + 2))[0] - clock(lambda: play(games, 2))[0]) / rounds

    bare = {c: [] for c in (2, 32)}
    single, batch = [], []
    for _ in range(5):  # interleaved, so that a noisy moment hits all of them
        for c in bare:
            V = np.random.default_rng(0).normal(size=(n, c)).astype(np.float32)
            bare[c].append(clock(lambda V=V: gram.matrix @ V, 5)[0])
        single.append(a_round(1))
        batch.append(a_round(16))
    single, batch = np.median(single), np.median(batch)
    two, many = (np.median(bare[c]) for c in (2, 32))
    header(f"Dense rounds, n = {n:,}, float32", "what", "ms", "ratio")
    row("bare K @ V, V of 2 columns", f"{1e3 * two:.1f}", "1")
    row("one game, a round", f"{1e3 * single:.1f}", f"{single / two:.2f} of the bare product")
    row("bare K @ V, V of 32 columns", f"{1e3 * many:.1f}", f"{many / two:.2f}")
    row("16 batched games, a round", f"{1e3 * batch:.1f}", f"{batch / single:.2f} single games, "
        f"{batch / two:.2f} bare products")  # fmt: skip


def peak_gib():
    """Peak resident memory of this process so far (a child's getrusage would begin with its parent's peak)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 2**20
    return float("nan")


def one_large_fit(n, rounds, params, queue):
    X, y = make_classification(n, 100, n_informative=20, n_redundant=0, flip_y=0.05, random_state=0)
    X = X.astype(np.float32)
    before = peak_gib()
    seconds, clf = clock(
        lambda: FloralClassifier(n_rounds=rounds, random_state=0, **{"budget": 0.02} | params).fit(X, y)
    )
    peak = peak_gib()
    fresh = np.random.default_rng(1).normal(size=(100_000, 100)).astype(np.float32)
    predict, _ = clock(lambda: clf.predict(fresh))
    queue.put((seconds, before, peak, predict, clf.gram_, clf.score(X, y)))


def linear_growth(sizes, rounds, title, **params):
    header(
        f"Synthetic, d = 100, {rounds} rounds, {title}",
        "n", "fit s", "peak before the fit GiB", "peak after it GiB", "predict 100,000 rows s", "Gram",
    )  # fmt: skip
    seconds = []
    context = multiprocessing.get_context("spawn")
    for n in sizes:
        queue = context.Queue()
        process = context.Process(target=one_large_fit, args=(n, rounds, params, queue))
        process.start()
        fitted, before, peak, predict, gram, _ = queue.get()
        process.join()
        seconds.append(fitted)
        row(f"{n:,}", f"{fitted:.1f}", f"{before:.2f}", f"{peak:.2f}", f"{predict:.2f}", gram)
    if len(sizes) == 1:
        return
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    print(f"\nTime grows as n^{slope:.2f} (least squares on logs).")


def moon():
    X, y = make_moons(500, noise=0.2, random_state=1)
    header("Moon, n = 500, 500 rounds", "fit s (median of 9)")
    row(f"{clock(lambda: FloralClassifier(gamma=1.0, budget=0.02, random_state=0).fit(X, y), 9)[0]:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    quick = parser.parse_args().quick
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print(f"{time.strftime('%Y-%m-%d')}, commit {commit.stdout.strip()}, {os.cpu_count()} cores, {platform.machine()}, "
          f"Python {platform.python_version()}, numpy {np.__version__}")  # fmt: skip
    moon()
    against_svc(2000 if quick else 10_000, 50 if quick else 500)
    dense_rounds(2000 if quick else 10_000, 5 if quick else 15)
    sizes = (4000, 8000) if quick else (10_000, 30_000, 100_000)
    rounds = 50 if quick else 500
    linear_growth(sizes, rounds, "low rank 256", gram="low_rank", rank=256)
    linear_growth(sizes[-1:], rounds, "default settings")


if __name__ == "__main__":
    main()
