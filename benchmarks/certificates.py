"""Certificates measured: Moon beside other methods, ensembles, answers on six tables, the rule for the ridge.

    python benchmarks/certificates.py choose      the rule of ridge="auto", on four other tables
    python benchmarks/certificates.py moon        right and certified on Moon; settings chosen on other splits
    python benchmarks/certificates.py answers     certified accuracy after m answers, six tables
    python benchmarks/certificates.py page        docs/results/certificates.md from the rows of all parts

Rows go into docs/results/certificates/, one JSON file per part, with date, commit and command. Tables are read from
FLORAL_DATA. MNIST and times on a GPU are benchmarks/certificates_mnist.py.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_learn import (
    CertifiedKernelClassifier,
    PartitionAggregationClassifier,
    RandomizedSmoothingClassifier,
    load_moon,
)

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "results" / "certificates"
RADII = (0, 5, 10, 25, 50)
REPORTED, OTHERS = range(5), range(100, 105)  # splits of Moon: those of the page, and those that chose the settings
TABLES = ("banknote", "htru2", "magic04", "phoneme", "pima", "spambase")
CHOOSING = ("elec2", "a9a", "satimage", "students")
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1)  # flipped labels, of the training rows


def keep(part: str, rows: list[dict]) -> None:
    """Write what is known so far, whole or not at all."""
    ask = ["git", "-C", str(FOLDER.parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip()
    made = {"date": time.strftime("%Y-%m-%d"), "commit": commit, "command": f"python benchmarks/certificates.py {part}"}
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{part}.json"
    path.with_suffix(".part").write_text(json.dumps(made | {"rows": rows}, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".part").replace(path)


def table(name: str, seed: int, n: int = 1000, m: int = 1000):
    """Standardised training and test rows of a table: at most n and m, drawn by the seed."""
    stored = np.load(Path(os.environ["FLORAL_DATA"]) / "tables" / f"{name}.npz")
    X, y = stored["X"].astype(float), stored["y"].astype(int)
    order = np.random.default_rng(seed).permutation(len(X))
    n = min(n, 2 * len(X) // 3)
    train, test = order[:n], order[n : n + m]
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def choose() -> None:
    """Accuracy and certified accuracy at 1, 2 and 5 % for shares of n as ridge, gamma="scale"."""
    rows = []
    for name, share in product(CHOOSING, (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3)):
        found = []
        for seed in range(3):
            X, y, T, t = table(name, seed, m=500)
            clf = CertifiedKernelClassifier(ridge=share * len(X)).fit(X, y)
            found.append([clf.score(T, t), *clf.certified_accuracy(T, t, [int(s * len(X)) for s in SHARES[1:4]])])
        rows.append({"table": name, "share": share, "found": np.mean(found, axis=0).round(4).tolist()})
        print(rows[-1], flush=True)
    keep("choose", rows)


# --- Moon ------------------------------------------------------------------------------------------------------------


class FiniteAggregation:
    """Finite Aggregation (Wang, Levine, Feizi 2022): k d parts, each read by d of k d voters."""

    def __init__(self, estimator, k: int, d: int) -> None:
        self.estimator, self.k, self.d = estimator, k, d

    def fit(self, X, y):
        from sklearn.base import clone

        count = self.k * self.d
        rng = np.random.default_rng(0)
        order = np.lexsort(X.T[::-1])
        part = np.empty(len(X), dtype=int)
        part[order] = np.arange(len(X)) % count
        shifts = rng.choice(count, self.d, replace=False)
        self.readers = (np.arange(count)[:, None] + shifts) % count  # voters that read each part
        self.classes_, self.voters = np.unique(y), []
        for voter in range(count):
            rows = np.isin(part, np.flatnonzero((self.readers == voter).any(axis=1)))
            one = np.unique(y[rows])
            self.voters.append(one[0] if len(one) == 1 else clone(self.estimator).fit(X[rows], y[rows]))
        return self

    def certified_accuracy(self, X, y, radii):
        ballots = np.stack([v.predict(X) if hasattr(v, "predict") else np.full(len(X), v) for v in self.voters], 1)
        votes = np.stack([(ballots == c).sum(1) for c in self.classes_], 1)
        winner = votes.argmax(1)
        lead = votes.max(1) - votes.min(1) - (winner == 1)  # two classes, ties to the lower one
        hit = 2 * (ballots == self.classes_[winner][:, None])[:, self.readers].sum(2)  # what a part can take off
        taken = np.cumsum(-np.sort(-hit, axis=1), axis=1)
        flips = (taken <= lead[:, None]).sum(1)
        right = self.classes_[winner] == y
        return np.array([(right & (flips >= r)).mean() for r in radii])


def moon_settings() -> dict[str, dict[str, object]]:
    """family -> name -> maker."""
    kernel = {
        f"gamma {gamma:g}, ridge {ridge:g}": lambda g=gamma, r=ridge: CertifiedKernelClassifier(
            gamma=g, ridge=r, fit_intercept=False
        )
        for gamma, ridge in product((0.05, 0.1, 0.2, 0.5, 1.0, 2.0), (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0))
    }
    voters = {
        f"{parts} parts, gamma {gamma:g}, ridge {ridge:g}": lambda p=parts, g=gamma, r=ridge: (
            PartitionAggregationClassifier(
                CertifiedKernelClassifier(gamma=g, ridge=r, fit_intercept=False), n_partitions=p
            )
        )
        for parts, gamma, ridge in product((5, 15, 50), (0.1, 0.5, 1.0), (1.0, 10.0, 100.0))
    }
    return {
        "kernel ridge, exact": kernel,
        "partitions of kernel ridge, white box": voters,
        "partitions of SVMs, black box": {
            f"{parts} parts": lambda p=parts: PartitionAggregationClassifier(SVC(C=10.0, gamma=1.0), n_partitions=p)
            for parts in (10, 50, 100)
        },
        "finite aggregation of SVMs": {
            f"k {k}, d {d}": lambda k=k, d=d: FiniteAggregation(SVC(C=10.0, gamma=1.0), k, d)
            for k, d in ((50, 2), (100, 2))
        },
        "smoothing": {
            f"rbf, q {q}": lambda q=q: RandomizedSmoothingClassifier(q, kernel="rbf", gamma=1.0, ridge=1.0)
            for q in (0.1, 0.3)
        }
        | {"linear, q 0.1": lambda: RandomizedSmoothingClassifier(0.1)},
    }


def moon() -> None:
    """Right and certified on the test rows of Moon, standardised, clean labels; all settings on both sets of splits."""
    rows = []
    for family, settings in moon_settings().items():
        for name, make in settings.items():
            found = {}
            for kind, seeds in (("others", OTHERS), ("reported", REPORTED)):
                shares = []
                for seed in seeds:
                    data = load_moon(random_state=seed)
                    scaler = StandardScaler().fit(data.X_train)
                    clf = make().fit(scaler.transform(data.X_train), data.y_train)
                    shares.append(clf.certified_accuracy(scaler.transform(data.X_test), data.y_test, np.array(RADII)))
                found[kind] = np.mean(shares, axis=0).round(4).tolist()
            rows.append({"family": family, "setting": name, **found})
        print(family, len(settings), flush=True)
        keep("moon", rows)


# --- answers ---------------------------------------------------------------------------------------------------------


def answers() -> None:
    """Certified accuracy after m answers at random rows: labels and answers together, answers alone, and switched.

    Labels and answers together: one regression, answers are trusted, with weight 1 or 10 per answer. Answers alone:
    labels are not used, so that no flip matters. Switched: what answers alone say, unless the regression on the labels
    survives T flips or more; its certificate follows from the two (docs/results/certificates.md).
    """
    rows = []
    for name, draw in product(TABLES, range(5)):
        X, y, T, t = table(name, draw)
        n = len(X)
        radii = np.array([int(share * n) for share in SHARES])
        asked = np.random.default_rng(1000 + draw).permutation(n)
        for m in (0, 20, 50, 100):
            trusted = np.zeros(n, dtype=bool)
            trusted[asked[:m]] = True
            row = {"table": name, "draw": draw, "m": m, "n": n}
            for weight in (1.0, 10.0) if m else (1.0,):
                clf = CertifiedKernelClassifier().fit(
                    X, y, sample_weight=np.where(trusted, weight, 1.0), trusted=trusted
                )
                row[f"together, weight {weight:g}"] = clf.certified_accuracy(T, t, radii).tolist()
                if weight == 1.0:
                    labels, flips = clf.predict(T), clf.certified_flips(T)
            if m:
                told = np.unique(y[trusted])  # one class only: then that is all that the answers say
                few = CertifiedKernelClassifier() if len(told) > 1 else DummyClassifier()
                alone = few.fit(X[trusted], y[trusted]).predict(T)
                row["answers alone"] = [float((alone == t).mean())] * len(radii)
                for share in (0.02, 0.05, 0.1):
                    row[f"switched at {share:.0%}"] = switched(labels, flips, alone, t, int(share * n), radii)
            rows.append(row)
        print(rows[-1], flush=True)
        keep("answers", rows)


def switched(labels, flips, alone, truth, threshold: int, radii) -> list[float]:
    """Right and certified share of: the labels' model where it survives `threshold` flips or more, else answers alone.

    k flips move the number of flips that a row survives by at most k, and turn the row only where it survives fewer.
    So where both say the same, another answer needs the row turned and then threshold flips on the other side:
    flips + 1 + threshold. Where they differ, it needs to cross the threshold: flips + 1 - threshold from above,
    threshold - flips from below.
    """
    use = flips >= threshold
    prediction = np.where(use, labels, alone)
    above, below = flips - threshold, threshold - flips - 1
    certified = np.where(labels == alone, flips + threshold, np.where(use, above, below))
    return [float(((prediction == truth) & (certified >= r)).mean()) for r in radii]


# --- the page --------------------------------------------------------------------------------------------------------


def main() -> None:
    parts = {"choose": choose, "moon": moon, "answers": answers}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=[*parts])
    parts[parser.parse_args(sys.argv[1:]).part]()


if __name__ == "__main__":
    main()
