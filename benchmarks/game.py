"""Speed of the game beside SVC.fit and beside a plain version of the authors' round, all in one run.

    python benchmarks/game.py [--quick] [--part defaults]

Prints Markdown tables. MNIST is read from $FLORAL_DATA; every ratio is measured within this run.
"""

import argparse
import multiprocessing
import os
import platform
import time
from functools import partial
from pathlib import Path

import numpy as np
from reference_round import reference_round
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
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_bench.public_tables import load_table
from floral_bench.reporting.making import begin
from floral_learn import Engine, FloralClassifier
from floral_learn.game.attackers import RandomizedTopK
from floral_learn.game.game import Game, solve, step_schedule
from floral_learn.game.gram import DenseGram
from floral_learn.game.kernels import Kernel

C, GAMMA = 5.0, 0.005


def clock(call, repeat=1):
    """Median seconds and the last result."""
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - began)
    return float(np.median(times)), result


def alternately(calls, repeat):
    """Median wall and CPU seconds of each of `calls`, made in turn, so that a noisy moment hits all of them."""
    seconds = []
    for _ in range(repeat):
        for call in calls:
            began = time.perf_counter(), time.process_time()
            call()
            seconds.append((time.perf_counter() - began[0], time.process_time() - began[1]))
    return np.median(np.reshape(seconds, (repeat, len(calls), 2)), axis=0).T


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
    return FloralClassifier(**{"C": C, "gamma": GAMMA, "budget": 0.02, "tol": None, "random_state": 0} | params).fit(
        X, y
    )


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
        dense = fit(X, y, n_rounds=rounds, engine=Engine(gram="dense", max_memory="8GB"))
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


def step_constants():
    """How far a step can move two points apart after new flips: ||H(I - eta K)||, where no dual is at a bound."""
    factors = (1.0, 1.5, 2.0)
    header(
        "The step after new flips",
        "data", "rows", "lambda_max(K) / lambda_max(HKH)", *(f"eta = {f:g} / lambda_max(HKH)" for f in factors),
    )  # fmt: skip
    tables = {"breast cancer": load_breast_cancer().data, "wine": load_wine().data, "digits": load_digits().data}
    sets = {"Moon": make_moons(500, noise=0.2, random_state=0)[0]} | tables
    sets |= {name: np.asarray(load_table(name)[0], dtype=float) for name in ("pima", "magic04", "phoneme", "spambase")}
    for name, X in sets.items():
        if name != "Moon":
            X = StandardScaler().fit_transform(X[np.random.default_rng(0).permutation(len(X))[:1000]])
        n = len(X)
        K, H = rbf_kernel(X, gamma=1 / (X.shape[1] * X.var())), np.eye(n) - 1 / n
        plain, centred = (float(np.linalg.eigvalsh(matrix)[-1]) for matrix in (K, H @ K @ H))
        norms = [np.linalg.norm(H @ (np.eye(n) - factor / centred * K), 2) for factor in factors]
        row(name, f"{n:,}", f"{plain / centred:.1f}", *(f"{norm:.2f}" for norm in norms))


def satimage(n=2000):
    folder = Path(os.environ.get("FLORAL_DATA", ""))
    stored = np.load(folder / "tables" / "satimage.npz")
    order = np.random.default_rng(0).permutation(len(stored["y"]))[:n]
    return StandardScaler().fit_transform(stored["X"][order].astype(float)), stored["y"][order]


