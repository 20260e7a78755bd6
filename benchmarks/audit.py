"""How well planted errors are found and flagged: the audit beside cleanlab on the same held-out probabilities.

python benchmarks/audit.py flags --data judged --cache DIR    cells of the data sets as CSV, in DIR (resumable)
python benchmarks/audit.py table --data judged --cache DIR    the tables of docs/results/audit.md
python benchmarks/audit.py recovery                           docs/images/audit_recovery.png
python benchmarks/audit.py stability                          the lemmas' bounds, docs/images/audit_stability.png

The rule was chosen on `design` and `overlap` (what scikit-learn ships or makes); `judged` (real tables, MNIST) reports.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn import datasets as shipped
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_bench.recovery import RecoveryDisplay, recovery
from floral_bench.reporting.making import begin
from floral_bench.stability import stability, summarise
from floral_learn import FloralClassifier, load_moon, poison
from floral_learn.audit import audit
from floral_learn.datasets import DataNotFoundError, load_mnist
from floral_learn.datasets.files import search_path

LEVELS = (5, 10, 15, 20)
ATTACKS = ("random", "class-biased", "farthest", "near-boundary", "near-boundary-rbf")
TABLES = ("pima", "phoneme", "spambase", "htru2", "banknote", "magic04", "satimage")
MOST_ROWS = 1000
COLUMNS = ("data", "attack", "level", "rows", "wrong", "auc", "apart", "informative", "flagged", "hit", "cleanlab",
           "cleanlab_hit", "seconds")  # fmt: skip
DOCS = Path(__file__).resolve().parents[1] / "docs"


def standardised(pair):
    X, y = pair
    return StandardScaler().fit_transform(X), np.unique(y, return_inverse=True)[1]


def design():
    """What scikit-learn ships, and made-up sets whose classes hardly overlap."""
    X, y = shipped.load_digits(return_X_y=True)
    some = np.random.default_rng(0).permutation(len(y))[:900]
    return {
        "digits": (X / 16, y),
        "digits, odd or even": (X[some] / 16, y[some] % 2),
        "breast cancer": standardised(shipped.load_breast_cancer(return_X_y=True)),
        "wine": standardised(shipped.load_wine(return_X_y=True)),
        "iris": standardised(shipped.load_iris(return_X_y=True)),
        "moons": shipped.make_moons(500, noise=0.2, random_state=0),
        "circles": shipped.make_circles(500, noise=0.1, factor=0.5, random_state=0),
        "one in ten": standardised(shipped.make_classification(
            800, 20, n_informative=6, class_sep=1.5, weights=[0.9], flip_y=0, random_state=1)),
        "three classes": standardised(shipped.make_classification(
            800, 20, n_informative=6, class_sep=1.2, flip_y=0, n_classes=3, n_clusters_per_class=1, random_state=2)),
    }  # fmt: skip


def overlap():
    """Classes that overlap, so that right labels are contradicted, too."""
    rng = np.random.default_rng(7)
    X, y = shipped.load_diabetes(return_X_y=True)
    found = {"diabetes, above the median": (StandardScaler().fit_transform(X), (y > np.median(y)).astype(int))}
    for distance in (1.0, 1.5, 2.0, 3.0):
        y = rng.integers(0, 2, 700)
        found[f"Gaussians at {distance:g}"] = (rng.normal(size=(700, 4)) + distance / 2 * y[:, None], y)
    X, y = shipped.make_hastie_10_2(800, random_state=0)
    found["Hastie"] = (X, (y > 0).astype(int))
    found["moons, noise 0.35"] = shipped.make_moons(600, noise=0.35, random_state=1)
    X, y = shipped.load_breast_cancer(return_X_y=True)
    found["breast cancer, five columns"] = (StandardScaler().fit_transform(X[:, [1, 4, 8, 18, 24]]), y)
    X, y = shipped.load_wine(return_X_y=True)
    found["wine, three columns"] = (StandardScaler().fit_transform(X[:, [1, 2, 4]]), y)
    return found


def judged():
    """Real tables and MNIST 1 against 7, 1,000 rows each; looked at after the rule was chosen."""
    rng = np.random.default_rng(1)
    found = {}
    for name in TABLES:
        path = next(p for p in (folder / "tables" / f"{name}.npz" for folder in search_path()) if p.is_file())
        with np.load(path) as stored:
            X, y = stored["X"], stored["y"]
        some = rng.permutation(len(y))[:MOST_ROWS]
        found[name] = standardised((X[some], y[some]))
    data = load_mnist(n_train=MOST_ROWS, random_state=0)
    found["MNIST 1 / 7"] = (np.array(data.X_train), (data.y_train > 0).astype(int))
    return found


SETS = {"design": design, "overlap": overlap, "judged": judged}


def attacked(X, y, attack, level):
    if attack == "none":
        return y
    victim = {"surrogate": SVC(C=1.0)} if attack.endswith("-rbf") else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return poison(X, y, attack.removesuffix("-rbf"), level / 100, random_state=0, **victim).y


def flags(args):
    """One line per cell: what the audit flags, and what cleanlab flags with its defaults on the same probabilities."""
    from cleanlab.filter import find_label_issues

    path = args.cache / f"flags_{args.data}.csv"
    done = set()
    if path.exists():
        done = {(r["data"], r["attack"], int(r["level"])) for r in csv.DictReader(path.open())}
    else:
        path.write_text(",".join(COLUMNS) + "\n")
    cells = [("none", 0), *((attack, level) for attack in ATTACKS for level in LEVELS)]
    for name, (X, y) in SETS[args.data]().items():
        for attack, level in cells:
            if (name, attack, level) in done:
                continue
            given = attacked(X, y, attack, level)
            wrong = given != y
            start = time.process_time()
            found = audit(X, given, random_state=0)
            seconds = time.process_time() - start
            mask = found.suspicion >= 0.5
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                other = find_label_issues(given, found.probabilities, n_jobs=1)
            auc = roc_auc_score(wrong, found.suspicion) if wrong.any() and found.informative else float("nan")
            row = [name, attack, level, len(y), wrong.sum(), f"{auc:.4f}", int(found.apart), int(found.informative),
                   mask.sum(), (mask & wrong).sum(), other.sum(), (other & wrong).sum(), f"{seconds:.2f}"]  # fmt: skip
            with path.open("a", newline="") as stream:
                csv.writer(stream, lineterminator="\n").writerow(row)
            print(*row, flush=True)


def table(args):
    path = args.cache / f"flags_{args.data}.csv"
    rows = [{k: v if k in ("data", "attack") else float(v) for k, v in r.items()} for r in csv.DictReader(path.open())]
    seen = [r for r in rows if r["level"] and r["auc"] > 0.8]
    print(f"{len(seen)} of {sum(r['level'] > 0 for r in rows)} poisoned cells have a ranking AUC above 0.8.\n")
    head = ("", "cells", "flagged / wrong", "precision", "F1", "ahead / behind in F1")
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for key in ("all", "attack", "level", "data"):
        for value in dict.fromkeys(r.get(key, "all") for r in seen):
            here = [r for r in seen if r.get(key, "all") == value]
            name = f"{value:g} %" if key == "level" else value
            print(f"| {'**' if key == 'all' else ''}{name}{'**' if key == 'all' else ''} | " + _line(here) + " |")
    print("\n| right labels | rows | audit flags | stand apart | cleanlab flags |\n|---|---|---|---|---|")
    for r in rows:
        if not r["level"]:
            share = [f"{100 * r[k] / r['rows']:.1f} %" for k in ("flagged", "cleanlab")]
            print(f"| {r['data']} | {r['rows']:.0f} | {share[0]} | {'yes' if r['apart'] else 'no'} | {share[1]} |")
    print(f"\nMedian time of an audit: {np.median([r['seconds'] for r in rows]):.2f} s of one core.")


def _line(rows):
    """Means over cells, audit / cleanlab; precision where both flag something."""
    flagged, other, wrong = (np.array([r[k] for r in rows]) for k in ("flagged", "cleanlab", "wrong"))
    hit, other_hit = (np.array([r[k] for r in rows]) for k in ("hit", "cleanlab_hit"))
    both = (flagged > 0) & (other > 0)
    f1, other_f1 = 2 * hit / (flagged + wrong), 2 * other_hit / (other + wrong)
    precision = [
        f"{(h[both] / f[both]).mean():.2f}" if both.any() else "-" for h, f in ((hit, flagged), (other_hit, other))
    ]
    ahead = f"{(f1 > other_f1 + 1e-9).sum()} / {(f1 < other_f1 - 1e-9).sum()}"
    return (
        f"{len(rows)} | {(flagged / wrong).mean():.2f} / {(other / wrong).mean():.2f} | {' / '.join(precision)} | "
        f"{f1.mean():.2f} / {other_f1.mean():.2f} | {ahead}"
    )


def stability_figure(args):
    import matplotlib.pyplot as plt

    run, started = begin(trial=args.trial), time.perf_counter()
    games = stability(n_games=500, rounds=100, random_state=0)
    print(f"{run.heading()}, {time.perf_counter() - started:.0f} s\n")
    found = [game for game in games if game["found"]]
    for words, some in (
        ("without flips", [game for game in games if game["k"] == 0]),
        ("with flips", [game for game in games if game["k"] > 0]),
    ):
        settled = [game for game in some if game["found"]]
        sure = sum(game["gap"] > 0 for game in settled)
        print(f"{words}: {len(settled)} of {len(some)} settle, {sure} of these without ties (delta' > 0)")
    below = [sum(game[f"kappa {norm}"] < 1 for game in found) for norm in ("infinity", "spectral")]
    print(f"kappa below 1: infinity norm {below[0]}, spectral {below[1]} of {len(found)}")
    print(f"{len(found)} of {len(games)} games have an equilibrium\n\n| bound | rounds | violated | games | worst |")
    print("|---|---|---|---|---|")
    for row in summarise(games):
        print("| {bound} | {rounds:,} | {violated:,} | {games} | {worst:.3f} |".format(**row))
    names = ("lemma 1 printed", "lemma 1 proven", "lemma 2 printed", "euclidean")
    figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    for height, name in enumerate(names):
        ratio = np.array([game[f"{name}: worst"] for game in found if game[f"{name}: worst"] > 0])
        spread = np.random.default_rng(0).uniform(-0.25, 0.25, len(ratio))
        ax.scatter(ratio, height + spread, s=7, alpha=0.6, color="#0b5fa5" if height else "#b3261e")
    ax.axvline(1, color="0.3", linewidth=1)
    ax.set_yticks(range(len(names)), names)
    ax.set_xlabel("left over right side of the bound, worst round (above 1: violated)")
    figure.savefig(DOCS / "images" / "audit_stability.png", dpi=90)


def recovery_figure(args):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(11, 6), layout="constrained")
    for column, level in enumerate((5, 10, 25)):
        try:
            data = load_moon(random_state=1, labels=f"farthest-{level}")
        except DataNotFoundError as error:
            print(f"skipped: {error}")
            return
        budget = 2 * {5: 25, 10: 50, 25: 125}[level]
        clf = FloralClassifier(gamma=1.0, C=10.0, budget=budget, learning_rate=5e-4, random_state=0)
        found = recovery(clf.fit(data.X_train, data.y_train), data.poisoned)
        print(
            f"{level} %: B = {budget}, {100 * found.mean:.1f} % of the poisoned labels flipped back a round,", end=" "
        )
        print(f"{100 * found.ever[-1]:.0f} % at least once, precision {100 * np.nanmean(found.precision):.0f} %")
        RecoveryDisplay(found).plot(axes[0, column], label="flipped back")
        RecoveryDisplay(found).plot_points(data.X_train, axes[1, column])
        axes[0, column].set_title(f"Moon, {level} % poisoned (authors' labels)")
    figure.savefig(DOCS / "images" / "audit_recovery.png", dpi=90)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="recovery", choices=["flags", "table", "recovery", "stability"])
    parser.add_argument("--data", default="design", choices=list(SETS))
    parser.add_argument("--cache", type=Path, default=Path("."))
    parser.add_argument("--trial", action="store_true", help="stability of a tree with local changes, for a look")
    made = parser.parse_args()
    {"flags": flags, "table": table, "recovery": recovery_figure, "stability": stability_figure}[made.what](made)
