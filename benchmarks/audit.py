"""How well planted errors are found and flagged: find_label_issues beside cleanlab and two cheap peers.

python benchmarks/audit.py flags --data report --cache DIR    cells of the data sets as CSV, in DIR (resumable)
python benchmarks/audit.py table --data report --cache DIR    the tables of docs/results/audit.md
python benchmarks/audit.py probabilities                      cleanlab's own ground: probabilities without rows
python benchmarks/audit.py speed                              seconds and memory
python benchmarks/audit.py recovery                           docs/images/audit_recovery.png
python benchmarks/audit.py stability                          the lemmas' bounds, docs/images/audit_stability.png

The rule was chosen on `choose` (benchmarks/label_rules.py); `report` was read once, when the rule was set.
"""

import argparse
import csv
import resource
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from sklearn import datasets as shipped
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_bench.recovery import RecoveryDisplay, recovery
from floral_bench.reporting.making import begin
from floral_bench.stability import stability, summarise
from floral_learn import FloralClassifier, find_label_issues, poison
from floral_learn.datasets import DataNotFoundError, load_mnist, load_moon
from floral_learn.datasets.files import search_path

LEVELS = (5, 10, 20)
ATTACKS = ("random", "class-biased", "farthest", "near-boundary", "near-boundary-rbf")
PEERS = ("ours", "cleanlab", "cleanlab alone", "forest", "in-sample")
MOST_ROWS = 1000
DOCS = Path(__file__).resolve().parents[1] / "docs"


def standardised(X, y):
    return StandardScaler().fit_transform(np.asarray(X, dtype=float)), np.unique(y, return_inverse=True)[1]


