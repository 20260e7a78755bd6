"""How a fit grows with the rows on one machine, what a dask cluster adds to a round, and rounds on one GPU.

    python benchmarks/scale.py cpu --rows 10000 100000 1000000
    python benchmarks/scale.py dask --workers 1 2 4
    python benchmarks/scale.py gpu [--quick]

Prints Markdown. On CPUs each size runs in a process of its own, so that its peak memory is its own; features lie in a
.npy file and are read in blocks. Rounds are timed one by one and reported by their median: on a shared machine the mean
says more about the neighbours. CPU seconds (of the process, all threads) are what the work costs on a quiet machine. On
a GPU bytes of a dense round count K once, and the ceiling is a device-to-device copy in the same run, counting bytes
read and written; the data are a mixture of two Gaussians, d = 100. That rounds there are those of numpy is tested in
tests/game/test_cuda.py.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from floral_bench.reporting.making import begin
from floral_learn import FloralClassifier
from floral_learn.floral.settings import Engine

BLOCK = 50_000


def grid(title, head, lines):
    """A table whose lines are printed as they come."""
    print(f"\n{title}\n\n| " + " | ".join(head) + " |\n|" + "---:|" * len(head))
    for line in lines:
        print("| " + " | ".join(map(str, line)) + " |", flush=True)


# --- CPUs -------------------------------------------------------------------------------------------------------------


class Clock:
    """Callback that notes when each round ended."""

    def __init__(self):
        self.times, self.busy = [], []

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.times.append(time.perf_counter())
        self.busy.append(time.process_time())

    def teardown(self, estimator, context):
        pass


def rows_and_labels(rng, count, width):
    """A curved boundary between two classes, 5 % of the labels wrong."""
    X = rng.standard_normal(size=(count, width), dtype=np.float32)
    y = (X[:, 0] + 0.5 * (X[:, 1] ** 2 - 1) > 0).astype(np.int64)
    return X, np.where(rng.random(count) < 0.05, 1 - y, y)


def model(args, **engine):
    engine = Engine(gram="low_rank", rank=args.rank, dtype="float32", **engine)
    settings = {"gamma": 0.1 / args.features, "budget": 0.02, "n_rounds": args.rounds}
    return FloralClassifier(**settings, engine=engine, random_state=0)


def one(args):
    """Seconds and peak memory of one fit and one prediction, in this process."""
    n, rng, clock = args.rows[0], np.random.default_rng(0), Clock()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path, y = Path(folder) / "X.npy", np.empty(n, dtype=np.int64)
        X = np.lib.format.open_memmap(path, "w+", np.float32, (n, args.features))
        for start in range(0, n, BLOCK):
            part = slice(start, min(start + BLOCK, n))
            X[part], y[part] = rows_and_labels(rng, part.stop - start, args.features)
        X.flush()
        began, busy = time.perf_counter(), time.process_time()
        clf = model(args, max_memory="6GB").set_callbacks(clock).fit(path, y)
        fit, fit_cpu = time.perf_counter() - began, time.process_time() - busy
        clf.predict(path)
    found = {"n": n, "fit": fit, "fit_cpu": fit_cpu, "build_cpu": clock.busy[0] - busy}
    found |= {"round_ms": 1000 * float(np.median(np.diff(clock.times)))}
    found |= {"round_cpu_ms": 1000 * float(np.median(np.diff(clock.busy)))}
    found |= {"predict_cpu": time.process_time() - busy - fit_cpu}
    print(json.dumps(found | {"peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}))


def cpu(args):
    rows = []

    def lines():
        for n in args.rows:
            command = [sys.executable, __file__, "one", "--rows", str(n), "--rank", str(args.rank)]
            command += ["--rounds", str(args.rounds), "--features", str(args.features)]
            command += ["--folder", args.folder] if args.folder else []
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            rows.append(r := json.loads(done.stdout.splitlines()[-1]))
            yield (
                f"{n:,}", *(f"{r[name]:.1f}" for name in ("fit", "round_ms", "fit_cpu", "build_cpu", "round_cpu_ms")),
                f"{r['predict_cpu']:.1f}", f"{r['peak_gib']:.2f}",
            )  # fmt: skip

    title = f"rank {args.rank}, {args.features} features, {args.rounds} rounds, float32, X read in blocks from a file"
    head = ["rows", "fit (s)", "a round (ms)", "fit (CPU s)", "of it factor", "a round (CPU ms)"]
    grid(title, [*head, "predict all rows (CPU s)", "peak memory (GiB)"], lines())
    if len(rows) > 1:
        low, high = rows[-2:]
        for name, what in (("fit_cpu", "CPU seconds of a fit"), ("round_cpu_ms", "a round"), ("peak_gib", "memory")):
            slope = np.log(high[name] / low[name]) / np.log(high["n"] / low["n"])
            print(f"\nSlope of {what} from {low['n']:,} to {high['n']:,} rows (1 is linear): {slope:.2f}")


def dask_cluster(args):
    import dask.array as da
    from dask.distributed import Client, LocalCluster

    def lines():
        for workers in args.workers:
            options = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
            with LocalCluster(**options) as cluster, Client(cluster):
                for n in (1000 * workers, args.dask_rows):
                    X, y = rows_and_labels(np.random.default_rng(0), n, args.features)
                    chunk, clock = -(-n // (2 * workers)), Clock()
                    parts = da.from_array(X, chunks=(chunk, args.features)), da.from_array(y, chunks=chunk)
                    clf = model(args).set_callbacks(clock).fit(*parts)
                    passes = float(clf.history_["projection_iterations"].mean())
                    each = 1000 * float(np.median(np.diff(clock.times)))
                    exchanges = passes + 2  # candidates, product, and one a pass (the first one rides on the step)
                    cost = f"{each / exchanges:.2f}" if n == 1000 * workers else ""
                    yield workers, f"{n:,}", f"{each:.1f}", f"{passes:.1f}", f"{exchanges:.1f}", cost

    title = f"rank {args.rank}, {args.features} features, float32, LocalCluster of processes with one thread each"
    head = ["workers", "rows", "a round (ms)", "passes of the projection", "exchanges a round", "ms an exchange"]
    grid(title, head, lines())


# --- one GPU ----------------------------------------------------------------------------------------------------------

C, GAMMA = 10.0, 0.005


def gpu(args):
    import torch
    from sklearn.svm import SVC

    from floral_learn.game.attackers import RandomizedTopK
    from floral_learn.game.game import Game, solve, step_schedule
    from floral_learn.game.gram import DenseGram
    from floral_learn.game.kernels import Kernel
    from floral_learn.game.low_rank import LowRankGram
    from floral_learn.game.torch_arrays import TorchBackend

    device, kernel, quick = TorchBackend("cuda"), Kernel("rbf", gamma=GAMMA), args.quick

    def seconds(call, repeat=3):
        times = []
        for _ in range(repeat):
            torch.cuda.synchronize()
            began = time.perf_counter()
            call()
            torch.cuda.synchronize()
            times.append(time.perf_counter() - began)
        return float(np.median(times))

    def copy_rate():
        source = torch.randn(2**30, device="cuda")
        target = torch.empty_like(source)
        return 2 * source.nbytes / seconds(lambda: target.copy_(source), 20)

    def data(n, d=100, seed=0):
        """Drawn on the device: ten million rows take a minute on the host; the same centres for all seeds."""
        random = torch.Generator("cuda").manual_seed(seed)
        centres = torch.as_tensor(np.random.default_rng(99).normal(size=(2, d), scale=0.35), device="cuda").float()
        y = torch.randint(0, 2, (n,), generator=random, device="cuda")
        X = torch.randn((n, d), generator=random, device="cuda")
        for start in range(0, n, 2**20):
            X[start : start + 2**20] += centres[y[start : start + 2**20]]
        flipped = torch.rand(n, generator=random, device="cuda") < 0.05
        return X, torch.where(flipped, 1 - y, y).cpu().numpy()

    def play(gram, y, rounds, games=1, eta=None):
        eta = 1 / gram.lambda_max(centred=True) if eta is None else eta
        attacker = RandomizedTopK(gram.n // 50, gram.n // 100)
        steps = step_schedule(np.full(games, eta), rounds)
        return solve(Game(gram, y, np.full(gram.n, C), steps, attacker, seeds=np.arange(games)))

    def a_round(gram, y, rounds, games=1):
        """A round in the middle of a game: what more rounds take, over their number."""
        eta = 1 / gram.lambda_max(centred=True)
        play(gram, y, 30, games, eta)  # compiles the kernels
        few, many = (seconds(lambda r=r: play(gram, y, r, games, eta)) for r in (30, 30 + rounds))
        return (many - few) / rounds

    def dense(n, rounds):
        X, y = data(n)
        build = seconds(lambda: DenseGram.from_rows(X, kernel, "float32", device), 1)
        gram = DenseGram.from_rows(X, kernel, "float32", device)
        each, ten = a_round(gram, y, rounds), a_round(gram, y, max(20, rounds // 2), 10)
        V = torch.randn(2, n, device="cuda", dtype=torch.float64).T
        alone, rate = seconds(lambda: gram.matmat(V), 20), gram.nbytes / each
        return (
            f"{n:,}", f"{gram.nbytes / 1e9:.1f}", f"{build:.2f}", f"{1e3 * alone:.2f}", f"{1e3 * each:.2f}",
            f"{1 / each:,.0f}", f"{rate / 1e12:.2f}", f"{rate / ceiling:.0%}", f"{1e3 * ten:.2f}",
        )  # fmt: skip

    def low_rank(n, rounds):
        X, y = data(n)
        make = lambda: LowRankGram(X, kernel, 256, 0.0, np.random.default_rng(0), "float32", device)  # noqa: E731
        build, gram = seconds(make, 1), make()
        V = torch.randn(2, n, device="cuda", dtype=torch.float64).T
        alone, each = seconds(lambda: gram.matmat(V), 20), a_round(gram, y, rounds)
        rate = 2 * gram.nbytes / each
        return (
            f"{n:,}", f"{gram.nbytes / 1e9:.2f}", f"{build:.1f}", f"{1e3 * alone:.2f}", f"{1e3 * each:.2f}",
            f"{1 / each:,.0f}", f"{rate / 1e12:.2f}", f"{rate / ceiling:.0%}",
        )  # fmt: skip

    def whole_fits(n):
        X, y = data(n)
        gram = DenseGram.from_rows(X, kernel, "float32", device)
        X, T = X.cpu().numpy(), data(10_000, seed=1)[0].cpu().numpy()
        where = {"on the GPU": {"device": "cuda"}, "on the CPU": {}}
        engines = {"dense on the GPU": Engine(gram="dense", device="cuda")} | {
            f"low rank {place}": Engine(gram="low_rank", rank=256, **option) for place, option in where.items()
        }
        settings = {"C": C, "gamma": GAMMA, "budget": 0.02, "tol": None, "random_state": 0}
        FloralClassifier(n_rounds=30, engine=engines["dense on the GPU"], **settings).fit(X, y)  # compiles
        models = {f"FLORAL {name}, 1,000 rounds": FloralClassifier(n_rounds=1000, engine=engine, **settings)
                  for name, engine in engines.items()}  # fmt: skip
        first = None
        for name, clf in (models | {"scikit-learn SVC on the CPU": SVC(C=C, gamma=GAMMA)}).items():
            began = time.perf_counter()
            clf.fit(X, y)
            spent, found = time.perf_counter() - began, clf.predict(T)
            first = found if first is None else first
            yield name, f"{spent:.2f}", f"{np.mean(found == first):.4f}"
        yield "ten dense games of 500 rounds in one batch", f"{seconds(lambda: play(gram, y, 500, 10)):.2f}", ""

    print(f"\n{torch.cuda.get_device_name()}, torch {torch.__version__}")
    ceiling = copy_rate()
    print(f"\nDevice-to-device copy: {ceiling / 1e12:.2f} TB/s (bytes read and written)")
    common = ["build s", "product alone, ms", "ms a round", "rounds/s"]
    head = ["n", "K GB", *common, "TB/s of K", "share of copy", "10 games, ms a round"]
    sizes = (10_000, 20_000) if quick else (10_000, 20_000, 50_000, 100_000)
    grid("Dense games, float32", head, (dense(n, 20 if quick else 100) for n in sizes))
    head = ["n", "factor GB", *common, "TB/s of F (read twice)", "share of copy"]
    sizes = (100_000,) if quick else (1_000_000, 10_000_000)
    grid("Low-rank games, rank 256, float32", head, (low_rank(n, 10 if quick else 200) for n in sizes))
    n = 4000 if quick else 20_000
    head = ["what", "s", "same predictions as the first, 10,000 rows"]
    grid(f"Whole fits, n = {n:,}, d = 100", head, whole_fits(n))


def main():
    parts = {"cpu": cpu, "dask": dask_cluster, "gpu": gpu, "one": one}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=parts)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--dask-rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--rank", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--folder", help="where to write the features (default: the temporary folder)")
    parser.add_argument("--quick", action="store_true", help="gpu: small sizes")
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if args.part != "one":
        print(f"{begin(trial=True).heading()}; BLAS threads: {os.environ.get('OMP_NUM_THREADS', 'all')}")
    parts[args.part](args)


if __name__ == "__main__":
    main()
