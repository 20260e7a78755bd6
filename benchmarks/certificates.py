"""Certificates measured: Moon beside other methods, ensembles, answers on six tables, the rule for the ridge.

    python benchmarks/certificates.py choose      the rule of ridge="auto", on four other tables
    python benchmarks/certificates.py moon        right and certified on Moon; settings chosen on other splits
    python benchmarks/certificates.py tables      six tables: kernel ridge, spectral features, partitions, smoothing
    python benchmarks/certificates.py answers     certified accuracy after m answers, six tables
    python benchmarks/certificates.py page        docs/results/certificates.md from the rows of all parts

Rows go into docs/results/certificates/, one JSON file per part, with date, commit and command. Tables are read from
FLORAL_DATA. MNIST and times on a GPU are benchmarks/certificates_mnist.py.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_bench.reporting.making import begin
from floral_learn import (
    CertifiedKernelClassifier,
    PartitionAggregationClassifier,
    RandomizedSmoothingClassifier,
    load_moon,
)
from floral_learn.certify import SpectralFeatures

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "results" / "certificates"
RADII = (0, 5, 10, 25, 50)
REPORTED, OTHERS = range(5), range(100, 105)  # splits of Moon: those of the page, and those that chose the settings
TABLES = ("banknote", "htru2", "magic04", "phoneme", "pima", "spambase")
CHOOSING = ("elec2", "a9a", "satimage", "students")
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1)  # flipped labels, of the training rows


def keep(part: str, rows: list[dict]) -> None:
    """Write what is known so far, whole or not at all."""
    run = begin(trial=True)
    made = {"date": run.started[:10], "commit": run.environment.get("commit", "unknown"), "command": run.command}
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


class Spectral:
    """Spectral features, and a certified linear regression on them."""

    def __init__(self, features, ridge: str | float = 1.0, intercept: bool = True) -> None:
        self.features, self.ridge, self.intercept = features, ridge, intercept

    def fit(self, X, y):
        made = self.features.fit_transform(X)
        linear = CertifiedKernelClassifier(kernel="linear", ridge=self.ridge, fit_intercept=self.intercept)
        self.model = linear.fit(made, y)
        return self

    def certified_accuracy(self, X, y, radii):
        return self.model.certified_accuracy(self.features.transform(X), y, radii)


class Majority:
    """The more frequent label, whatever the row: turned once half of its lead is flipped (two classes)."""

    def fit(self, X, y):
        classes, counts = np.unique(y, return_counts=True)
        self.label, self.lead = classes[counts.argmax()], counts.max() - counts.min()
        return self

    def certified_accuracy(self, X, y, radii):
        return np.array([(y == self.label).mean() if 2 * r < self.lead else 0.0 for r in radii])


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
        **{
            f"spectral features, exact, {'with' if intercept else 'without'} intercept": {
                f"{r} features, gamma {gamma:g}": lambda r=r, g=gamma, i=intercept: Spectral(
                    SpectralFeatures(r, gamma=g), intercept=i
                )
                for r, gamma in product((2, 3, 4, 6, 8, 12, 16), (4.0, 8.0, 16.0))
            }
            for intercept in (True, False)
        },
        "partitions of SVMs, black box": {
            f"{parts} parts": lambda p=parts: PartitionAggregationClassifier(SVC(C=10.0, gamma=1.0), n_partitions=p)
            for parts in (10, 50, 100)
        },
        "finite aggregation of SVMs": {
            f"k {k}, d {d}": lambda k=k, d=d: FiniteAggregation(SVC(C=10.0, gamma=1.0), k, d)
            for k, d in ((25, 2), (50, 2))
        },
        "smoothing": {
            f"rbf, q {q}": lambda q=q: RandomizedSmoothingClassifier(q, kernel="rbf", gamma=1.0, ridge=1.0)
            for q in (0.1, 0.3)
        }
        | {"linear, q 0.1": lambda: RandomizedSmoothingClassifier(0.1)},
    }


def moon(only: str = "") -> None:
    """Right and certified on the test rows of Moon, standardised, clean labels; all settings on both sets of splits."""
    rows = json.loads((FOLDER / "moon.json").read_text("utf-8"))["rows"] if only else []
    commit = begin(trial=True).environment.get("commit", "unknown")
    for family, settings in moon_settings().items():
        if not family.startswith(only):
            continue
        rows = [row for row in rows if row["family"] != family]
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
            rows.append({"family": family, "setting": name, "commit": commit, **found})
        print(family, len(settings), flush=True)
        keep("moon", rows)


def tables() -> None:
    """Right and certified at shares of flipped labels, five draws of each table; every method by a fixed rule."""
    methods = {
        "SVC, no certificate": lambda n: SVC(),
        "the majority": lambda n: Majority(),
        "kernel ridge, exact": lambda n: CertifiedKernelClassifier(),
        **{f"{r} spectral features, exact": lambda n, r=r: Spectral(SpectralFeatures(r), "auto") for r in (4, 8, 16)},
        "partitions, 50 SVMs": lambda n: PartitionAggregationClassifier(SVC(), n_partitions=50),
        "smoothing, rbf, q 0.1": lambda n: RandomizedSmoothingClassifier(0.1, kernel="rbf", ridge=0.02 * n),
    }
    rows = []
    for name, draw in product(TABLES, range(5)):
        X, y, T, t = table(name, draw)
        radii = np.array([int(share * len(X)) for share in SHARES])
        for method, make in methods.items():
            clf = make(len(X)).fit(X, y)
            certified = hasattr(clf, "certified_accuracy")
            found = clf.certified_accuracy(T, t, radii).round(4).tolist() if certified else [clf.score(T, t)]
            rows.append({"table": name, "draw": draw, "method": method, "found": found})
        print(name, draw, flush=True)
        keep("tables", rows)


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


def read(part: str) -> list[dict]:
    """Rows of a part."""
    return json.loads((FOLDER / f"{part}.json").read_text("utf-8"))["rows"]


def grid(head: list[str], rows: list[list]) -> str:
    """A Markdown table; numbers between 0 and 1 with three digits."""
    cell = lambda value: f"{value:.3f}" if isinstance(value, float) else str(value)  # noqa: E731
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(map(cell, row)) + " |" for row in rows)])


def moon_tables() -> str:
    families: dict[str, list[dict]] = {}
    for row in read("moon"):
        families.setdefault(row["family"], []).append(row)
    each, chosen, one = [], [], []
    for family, rows in families.items():
        best = [max(rows, key=lambda row, c=c: row["others"][c]) for c in range(len(RADII))]
        each.append([family, *(row["reported"][c] for c, row in enumerate(best))])
        chosen.append(f"{family}: " + "; ".join(f"{r} flips {row['setting']}" for r, row in zip(RADII, best)))
        single = max(rows, key=lambda row: sum(row["others"][1:]))
        one.append([f"{family}: {single['setting']}", *single["reported"]])
    head = [f"{r} flips" for r in RADII]
    settings = "\n".join(f"- {line}" for line in chosen)
    return (
        f"{grid(['a setting per column', *head], each)}\n\n"
        "One setting for all columns, that with the largest sum over 5 to 50 flips on the other splits:\n\n"
        f"{grid(['one setting', *head], one)}\n\nSettings of the first table:\n\n{settings}"
    )


def six_tables() -> str:
    rows, out = read("tables"), []
    methods = list(dict.fromkeys(row["method"] for row in rows))
    for place, share in enumerate(SHARES):
        lines = []
        for method in methods:
            means = [
                float(np.mean([r["found"][place] for r in rows if r["table"] == name and r["method"] == method]))
                for name in TABLES
                if not (place and method.startswith("SVC"))
            ]
            if means:
                lines.append([method, *means, float(np.mean(means)), float(np.median(means))])
        out.append(grid([f"{share:.0%} of the labels flipped", *TABLES, "mean", "median"], lines))
    return "\n\n".join(out)


def answer_tables() -> str:
    rows, out = read("answers"), []
    kinds = [key for key in rows[1] if key not in ("table", "draw", "m", "n")]
    for m in (0, 20, 50, 100):
        lines = []
        for kind in kinds:
            own = [row[kind] for row in rows if row["m"] == m and kind in row]
            if own:
                lines.append([kind, *(float(v) for v in np.mean(own, axis=0))])
        out.append(grid([f"{m} answers", *(f"{share:.0%} flipped" for share in SHARES)], lines))
    wins, pairs = dict.fromkeys(kinds, 0), 0
    margin = []
    for name, m in product(TABLES, (20, 50, 100)):
        means = {
            kind: float(np.mean([row[kind][2] for row in rows if row["table"] == name and row["m"] == m]))
            for kind in kinds
        }
        wins[max(means, key=means.get)] += 1
        margin.append(max(v for k, v in means.items() if k.startswith("switched")) - means["answers alone"])
        pairs += 1
    told = ", ".join(f"{kind} {count}" for kind, count in wins.items() if count)
    out.append(
        f"Highest at 2 % flipped labels, of {pairs} pairs of a table and a number of answers (equal ones count for the "
        f"first named): {told}. The best switch is {min(margin):+.3f} to {max(margin):+.3f} from answers alone."
    )
    per_table = [
        [
            f"{name}, {m} answers",
            *(
                float(np.mean([row[kind][2] for row in rows if row["table"] == name and row["m"] == m]))
                for kind in kinds
            ),
        ]
        for name, m in product(TABLES, (20, 50, 100))
    ]
    out.append(grid(["at 2 % flipped labels", *kinds], per_table))
    return "\n\n".join(out)


def mnist_table() -> str:
    rows = read("mnist")
    levels = rows[0]["levels"]
    shown = [levels.index(level) for level in (100, 200, 600, 1000, 2000)]
    names = list(dict.fromkeys(row["features"] for row in rows))
    lines = []
    for name in names:
        own = [row for row in rows if row["features"] == name]
        mean = lambda key, own=own: [float(v) for v in np.atleast_1d(np.mean([row[key] for row in own], axis=0))]  # noqa: E731
        spread = " / ".join(f"{row['median']:,}" for row in own)
        certified = mean("certified")
        lines.append([name, mean("accuracy")[0], spread, *(certified[i] for i in shown)])
    return grid(["features", "accuracy", "flips that half survive", *(f"at {levels[i]:,}" for i in shown)], lines)


def speed_table() -> str:
    lines = []
    for part, where in (("speed_gpu", "H200"), ("speed_cpu", "2 cores")):
        for row in read(part):
            options = ", ".join(f"{k}={v}" for k, v in row["options"].items() if k != "device") or "defaults"
            size = f"{row['labels']:,} x {row['predictions']:,}"
            lines.append(
                [
                    size,
                    where,
                    options,
                    f"{row['fit_s']:.1f} s",
                    f"{row['certify_s']:.1f} s",
                    f"{row['peak_gib']:.1f} GiB",
                ]
            )
    return grid(["labels x predictions", "where", "options", "fit", "certify", "peak memory"], lines)


def ridge_table() -> str:
    rows = read("choose")
    shares = list(dict.fromkeys(row["share"] for row in rows))
    lines = []
    for share in shares:
        found = np.mean([row["found"] for row in rows if row["share"] == share], axis=0)
        lines.append([f"{share:g} n", *(float(v) for v in found)])
    return grid(["ridge", "accuracy", "1 % flipped", "2 %", "5 %"], lines)


def page() -> None:
    """docs/results/certificates.md: the words of benchmarks/certificates_page.md with a table for each {name}."""
    words = Path(__file__).with_name("certificates_page.md").read_text("utf-8")
    runs = []
    for part in ("moon", "tables", "answers", "choose", "mnist", "speed_gpu", "speed_cpu"):
        made = json.loads((FOLDER / f"{part}.json").read_text("utf-8"))
        command = (
            made.get("command")
            or f"python benchmarks/certificates_mnist.py {'mnist' if part == 'mnist' else 'speed'} --out out"
        )
        if part == "moon":
            made["commit"] = ", ".join(sorted({row.get("commit", made["commit"]) for row in made["rows"]}))
            command = "python benchmarks/certificates.py moon"
        runs.append(f"- {part}: {made['date']}, commit {made['commit']}, `{command}`")
    parts = {
        "runs": "\n".join(runs), "moon": moon_tables(), "tables": six_tables(), "answers": answer_tables(),
        "mnist": mnist_table(), "speed": speed_table(), "ridge": ridge_table(),
    }  # fmt: skip
    for name, text in parts.items():
        words = words.replace("{" + name + "}", text)
    (FOLDER.parent / "certificates.md").write_text(words, encoding="utf-8")


def main() -> None:
    parts = {"choose": choose, "moon": moon, "tables": tables, "answers": answers, "page": page}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=[*parts])
    parser.add_argument("--only", default="", help="moon: run the families whose names begin so, keep the others' rows")
    given = parser.parse_args(sys.argv[1:])
    if given.part == "moon":
        moon(given.only)
    else:
        parts[given.part]()


if __name__ == "__main__":
    main()
