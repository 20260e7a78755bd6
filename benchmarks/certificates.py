"""Certificates measured, and the tables of docs/results/certificates.md.

    python benchmarks/certificates.py moon seven digits cifar

moon: 500 labels. seven: MNIST, ones against sevens. digits: MNIST, all ten, 20,000 labels drawn at random. cifar:
embeddings of CIFAR-10 (a file with X, y, X_test, y_test, named by --cifar). All settings are fixed rules; nothing is
chosen on these data.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_bench.reporting.making import begin
from floral_bench.reporting.tables import between_marks, grid
from floral_learn import CertifiedKernelClassifier, PartitionAggregationClassifier, load_moon
from floral_learn.certify import SpectralFeatures
from floral_learn.datasets.files import search_path
from floral_learn.paper import RandomizedSmoothingClassifier

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "certificates.md"
SHARES = (0.001, 0.005, 0.01, 0.02, 0.05)  # flipped labels, of the training rows
TOGETHER = (0.001, 0.005, 0.01)
ROWS, LABELS = 1_000, 20_000  # test rows and training labels, at most


def mnist():
    path = next(folder / "mnist.npz" for folder in search_path() if (folder / "mnist.npz").is_file())
    data = np.load(path)
    return data["x_train"] / 255.0, data["y_train"].astype(int), data["x_test"] / 255.0, data["y_test"].astype(int)


def load(name: str, cifar: Path | None):
    """Training rows and labels, test rows and labels."""
    if name == "moon":
        moon = load_moon(n_train=500, n_val=1, n_test=ROWS, random_state=0)
        return moon.X_train, moon.y_train, moon.X_test, moon.y_test
    if name == "cifar":
        data = np.load(cifar)
        return tuple(data[key].astype(float if "X" in key else int) for key in ("X", "y", "X_test", "y_test"))
    X, y, T, t = mnist()
    if name == "seven":
        some, asked = np.isin(y, (1, 7)), np.isin(t, (1, 7))
        X, y, T, t = X[some], y[some], T[asked], t[asked]
    rng = np.random.default_rng(0)
    chosen, used = rng.permutation(len(T))[:ROWS], rng.permutation(len(X))[:LABELS]
    return X[used], y[used], T[chosen], t[chosen]


def spectral(X, T, count: int):
    """Spectral features of rows and test rows, found on at most 5,000 rows."""
    few = np.random.default_rng(0).permutation(len(X))[:5_000]
    made = SpectralFeatures(count).fit(X[few])
    return made.transform(X), made.transform(T)


def methods(X, T, n_classes: int):
    """Name, model, rows and test rows."""
    yield "the majority", CertifiedKernelClassifier(kernel="linear"), 0.0 * X[:, :1], 0.0 * T[:, :1]
    yield "kernel ridge, exact", CertifiedKernelClassifier(), X, T
    slow, asked = spectral(X, T, 2 * n_classes)
    yield f"{2 * n_classes} spectral features, exact", CertifiedKernelClassifier(kernel="linear"), slow, asked
    ridge = CertifiedKernelClassifier()
    yield "10 parts of kernel ridge, white box", PartitionAggregationClassifier(ridge, n_partitions=10), X, T
    yield "50 parts of SVMs, black box", PartitionAggregationClassifier(SVC(), n_partitions=50), X, T
    yield "smoothing, rbf, q 0.1", RandomizedSmoothingClassifier(kernel="rbf"), X, T


def measure(name: str, cifar: Path | None, made: str) -> str:
    """Both tables of one data set."""
    X, y, T, t = load(name, cifar)
    X, T = (X, T) if X.max() <= 1.0 else [StandardScaler().fit(X).transform(rows) for rows in (X, T)]
    single, together = [], []
    for label, model, rows, asked in methods(X, T, len(set(y.tolist()))):
        start = time.perf_counter()
        model.fit(rows, y)
        fitted = time.perf_counter()
        flips, right = model.certified_flips(asked), model.predict(asked) == t
        done = time.perf_counter()
        kept = [(right & (flips >= int(share * len(y)))).mean() for share in SHARES]
        median = int(np.median(np.where(right, flips, -1)))
        seconds = f"{fitted - start:.1f} + {done - fitted:.1f} s"
        single.append([label, *(f"{share:.3f}" for share in (right.mean(), *kept)), f"{median:,}", seconds])
        print(name, single[-1], flush=True)
        if isinstance(model, CertifiedKernelClassifier) and label != "the majority":
            for share in TOGETHER:
                start = time.perf_counter()
                found = model.set_params(max_memory=2e9).collective_certificate(
                    asked, max(1, int(share * len(y))), t, time_limit=20.0
                )
                seconds = f"{time.perf_counter() - start:.1f} s"
                numbers = (found.flips, found.n_predictions, found.one_by_one, found.at_most, found.at_least)
                together.append([label, *(f"{number:,}" for number in numbers), seconds])
                print(name, together[-1], flush=True)
    made = f"{len(y):,} labels, {len(t):,} predictions; {made}."
    first = grid(["", "right", *(f"{100 * share:g} %" for share in SHARES), "median", "fit + certify"], single)
    head = ["", "flips", "right", "one by one", "at most", "at least", "time"]
    return f"{made}\n\n{first}\n\n{grid(head, together)}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=["moon", "seven", "digits", "cifar"])
    parser.add_argument("--cifar", type=Path)
    given = parser.parse_args()
    run = begin(trial=True)
    made = f"{run.started[:10]}, commit {run.environment.get('commit')}"
    for name in given.names:
        between_marks(PAGE, f"<!-- {name} -->\n", f"<!-- /{name} -->", measure(name, given.cifar, made))


if __name__ == "__main__":
    main()
