"""How well planted errors are found and flagged: find_label_issues beside cleanlab and two cheap peers.

python benchmarks/audit.py flags --data report --rows ROWS --jobs 4   a line per cell and method; resumable
python benchmarks/audit.py publish --rows ROWS                        the tables of docs/results/audit.md
python benchmarks/audit.py rules                                      numbers of labels/, each varied alone on `choose`
python benchmarks/audit.py probabilities                              cleanlab's own ground: probabilities without rows
python benchmarks/audit.py speed                                      seconds and memory
python benchmarks/audit.py recovery                                   docs/images/audit_recovery.png
python benchmarks/audit.py stability                                  bounds of the lemmas, and their picture

The numbers were chosen on `choose`; `report` was in sight when the form of the rule was; `once` and `made`
were read after that.
"""

import argparse
import resource
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
from csv_rows import append, into_page, present
from made_tables import TABLES, made_table
from questions import source
from sklearn import datasets as shipped
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_bench.datasets import load_mnist
from floral_bench.recovery import RecoveryDisplay, recovery
from floral_bench.reporting.making import begin
from floral_bench.reporting.tables import markdown
from floral_bench.stability import stability, summarise
from floral_learn import FloralClassifier, find_label_issues, poison
from floral_learn.base.files import write_atomically
from floral_learn.datasets import DataNotFoundError, load_moon
from floral_learn.datasets.files import find_file
from floral_learn.labels import flagging, judges, noise
from floral_learn.labels import rows as scaled
from floral_learn.labels.judges import SETTINGS, choose_scale, prepare_judges

LEVELS = (5, 10, 20)
ATTACKS = ("random", "class-biased", "farthest", "near-boundary", "near-boundary-rbf")
KINDS = [("none", 0), *((attack, level) for attack in ATTACKS for level in LEVELS)]
PEERS = ("ours", "all contradicted", "cleanlab", "cleanlab, own model", "forest", "in-sample")
CHOOSE = ("digits", "wine", "breast cancer", "banknote", "phoneme", "satimage", "trec, one half", "MNIST 1 / 7")
REPORT = ("htru2", "pima", "spambase", "magic04", "a9a", "elec2", "students", "catdog", "trec, other half")
ONCE = ("LabelMe's pictures", "music", "product", "MNIST, ten digits", "words of IMDB", "hastie")
SETS = {"choose": CHOOSE, "report": REPORT, "once": ONCE, "made": tuple(TABLES)}
COLUMNS = ("data", "split", "attack", "level", "rows", "wrong", "method", "flagged", "hit", "left_wrong", "ap",
           "replaceable", "seconds")  # fmt: skip
CELL = ["data", "split", "attack", "level"]
MOST_ROWS = 1000
DOCS = Path(__file__).resolve().parents[1] / "docs"


