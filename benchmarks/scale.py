"""FLORAL on dask: n rows x 20, rank 128, on two local workers of 4 GiB; with --kill, one of them is killed on the way.

    OMP_NUM_THREADS=1 python benchmarks/scale.py --rows 5000000 [--kill]

Prints one line with seconds, the peak memory of this process and digests of flips and duals: with and without --kill
they must be the same.
"""

import argparse
import hashlib
import os
import resource
import signal
import time

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from floral_learn import FloralClassifier
from floral_learn.floral.dask_gram import DaskGram

KILLED_AT = 30  # the product with K before which a worker is killed


def rows_and_labels(n):
    """A curved boundary with noise, in twenty blocks that are made on the workers."""
    draw, chunk = da.random.RandomState(0), max(n // 20, 1000)
    X = draw.normal(size=(n, 20), chunks=(chunk, 20)).astype(np.float32)
    noise = 0.5 * draw.normal(size=n, chunks=chunk)
    return X, ((X[:, 0] + X[:, 1] ** 2 - 1 + noise) > 0).astype(int)


def digest(values):
    return hashlib.sha256(values.tobytes()).hexdigest()[:16]


def main(args):
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="4GiB", dashboard_address=":0")
    with cluster, Client(cluster) as client:
        product, times = DaskGram.matmat, []

        def watched(gram, columns):
            times.append(time.perf_counter())
            if args.kill and len(times) == KILLED_AT:
                os.kill(client.run(os.getpid)[min(client.scheduler_info(n_workers=-1)["workers"])], signal.SIGKILL)
            return product(gram, columns)

        DaskGram.matmat = watched
        X, y = rows_and_labels(args.rows)
        began = time.perf_counter()
        clf = FloralClassifier(gram=128, gamma=0.02, n_rounds=args.rounds, tol=None, random_state=0).fit(X, y)
        found = {
            "rows": args.rows,
            "killed": args.kill,
            "seconds": round(time.perf_counter() - began),
            "until the first product": round(times[0] - began),
            "products": len(times),
            "gram": clf.gram_,
            "flips": digest(np.sort(clf.history_["flips"], axis=1)),
            "duals": digest(clf.dual_coef_),
            "GB here": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        }
    print(found, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--kill", action="store_true")
    main(parser.parse_args())