def default_fits(busy):
    """Seconds of FloralClassifier() over those of SVC() at the same C and gamma; with another process on one core."""
    title = "The default beside SVC" + (", another process keeping one core busy" if busy else "")
    header(title, "data", "SVC", "FLORAL", "ratio", "ratio of CPU seconds", "goal", "rounds", "kernel")
    X, y, _ = mnist(10_000)
    flipped = y.copy()
    some = np.random.default_rng(0).permutation(len(y))[: len(y) // 10]
    flipped[some] = np.array([7, 1])[(y[some] == 7).astype(int)] if set(y) == {1, 7} else 1 - y[some]
    three = {"n_informative": 8, "n_classes": 3, "random_state": 0}
    easy = three | {"class_sep": 5.0, "flip_y": 0}
    cases = [
        ("Moon, 500 rows", *make_moons(500, noise=0.2, random_state=0), {}, 12.0, 15),
        ("satimage, 2,000 rows, six classes", *satimage(), {}, 6.0, 5),
        ("12,000 x 20, three easy classes", *make_classification(12_000, 20, **easy), {}, 5.0, 3),
        ("12,000 x 20, three classes", *make_classification(12_000, 20, **three), {}, 5.0, 1),
        ("50,000 x 20, three classes", *make_classification(50_000, 20, **three), {}, None, 1),
        ("MNIST 1 vs 7, 10,000 rows, clean", X, y, {"gamma": GAMMA}, 0.25, 1),
        ("MNIST 1 vs 7, 10,000 rows, 10 % flipped", X, flipped, {"gamma": GAMMA}, 0.03, 1),
    ]
    other = multiprocessing.get_context("spawn").Process(target=_spin, daemon=True)
    if busy:
        other.start()
        time.sleep(2)
    FloralClassifier(n_rounds=2, tol=None).fit(X[:200], y[:200])  # imports and thread pools
    for name, rows, labels, params, goal, repeat in cases:
        large = len(rows) > 20_000
        plain, floral = SVC(**params), FloralClassifier(random_state=0, **params)
        calls = (
            [partial(floral.fit, rows, labels)] if large else [partial(m.fit, rows, labels) for m in (plain, floral)]
        )
        wall, cpu = alternately(calls, repeat)
        beside = ("", "", "") if large else (f"{wall[0]:.3f} s", f"{wall[1] / wall[0]:.2f}", f"{cpu[1] / cpu[0]:.2f}")
        kernel = floral.gram_.split(", ")[0]
        row(name, beside[0], f"{wall[-1]:.3f} s", *beside[1:], goal or "", floral.n_iter_, kernel)
    if busy:
        other.terminate()


def _spin():
    while True:
        sum(range(10_000))


def several_classes(splits=3):
    """Accuracy against SVC on clean labels, same C and kernel."""
    header("Several classes, clean labels: accuracy minus SVC's", "data", "SVC", "pairs", "one-vs-rest")
    found = {}
    for seed in range(splits):
        sets = {
            "digits": load_digits(return_X_y=True),
            "wine": load_wine(return_X_y=True),
            "iris": load_iris(return_X_y=True),
            "satimage": satimage(4000),
            "nested": make_gaussian_quantiles(n_samples=3000, n_features=4, n_classes=3, random_state=seed),
            "100 blobs": make_blobs(3000, centers=100, cluster_std=0.2, center_box=(-50, 50), random_state=seed),
        }
        for name, (X, y) in sets.items():
            order = np.random.default_rng(seed).permutation(len(y))
            size = min(1000, int(0.6 * len(y)))
            train, test = order[:size], order[size : size + 1000]
            X = X if name == "100 blobs" else StandardScaler().fit(X[train]).transform(X)
            svc = SVC().fit(X[train], y[train]).score(X[test], y[test])
            scores = [svc]
            for how in ("pairs", "one-vs-rest"):
                clf = FloralClassifier(multi_class=how, random_state=seed).fit(X[train], y[train])
                scores.append(clf.score(X[test], y[test]) - svc)
            found.setdefault(name, []).append(scores)
    for name, values in found.items():
        svc, pairs, rest = np.mean(values, axis=0)
        row(name, f"{svc:.3f}", f"{pairs:+.4f}", f"{rest:+.4f}")
    means = np.mean([np.mean(values, axis=0) for values in found.values()], axis=0)
    row("mean", f"{means[0]:.3f}", f"{means[1]:+.4f}", f"{means[2]:+.4f}")


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
    row(f"{clock(lambda: FloralClassifier(gamma=1.0, budget=0.02, tol=None, random_state=0).fit(X, y), 9)[0]:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument(
        "--part",
        choices=["defaults", "beside", "rounds", "step"],
        help="accuracy and default fits, only the fits beside SVC, only rounds, or the step",
    )
    args = parser.parse_args()
    quick = args.quick
    print(f"{begin(trial=True).heading()}, Python {platform.python_version()}, numpy {np.__version__}")
    if args.part == "step":
        step_constants()
        return
    if args.part == "beside":
        default_fits(busy=False)
        return
    if args.part != "rounds":
        several_classes(1 if quick else 3)
        default_fits(busy=False)
        default_fits(busy=True)
    if args.part == "defaults":
        return
    moon()
    against_svc(2000 if quick else 10_000, 50 if quick else 500)
    dense_rounds(2000 if quick else 10_000, 5 if quick else 15)
    sizes = (4000, 8000) if quick else (10_000, 30_000, 100_000)
    rounds = 50 if quick else 500
    linear_growth(sizes, rounds, "low rank 256", engine=Engine(gram="low_rank", rank=256))
    linear_growth(sizes[-1:], rounds, "default settings")


if __name__ == "__main__":
    main()