@cache
def rows_of(name, split):
    """At most 1,000 rows, standardised, and their labels as class numbers."""
    rng = np.random.default_rng([11, split])
    if name == "MNIST 1 / 7":
        data = load_mnist(n_train=MOST_ROWS, random_state=split)
        return np.array(data.X_train, dtype=float), (data.y_train > 0).astype(int)
    loaders = {"digits": shipped.load_digits, "wine": shipped.load_wine, "breast cancer": shipped.load_breast_cancer}
    crowds = {"LabelMe's pictures": "labelme", "music": "music", "product": "product"}
    others = {"MNIST, ten digits": "mnist", "words of IMDB": "imdb"}
    if name in loaders:
        X, y = loaders[name](return_X_y=True)
        order = np.arange(len(y))
    elif name in others or name == "hastie":
        X, y = source(others[name]) if name in others else shipped.make_hastie_10_2(4000, random_state=0)
        order = np.arange(len(y))
    elif name in TABLES:
        X, y = made_table(name)
        order = np.arange(len(y))
    elif name in crowds:
        with np.load(find_file(f"tables/{crowds[name]}_crowd.npz", hint="a crowd of docs/results/crowd.md")) as stored:
            X, y = stored["X"], stored["y"]  # the true classes
        order = np.arange(len(y))
    else:
        table, _, half = name.partition(", ")
        with np.load(find_file(f"tables/{table}.npz", hint="a table of docs/results/audit.md")) as stored:
            X, y = stored["X"], stored["y"]
        order = np.random.default_rng(5).permutation(len(y)) if half else np.arange(len(y))
        order = {"": order, "one half": order[: len(y) // 2], "other half": order[len(y) // 2 :]}[half]
    some = rng.permutation(order)[:MOST_ROWS]
    X, y = np.asarray(X[some], dtype=float), np.unique(y[some], return_inverse=True)[1]
    return (X / 16 if name == "digits" else StandardScaler().fit_transform(X)), y


def attacked(X, y, attack, level, seed=0):
    if attack == "none":
        return y
    victim = {"surrogate": SVC(C=1.0)} if attack.endswith("-rbf") else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return poison(X, y, attack=attack.removesuffix("-rbf"), budget=level / 100, random_state=seed, **victim).y


def peers(X, given, probability):
    """Flags and scores of the others: all labels that our probabilities contradict, cleanlab on these and on those of
    logistic regression, a forest's out-of-bag votes, and a model that has seen every label."""
    from cleanlab.filter import find_label_issues as confident_learning

    rows = np.arange(len(given))
    own = cross_val_predict(LogisticRegression(max_iter=300), X, given, cv=5, method="predict_proba")
    forest = RandomForestClassifier(100, min_samples_leaf=5, oob_score=True, random_state=0).fit(X, given)
    votes = np.nan_to_num(forest.oob_decision_function_)
    seen = LogisticRegression(max_iter=300).fit(X, given).predict_proba(X)
    return {
        "all contradicted": (probability.argmax(axis=1) != given, -probability[rows, given]),
        "cleanlab": (confident_learning(given, probability, n_jobs=1), -probability[rows, given]),
        "cleanlab, own model": (confident_learning(given, own, n_jobs=1), -own[rows, given]),
        "forest": (votes.argmax(axis=1) != given, -votes[rows, given]),
        "in-sample": (seen.argmax(axis=1) != given, -seen[rows, given]),
    }


def judged(cell):
    """The lines of one cell, one per method."""
    warnings.simplefilter("ignore")
    name, split, attack, level = cell
    X, y = rows_of(name, split)
    given = attacked(X, y, attack, level, split)
    wrong, start = given != y, time.process_time()
    issues = find_label_issues(X, given, random_state=0)
    seconds = time.process_time() - start
    lines = []
    for method, (mask, score) in {
        "ours": (issues.flagged, issues.score),
        **peers(X, given, issues.probability),
    }.items():
        ap = f"{average_precision_score(wrong, score):.4f}" if wrong.any() else ""
        left = (issues.cleaned_labels() != y).sum() if method == "ours" else ""
        lines.append((*cell, len(y), wrong.sum(), method, mask.sum(), (mask & wrong).sum(), left, ap,
                      int(issues.replaceable), f"{seconds:.2f}"))  # fmt: skip
    return lines


def flags(args):
    """One line per cell and method; what is in the file already is not done again."""
    names = list(present(SETS[args.data], lambda name: rows_of(name, 0)))
    cells = ((name, split, *kind) for split in args.splits for kind in KINDS for name in names)
    for _ in append(args.rows, COLUMNS, judged, cells, args.jobs, args.seconds):
        pass


def publish(args):
    """The tables of the page, between its marks, and the rows behind them. Every cell counts."""
    rows = pd.read_csv(args.rows).sort_values(CELL, kind="stable")
    rows["f1"] = 2 * rows["hit"] / (rows["flagged"] + rows["wrong"]).clip(lower=1)
    rows["ratio"] = rows["flagged"] / rows["wrong"].clip(lower=1)
    parts = []
    for words, names in (
        ("Data read once, after the rule was set", ONCE),
        ("Made-up tables", TABLES),
        ("Data on which no number was chosen", REPORT),
        ("Data on which the numbers were chosen", CHOOSE),
    ):
        some = rows[rows["data"].isin(names)]
        if len(some):
            parts += [f"## {words}\n", *tables(some)]
    mark = "<!-- by `python benchmarks/audit.py publish` -->"
    into_page(DOCS / "results" / "audit.md", mark, "\n".join(parts), "<!-- end -->")
    kept = rows.pivot_table(
        index=[*CELL, "rows", "wrong"], columns="method", values=["flagged", "hit", "ap"], sort=False
    )
    kept.columns = [f"{method}: {value}" for value, method in kept.columns]
    write_atomically(DOCS / "results" / "audit" / "flags.csv", kept.round(3).to_csv(float_format="%g"))


def tables(rows):
    """F1 by data set, attack and level; how many are flagged; cleaned copies; labels as published."""
    planted = rows[rows["level"] > 0]
    wide = planted.pivot(index=CELL, columns="method", values="f1")[list(PEERS)]
    groups = [("**all**", wide)] + [(f"{v} %" if k == "level" else str(v), wide.xs(v, level=k))
                                    for k in ("data", "attack", "level")
                                    for v in wide.index.get_level_values(k).unique()]  # fmt: skip
    table = []
    for name, some in groups:
        ahead, behind = ((sign * (some["ours"] - some["cleanlab"]) > 1e-9).sum() for sign in (1, -1))
        table.append(
            {
                "F1": name,
                "cells": len(some),
                **some.mean().map("{:.3f}".format),
                "ahead / behind cleanlab": f"{ahead} / {behind}",
            }
        )
    yield markdown(pd.DataFrame(table))
    planted = planted.assign(precision=planted["hit"] / planted["flagged"].clip(lower=1))
    of_method = planted.groupby("method")
    means = pd.DataFrame({"precision": of_method["precision"].mean(), "average precision": of_method["ap"].mean(),
                          "median of flagged / wrong": of_method["ratio"].median()}).loc[list(PEERS)]  # fmt: skip
    yield markdown(means.map("{:.3f}".format).T.rename_axis("mean").reset_index())
    biased = planted[planted["attack"] == "class-biased"].assign(recall=lambda t: t["hit"] / t["wrong"])
    biased = biased.groupby(["data", "method"])[["f1", "recall"]].mean()
    text = (biased["f1"].map("{:.2f}".format) + biased["recall"].map(" ({:.2f})".format)).unstack()[list(PEERS)]
    yield "Class-biased errors, F1 (recall):\n"
    yield markdown(text.reset_index())
    ours = planted[planted["method"] == "ours"].set_index(CELL)
    easy = planted[(planted["method"] == "cleanlab") & (planted["ap"] > 0.8)].set_index(CELL).index
    near = ours.loc[easy, "ratio"].between(0.7, 1.4)
    copies = ours[ours["replaceable"] == 1]
    worse = (copies["left_wrong"] > copies["wrong"]).sum()
    attacks, names = (ours.index.get_level_values(level) for level in ("attack", "data"))
    asked = ours[attacks.isin(["random", "class-biased"]) & names.isin(["banknote", "htru2", "digits", "MNIST 1 / 7"])]
    refused = [" ".join(map(str, cell)) for cell in asked[asked["replaceable"] == 0].index]
    yield (
        f"Flagged / wrong lies from 0.7 to 1.4 in {near.sum()} of the {len(near)} cells in which cleanlab's average "
        f"precision is above 0.8. A cleaned copy is written in {len(copies)} of {len(ours)} cells; labels are more "
        f"wrong than before in {worse}. Of the {len(asked)} random and class-biased cells of banknote, htru2, digits "
        f"and MNIST here it is refused in {len(refused)}{': ' + '; '.join(refused) if refused else ''}.\n"
    )
    clean = rows[rows["level"] == 0].assign(share=lambda t: 100 * t["flagged"] / t["rows"])
    clean = clean.pivot_table(index="data", columns="method", values="share", sort=False)[list(PEERS)]
    yield "Share flagged of the labels as published (none of them is called scattered errors):\n"
    yield markdown(clean.map("{:.1f} %".format).reset_index())


def rules(args):
    """Each number varied alone: average precision, F1, cells ahead of cleanlab and clean labels flagged."""
    from cleanlab.filter import find_label_issues as confident_learning

    cells = [(name, *rows_of(name, 0), kind) for name in CHOOSE for kind in KINDS]
    cells = [(name, X, y, attacked(X, y, *kind)) for name, X, y, kind in cells]
    numbers = {"landmarks": (SETTINGS, (100, 200, 400)), "width": (SETTINGS, (0.25, 0.5, 1.0)),
               "neighbours": (SETTINGS, (15, 30, 50)), "BAR": (flagging, (1.0, 1.5, 2.0, 2.5, 3.0)),
               "WRONG": (flagging, (0.25, 1 / 3, 0.5)),
               "EXPLAINED": (flagging, (0.3, 0.55, 0.7)), "MOST_OVERLAP": (flagging, (0.05, 0.1, 0.2)),
               "LEAST_GAIN": (flagging, (0.0, 0.02, 0.05)),
               "PRIOR_ROWS": (noise, (3.0, 10.0, 30.0)),
               "PRIOR_WRONG": (noise, (0.05, 0.1, 0.2)), "SHIFT_RIDGE": (noise, (0.0, 0.1, 1.0)),
               "RIDGES": (judges, ((0.1,), (1.0,), (0.01, 0.1, 1.0, 10.0))),
               "WIDE": (judges, (32, 64, 128)), "TAIL": (scaled, (3.0, 5.0, np.inf))}  # fmt: skip
    usual = [probability(X, given, SETTINGS) for _, X, _, given in cells]
    for number, (place, values) in numbers.items():
        for value in values if not args.only or number in args.only else ():
            shipped_value, p = getattr(place, number), usual
            if place is SETTINGS:
                p = [probability(X, given, replace(SETTINGS, **{number: value})) for _, X, _, given in cells]
            else:
                setattr(place, number, value)
            if place in (judges, scaled) or number == "SHIFT_RIDGE":
                p = [probability(X, given, SETTINGS) for _, X, _, given in cells]
            found = [flagging.flag_labels(q, given) for q, (*_, given) in zip(p, cells, strict=True)]
            if place is not SETTINGS:
                setattr(place, number, shipped_value)
            lines = []
            for q, flag, (name, _, y, given) in zip(p, found, cells, strict=True):
                wrong, theirs = given != y, confident_learning(given, q, n_jobs=1)
                f1 = [2 * (m & wrong).sum() / max(1, m.sum() + wrong.sum()) for m in (flag.flagged, theirs)]
                fixed = np.where(flag.wrong_probability > 0.5, flag.suggested, given) if flag.replaceable else given
                ap = average_precision_score(wrong, flag.score) if wrong.any() else np.nan
                copied = (fixed != y).sum() > wrong.sum(), flag.replaceable
                lines.append((name, wrong.any(), *f1, ap, flag.flagged.mean(), *copied))
            table = pd.DataFrame(lines, columns=["data", "planted", "f1", "cleanlab", "ap", "share", "worse", "copy"])
            bad, clean = table[table["planted"]], table[~table["planted"]]
            mark = " (shipped)" if value == shipped_value else ""
            shares = ", ".join(f"{d} {100 * s:.1f} %" for d, s in zip(clean["data"], clean["share"], strict=True))
            print(
                f"{number} = {value}{mark}: F1 {bad['f1'].mean():.3f}, cleanlab {bad['cleanlab'].mean():.3f}, ahead in "
                f"{(bad['f1'] > bad['cleanlab']).mean():.0%}, average precision {bad['ap'].mean():.3f}, copies "
                f"{bad['copy'].sum()} ({bad['worse'].sum()} worse); clean: {shares}",
                flush=True,
            )


def probability(X, codes, settings):
    rng, n_classes = np.random.default_rng(0), int(codes.max()) + 1
    rows = choose_scale(X, codes, n_classes, rng)(X)
    return prepare_judges(rows, rng, settings, codes=codes).probabilities(codes, n_classes)


def probabilities(args):
    """cleanlab's public benchmark: held-out probabilities of networks, labels checked by hand or planted."""
    from cleanlab.filter import find_label_issues as confident_learning

    hint = "a file of cleanlab's public benchmark"
    roman, cifar = (np.load(find_file(f"tables/{name}_probabilities.npz", hint=hint)) for name in ("roman", "cifar10s"))
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
    doings = {"flags": flags, "publish": publish, "rules": rules, "probabilities": probabilities, "speed": speed,
              "recovery": recovery_figure, "stability": stability_figure}  # fmt: skip
    parser.add_argument("what", nargs="?", default="recovery", choices=list(doings))
    parser.add_argument("--data", default="report", choices=list(SETS))
    parser.add_argument("--rows", type=Path, default=Path("runs/audit.csv"))
    parser.add_argument("--splits", type=int, nargs="*", default=[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of flags: stop after so many")
    parser.add_argument("--only", nargs="*", help="of rules: these numbers alone, such as EXPLAINED")
    parser.add_argument("--trial", action="store_true", help="stability of a tree with local changes, for a look")
    made = parser.parse_args()
    doings[made.what](made)