def table_of(name, rng, half=None):
    path = next(p for p in (folder / "tables" / f"{name}.npz" for folder in search_path()) if p.is_file())
    with np.load(path) as stored:
        X, y = stored["X"], stored["y"]
    order = np.random.default_rng(5).permutation(len(y)) if half is not None else np.arange(len(y))
    order = order if half is None else order[: len(y) // 2] if half == 0 else order[len(y) // 2 :]
    some = rng.permutation(order)[:MOST_ROWS]
    return standardised(X[some], y[some])


def choose():
    """What the rule was chosen on, at most 1,000 rows each."""
    rng = np.random.default_rng(11)
    X, y = shipped.load_digits(return_X_y=True)
    some = rng.permutation(len(y))[:MOST_ROWS]
    found = {"digits": (X[some] / 16, y[some])}
    found["wine"] = standardised(*shipped.load_wine(return_X_y=True))
    found["breast cancer"] = standardised(*shipped.load_breast_cancer(return_X_y=True))
    found |= {name: table_of(name, rng) for name in ("banknote", "phoneme", "satimage")}
    found["trec, one half"] = table_of("trec", rng, half=0)
    data = load_mnist(n_train=MOST_ROWS, random_state=0)
    found["MNIST 1 / 7"] = (np.array(data.X_train), (data.y_train > 0).astype(int))
    return found


def report():
    """What it is reported on."""
    rng = np.random.default_rng(12)
    names = ("htru2", "pima", "spambase", "magic04", "a9a", "elec2", "students", "catdog")
    return {name: table_of(name, rng) for name in names} | {"trec, other half": table_of("trec", rng, half=1)}


SETS = {"choose": choose, "report": report}


def attacked(X, y, attack, level):
    if attack == "none":
        return y
    victim = {"surrogate": SVC(C=1.0)} if attack.endswith("-rbf") else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return poison(X, y, attack.removesuffix("-rbf"), level / 100, random_state=0, **victim).y


def peers(X, given, probability, every):
    """Flags and scores of the others: cleanlab on our probabilities; with `every` also on its own, a forest's
    out-of-bag votes, and a model that has seen every label."""
    from cleanlab.filter import find_label_issues as confident_learning

    rows = np.arange(len(given))
    if not every:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {"cleanlab": (confident_learning(given, probability, n_jobs=1), -probability[rows, given])}
    own = cross_val_predict(LogisticRegression(max_iter=300), X, given, cv=5, method="predict_proba")
    forest = RandomForestClassifier(100, min_samples_leaf=5, oob_score=True, random_state=0).fit(X, given)
    votes = np.nan_to_num(forest.oob_decision_function_)
    seen = LogisticRegression(max_iter=300).fit(X, given).predict_proba(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {
            "cleanlab": (confident_learning(given, probability, n_jobs=1), -probability[rows, given]),
            "cleanlab alone": (confident_learning(given, own, n_jobs=1), -own[rows, given]),
        }
    found["forest"] = (votes.argmax(axis=1) != given, -votes[rows, given])
    found["in-sample"] = (seen.argmax(axis=1) != given, -seen[rows, given])
    return found


def flags(args):
    """One line per cell and method."""
    path, end = args.cache / f"flags_{args.data}.csv", time.monotonic() + 60 * args.minutes
    columns = ("data", "attack", "level", "rows", "wrong", "method", "flagged", "hit", "precision", "left_wrong", "ap",
               "scattered", "replaceable", "share", "seconds")  # fmt: skip
    done = set()
    if path.exists():
        done = {(r["data"], r["attack"], int(r["level"])) for r in csv.DictReader(path.open())}
    else:
        path.write_text(",".join(columns) + "\n")
    cells = [("none", 0), *((attack, level) for attack in ATTACKS for level in LEVELS)]
    for name, (X, y) in SETS[args.data]().items():
        for attack, level in cells:
            if (name, attack, level) in done:
                continue
            if time.monotonic() > end:
                return
            given = attacked(X, y, attack, level)
            wrong = given != y
            start = time.process_time()
            issues = find_label_issues(X, given, random_state=0)
            seconds = time.process_time() - start
            methods = {"ours": (issues.flagged, issues.score)} | peers(X, given, issues.probability, args.peers)
            lines = []
            for method, (mask, score) in methods.items():
                ap = average_precision_score(wrong, score) if wrong.any() else float("nan")
                left = (issues.cleaned_labels() != y).sum() if method == "ours" else -1
                lines.append([name, attack, level, len(y), wrong.sum(), method, mask.sum(), (mask & wrong).sum(),
                              f"{(mask & wrong).sum() / max(1, mask.sum()):.4f}", left, f"{ap:.4f}",
                              int(issues.scattered), int(issues.replaceable), f"{issues.wrong_share:.4f}",
                              f"{seconds:.2f}"])  # fmt: skip
            with path.open("a", newline="") as stream:
                csv.writer(stream, lineterminator="\n").writerows(lines)


def table(args):
    """The tables of the page: every cell counts."""
    import pandas as pd

    rows = pd.read_csv(args.cache / f"flags_{args.data}.csv")
    there = [peer for peer in PEERS if peer in set(rows["method"])]
    rows["f1"] = 2 * rows["hit"] / (rows["flagged"] + rows["wrong"]).clip(lower=1)
    rows["ratio"] = rows["flagged"] / rows["wrong"].clip(lower=1)
    planted = rows[rows["level"] > 0]
    wide = planted.pivot(index=["data", "attack", "level"], columns="method", values="f1")
    print(f"{len(wide)} cells, none left out.\n")
    print("| | cells | " + " | ".join(f"{p}: F1" for p in there) + " | ahead / behind cleanlab |")
    print("|---" * (len(there) + 3) + "|")
    groups = [("**all**", wide)] + [(str(v), wide.xs(v, level=k)) for k in wide.index.names
                                    for v in wide.index.get_level_values(k).unique()]  # fmt: skip
    for name, some in groups:
        ahead = (some["ours"] > some["cleanlab"] + 1e-9).sum(), (some["ours"] < some["cleanlab"] - 1e-9).sum()
        print(f"| {name} | {len(some)} | " + " | ".join(f"{some[p].mean():.3f}" for p in there)
              + f" | {ahead[0]} / {ahead[1]} |")  # fmt: skip
    means = planted.groupby("method")[["precision", "ap"]].mean().loc[there]
    ratio = planted.groupby("method")["ratio"].median().loc[there]
    print("\n| | " + " | ".join(there) + " |\n" + "|---" * (len(there) + 1) + "|")
    for what in ("precision", "ap"):
        print(f"| mean {what} | " + " | ".join(f"{means[what][p]:.3f}" for p in there) + " |")
    print("| median of flagged / wrong | " + " | ".join(f"{ratio[p]:.2f}" for p in there) + " |")
    biased = planted[planted["attack"] == "class-biased"].copy()
    biased["recall"] = biased["hit"] / biased["wrong"]
    print("\nClass-biased errors by data set, F1 (recall):\n")
    print("| data | " + " | ".join(there[:3]) + " |\n" + "|---" * (1 + len(there[:3])) + "|")
    for name, some in biased.groupby("data"):
        m = some.groupby("method")[["f1", "recall"]].mean()
        print(f"| {name} | " + " | ".join(f"{m['f1'][p]:.2f} ({m['recall'][p]:.2f})" for p in there[:3]) + " |")
    easy = planted[planted["method"] == "cleanlab"].query("ap > 0.8").set_index(["data", "attack", "level"]).index
    ours = planted[planted["method"] == "ours"].set_index(["data", "attack", "level"])
    near = ours.loc[easy, "ratio"].between(0.7, 1.4)
    print(f"\nFlagged / wrong from 0.7 to 1.4 in {near.sum()} of {len(near)} cells, those in which cleanlab's average")
    print("precision is above 0.8.")
    copies = ours[ours["replaceable"] == 1]
    worse = copies[copies["left_wrong"] > copies["wrong"]]
    print(f"A cleaned copy may be written in {len(copies)} of {len(ours)} cells; labels more wrong in {len(worse)}:")
    print([" ".join(map(str, cell)) for cell in worse.index])
    refused = [cell for cell in ours[ours["replaceable"] == 0].index if cell[1] in ("random", "class-biased")]
    print(f"No copy in these random and class-biased cells: {[' '.join(map(str, cell)) for cell in refused]}.\n")
    print("| labels as published | rows | scattered | " + " | ".join(there) + " |\n" + "|---" * (3 + len(there)) + "|")
    for name, some in rows[rows["level"] == 0].groupby("data", sort=False):
        share = (100 * some.set_index("method")["flagged"] / some["rows"].iloc[0]).map("{:.1f} %".format)
        words = "yes" if some["scattered"].iloc[0] else "no"
        print(f"| {name} | {some['rows'].iloc[0]} | {words} | " + " | ".join(share[p] for p in there) + " |")
    print(f"\nMedian time: {rows['seconds'].median():.2f} s of one core.")


def probabilities(args):
    """cleanlab's public benchmark: held-out probabilities of networks, labels checked by hand or planted."""
    from cleanlab.filter import find_label_issues as confident_learning

    folder = next(folder / "tables" for folder in search_path() if (folder / "tables").is_dir())
    roman, cifar = np.load(folder / "roman_probabilities.npz"), np.load(folder / "cifar10s_probabilities.npz")
    cases = {name: (roman[name], roman["given"], roman["wrong"]) for name in ("resnet18", "swin")}
    cases["cifar10s"] = (cifar["probabilities"].astype(np.float32), cifar["given"], cifar["given"] != cifar["y"])
    print(
        "| data | labels | wrong | AP: ours | AP: self-confidence | F1: ours | F1: cleanlab | flagged | CPU seconds |"
    )
    print("|---" * 9 + "|")
    for name, (p, given, wrong) in cases.items():
        given, p = given.astype(int), p / p.sum(axis=1, keepdims=True)
        start = time.process_time()
        found = find_label_issues(None, given, pred_probs=p)
        seconds = time.process_time() - start
        other = confident_learning(given, p, n_jobs=1)
        ap = [average_precision_score(wrong, s) for s in (found.score, -p[np.arange(len(given)), given])]
        f1 = [2 * (m & wrong).sum() / (m.sum() + wrong.sum()) for m in (found.flagged, other)]
        print(f"| {name} | {len(given):,} | {wrong.sum():,} | {ap[0]:.3f} | {ap[1]:.3f} | {f1[0]:.3f} | {f1[1]:.3f} | "
              f"{found.flagged.sum():,} | {seconds:.1f} |", flush=True)  # fmt: skip


def speed(args):
    """CPU seconds of one core and the most memory that a process of its own had, libraries and data included."""
    print("| rows | columns | classes | CPU seconds | seconds | peak memory |\n|---|---|---|---|---|---|")
    for case in ((1000, 20, 2), (10_000, 50, 5), (100_000, 50, 5), (100_000, 0, 1000)):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            print(pool.submit(timed, *case).result(), flush=True)


def timed(n, d, m):
    rng = np.random.default_rng(0)
    y = rng.integers(0, m, n)
    if not d:
        p = rng.random((n, m), dtype=np.float32)
        p[np.arange(n), y] += 300
        p /= p.sum(axis=1, keepdims=True)
        X, options = None, {"pred_probs": p}
    else:
        X, options = rng.normal(size=(n, d)) + 2 * np.eye(m, d)[y], {}
    codes = np.where(rng.random(n) < 0.1, rng.integers(0, m, n), y)
    find_label_issues(rng.normal(size=(60, 2)), np.arange(60) % 2, random_state=0)  # imports are not counted
    start, used = time.perf_counter(), time.process_time()
    find_label_issues(X, codes, random_state=0, **options)
    seconds, used = time.perf_counter() - start, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return f"| {n:,} | {d or 'pred_probs'} | {m:,} | {used:.2f} | {seconds:.2f} | {peak:.1f} GiB |"


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
    doings = {"flags": flags, "table": table, "probabilities": probabilities, "speed": speed,
              "recovery": recovery_figure, "stability": stability_figure}  # fmt: skip
    parser.add_argument("what", nargs="?", default="recovery", choices=list(doings))
    parser.add_argument("--data", default="choose", choices=list(SETS))
    parser.add_argument("--cache", type=Path, default=Path("."))
    parser.add_argument("--peers", action="store_true", help="of flags: all peers, not cleanlab on our probabilities")
    parser.add_argument("--minutes", type=float, default=9.0, help="of flags: stop after so many; resumable")
    parser.add_argument("--trial", action="store_true", help="stability of a tree with local changes, for a look")
    made = parser.parse_args()
    doings[made.what](made)
