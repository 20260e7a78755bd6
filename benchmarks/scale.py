"""How a fit grows with the rows on one machine, and what a dask cluster adds to a round.

    python benchmarks/scale.py cpu --rows 10000 100000 1000000
    python benchmarks/scale.py dask --workers 1 2 4

Each size of the first runs in a process of its own, so that its peak memory is its own; features lie in a .npy file
and are read in blocks. Rounds are timed one by one and reported by their median: on a shared machine the mean says
more about the neighbours. CPU seconds (of the process, all threads) are what the work costs on a quiet machine.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from floral_learn import Engine, FloralClassifier

BLOCK = 50_000


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


def features(rng, count, width):
    return rng.standard_normal(size=(count, width), dtype=np.float32)


def labels_of(X, rng):
    """A curved boundary between two classes, 5 % of the labels wrong."""
    y = (X[:, 0] + 0.5 * (X[:, 1] ** 2 - 1) > 0).astype(np.int64)
    wrong = rng.random(len(y)) < 0.05
    return np.where(wrong, 1 - y, y)


def write_data(path, n, width):
    """X in a .npy file, written in blocks, and y."""
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n, width))
    y = np.empty(n, dtype=np.int64)
    for start in range(0, n, BLOCK):
        block = features(rng, min(BLOCK, n - start), width)
        X[start : start + len(block)], y[start : start + len(block)] = block, labels_of(block, rng)
    X.flush()
    return y


def model(args, engine=None, **kw):
    params = {"gamma": 0.1 / args.features, "budget": 0.02, "n_rounds": args.rounds}
    engine = Engine(gram="low_rank", rank=args.rank, dtype="float32", **engine or {})
    return FloralClassifier(**params | kw, engine=engine)


def one_size(args, n):
    """Seconds and peak memory of one fit and one prediction, in this process."""
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = Path(folder) / "X.npy"
        y = write_data(path, n, args.features)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        clock, began, busy = Clock(), time.perf_counter(), time.process_time()
        clf = model(args, {"max_memory": "6GB"}, random_state=0).set_callbacks(clock).fit(path, y)
        fitted, busy_fit = time.perf_counter(), time.process_time() - busy
        clf.predict(path)
        predicted = time.perf_counter()
    rounds = np.diff(clock.times)
    return {
        "n": n,
        "fit": fitted - began,
        "fit_cpu": busy_fit,
        "build_cpu": clock.busy[0] - busy,
        "round_ms": 1000 * float(np.median(rounds)),
        "round_cpu_ms": 1000 * float(np.median(np.diff(clock.busy))),
        "predict_cpu": time.process_time() - busy - busy_fit,
        "predict": predicted - fitted,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "start_gib": before / 2**20,
        "gram": clf.gram_,
    }


def cpu(args):
    rows = []
    for n in args.rows:
        command = [sys.executable, __file__, "one", "--rows", str(n), "--rank", str(args.rank)]
        command += ["--rounds", str(args.rounds), "--features", str(args.features)]
        command += ["--folder", args.folder] if args.folder else []
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(rows[-1]["n"], f"{rows[-1]['fit']:.1f} s", file=sys.stderr)
    out = [
        f"rank {args.rank}, {args.features} features, {args.rounds} rounds, float32, X read in blocks from a .npy file",
        "",
        "| rows | fit (s) | a round (ms) | fit (CPU s) | of it factor | a round (CPU ms) | predict all rows (CPU s) "
        "| peak memory (GiB) |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    out += [
        f"| {r['n']:,} | {r['fit']:.1f} | {r['round_ms']:.1f} | {r['fit_cpu']:.1f} | {r['build_cpu']:.1f} "
        f"| {r['round_cpu_ms']:.1f} | {r['predict_cpu']:.1f} | {r['peak_gib']:.2f} |"
        for r in rows
    ]
    if len(rows) > 1:
        for name, what in (("fit_cpu", "CPU seconds of a fit"), ("round_cpu_ms", "a round"), ("peak_gib", "memory")):
            low, high = rows[-2], rows[-1]
            slope = np.log(high[name] / low[name]) / np.log(high["n"] / low["n"])
            out += ["", f"Slope of {what} from {low['n']:,} to {high['n']:,} rows (1 is linear): {slope:.2f}"]
    return out


def dask_cluster(args):
    import dask.array as da
    from dask.distributed import Client, LocalCluster

    out = [
        f"rank {args.rank}, {args.features} features, float32, LocalCluster of processes with one thread each, "
        f"{os.cpu_count()} cores",
        "",
        "| workers | rows | a round (ms) | passes of the projection | exchanges a round | ms an exchange |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for workers in args.workers:
        options = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        with LocalCluster(**options) as cluster, Client(cluster):
            for n in (1000 * workers, args.dask_rows):
                rng = np.random.default_rng(0)
                X = features(rng, n, args.features)
                chunk = -(-n // (2 * workers))
                parts = da.from_array(X, chunks=(chunk, args.features)), da.from_array(labels_of(X, rng), chunks=chunk)
                clock = Clock()
                clf = model(args, random_state=0).set_callbacks(clock).fit(*parts)
                passes = float(clf.history_["projection_iterations"].mean())
                each = 1000 * float(np.median(np.diff(clock.times)))
                exchanges = passes + 2  # candidates, product, and one a pass (the first one rides on the step)
                small = n == 1000 * workers
                cost = f"{each / exchanges:.2f}" if small else ""
                out.append(f"| {workers} | {n:,} | {each:.1f} | {passes:.1f} | {exchanges:.1f} | {cost} |")
                print(out[-1], file=sys.stderr)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("cpu", "dask", "one"))
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--dask-rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--rank", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--folder", help="where to write the features (default: the temporary folder)")
    args = parser.parse_args()
    if args.part == "one":
        print(json.dumps(one_size(args, args.rows[0])))
        return
    lines = cpu(args) if args.part == "cpu" else dask_cluster(args)
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    print(
        f"\nPython {platform.python_version()}, numpy {np.__version__}, {os.cpu_count()} cores, BLAS threads: {threads}"
    )
    print("\n".join(["", *lines]))


if __name__ == "__main__":
    main()
