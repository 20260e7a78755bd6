"""What defenses bring that are told nothing: accuracy minus that of the same plain model, on the same poisoned labels.

python benchmarks/arena.py run --rows ROWS --jobs 4 --seconds 500    one line per fit; goes on where it stopped
python benchmarks/arena.py run --rows ROWS --rules                   the rule with other numbers of standard errors
python benchmarks/arena.py publish --rows ROWS                       docs/results/arena.md

`ContradictedLabels` and cleanlab's CleanLearning behind four models, and every other defense at its defaults behind an
SVM, where there is one. At most 400 training and 1,000 test rows; clean labels and four kinds of flips at 10 and 30 %.
Nobody is told the attack, its level or a clean label. Data sets whose files are not here are left out.
"""

import argparse
import os
import sys
import time
import warnings
from functools import cache
from itertools import product
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from csv_rows import append, into_page, present
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_bench.arena_data import load_arena
from floral_bench.arena_methods import AT_DEFAULTS, ESTIMATORS, MODELS
from floral_bench.reporting.tables import markdown
from floral_learn import FloralClassifier, poison
from floral_learn.base.files import write_atomically
from floral_learn.datasets.files import find_file
from floral_learn.sanitizers import contradicted

DOCS = Path(__file__).resolve().parents[1] / "docs"
#: Data on which numbers of labels/ or of the rule were chosen, and on which none was (docs/results/looked-at.md).
CHOSEN = (
    "digits", "digits-3-8", "wine", "breast-cancer", "banknote", "phoneme", "phoneme-rare", "satimage", "trec",
    "mnist-1-7", "moon", "circles", "iris", "letters", "ellipses", "overlap", "imbalanced", "labelme",
)  # fmt: skip
UNSEEN = (
    "spambase", "spambase-rare", "pima", "htru2", "magic04", "magic04-overlap", "a9a", "elec2", "students", "catdog",
)  # fmt: skip
TABLES = ("a9a", "elec2", "students", "trec", "catdog")  # files that `load_arena` does not know
SLOW = ("letters", "trec", "digits", "labelme", "satimage", "catdog")  # many classes or columns: boosting last
ATTACKS = ("random", "class-biased", "farthest", "near-rbf")
KINDS = (*product(ATTACKS, (30, 10)), ("none", 0))
BEHIND = {"plain": "plain", "safe": "ContradictedLabels", "cleanlab": "CleanLearning"}
OTHERS = AT_DEFAULTS | {"floral": "FloralClassifier()"}
RULES, SHIPPED = ("safe@0", "safe@2", "safe@inf"), contradicted.STANDARD_ERRORS
COLUMNS = ("data", "split", "attack", "level", "model", "method", "dropped", "accuracy", "balanced", "seconds")
CELL = ["data", "attack", "level"]
TITLES = {name: title for name, (title, _) in MODELS.items()}


@cache
def problem(name, split):
    """Training rows, labels, test rows, labels: standardised, class numbers from 0."""
    if name not in TABLES:
        data = load_arena(name, seed=split, n_train=400)
        parts = data.X_train, data.y_train, data.X_test[:1000], data.y_test[:1000]
    else:
        with np.load(find_file(f"tables/{name}.npz", hint="a table of docs/results/arena.md")) as stored:
            X, y = stored["X"].astype(float), stored["y"]
        order = np.random.default_rng(split).permutation(len(y))
        train, test = order[:400], order[400:1400]
        scale = StandardScaler().fit(X[train])
        parts = scale.transform(X[train]), y[train], scale.transform(X[test]), y[test]
    classes = np.unique(parts[1])
    return parts[0], np.searchsorted(classes, parts[1]), parts[2], np.searchsorted(classes, parts[3])


def flipped(X, y, attack, level):
    if attack == "none":
        return y
    kind, victim = ("near-boundary", {"surrogate": SVC()}) if attack == "near-rbf" else (attack, {})
    return poison(X, y, attack=kind, budget=level / 100, random_state=0, **victim).y


def estimator(model, method):
    method, _, errors = method.partition("@")
    contradicted.STANDARD_ERRORS = float(errors or SHIPPED)
    if method == "floral":
        return FloralClassifier(random_state=0)
    return ESTIMATORS[f"{method}-default" if method in OTHERS else f"{method}-{model}"](0)


def fit(task):
    """The line of a task in the file of rows; an empty accuracy where a method refuses."""
    warnings.simplefilter("ignore")
    name, split, attack, level, model, method = task
    X, y, X_test, y_test = problem(name, split)
    given, start = flipped(X, y, attack, level), time.process_time()
    try:
        made = estimator(model, method).fit(X, given)
        said = made.predict(X_test)
    except ValueError as error:
        print(f"{task}: {error}", file=sys.stderr)
        return [(*task, 0, "", "", "")]
    dropped = int((~made.kept_).sum()) if method.startswith("safe") else 0
    scores = (f"{(said == y_test).mean():.4f}", f"{balanced_accuracy_score(y_test, said):.4f}")
    return [(*task, dropped, *scores, f"{time.process_time() - start:.3f}")]


def tasks(splits, rules):
    """Cheap models first, data in turn: a run that is cut short has the same cells of all data sets."""
    every = [*product(["svc"], [*BEHIND, *OTHERS]), *product([model for model in MODELS if model != "svc"], BEHIND)]
    every = [*product(MODELS, RULES)] if rules else every
    for slow, split, (model, method) in product((False, True), splits, every):
        for (attack, level), name in product(KINDS, UNSEEN + CHOSEN):
            if slow == (model == "boosting" and name in SLOW):
                yield name, split, attack, level, model, method


def run(args):
    """One line per fit; what is in the file already is not done again."""
    wanted = [name for name in UNSEEN + CHOSEN if not args.data or name in args.data]
    here = set(present(wanted, lambda name: problem(name, 1)))
    left = (task for task in tasks(args.splits, args.rules) if task[0] in here)
    for _ in append(args.rows, COLUMNS, fit, left, args.jobs, args.seconds):
        pass


def wide(rows):
    """Mean over splits of accuracy minus that of the plain model, cells that all methods of a model have."""
    rows = rows.dropna(subset="accuracy")
    keys = [*CELL, "split", "model"]
    plain = rows[rows["method"] == "plain"].set_index(keys)
    others = rows[rows["method"] != "plain"].copy()
    at = others.set_index(keys).index
    for score in ("accuracy", "balanced"):
        others[score] -= at.map(plain[score])
    others = others.dropna(subset="accuracy")
    return (
        others.groupby([*CELL, "model", "method"], sort=False)[["accuracy", "balanced", "dropped", "seconds"]]
        .mean()
        .reset_index()
    )


def line(part):
    """Mean with its 95 % interval over data sets, median, worst cell, share of cells far below; clean labels."""
    bad, clean = part[part["level"] > 0], part[part["level"] == 0]
    by_data = bad.groupby("data")["accuracy"].mean()
    mean, half = by_data.mean(), 1.96 * by_data.std() / np.sqrt(len(by_data))
    worst = bad.loc[bad["accuracy"].idxmin()]
    return {
        "cells": len(bad),
        "poisoned (95 % over data sets)": f"{mean:+.4f} ({mean - half:+.4f} to {mean + half:+.4f})",
        "median": f"{bad['accuracy'].median():+.4f}",
        "worst cell": f"{worst['accuracy']:+.3f} ({worst['data']}, {worst['attack']} {worst['level']} %)",
        "cells > 0.02 below": f"{(bad['accuracy'] < -0.02).mean():.1%}",
        "balanced": f"{bad.groupby('data')['balanced'].mean().mean():+.4f}",
        "clean (worst)": f"{clean['accuracy'].mean():+.4f} ({clean['accuracy'].min():+.3f})" if len(clean) else "",
    }  # fmt: skip


def publish(args):
    """Tables between the marks of both pages, and the cells behind them."""
    rows = pd.read_csv(args.rows)
    cells, splits = wide(rows), rows.groupby("data")["split"].nunique()
    behind = cells[cells["method"].isin(BEHIND)]
    pairs = behind.groupby([*CELL, "model"])["method"].transform("nunique")
    behind = behind[pairs == len(BEHIND) - 1]  # the same cells of both
    parts = [f"Mean of {splits.min()} to {splits.max()} splits. Cell by cell: [cells.csv](arena/cells.csv).\n"]
    for words, names in (("Data on which nothing was chosen", UNSEEN), ("Data on which a number was chosen", CHOSEN)):
        some = behind[behind["data"].isin(names)]
        table = [
            {"model": TITLES[model], "method": BEHIND[method]} | line(part)
            for model in MODELS
            for method, part in some[some["model"] == model].groupby("method", sort=False)
        ]
        parts += [f"**{words}** ({some['data'].nunique()}: {', '.join(some['data'].unique())}):\n"]
        parts += [markdown(pd.DataFrame(table))]
    bad = behind[(behind["level"] > 0) & (behind["method"] == "safe")]
    for column, keys in (("attack", ["attack", "level"]), ("data set", ["data"])):
        table = []
        for key, part in bad.groupby(keys, sort=False):
            acts = part.groupby("model")["dropped"].agg(lambda d: (d > 0).mean())
            gains = part.groupby("model")["accuracy"].mean()
            table.append({column: f"{key[0]} {key[1]} %" if len(key) > 1 else key[0]}
                         | {TITLES[m]: f"{gains[m]:+.4f} ({acts[m]:.0%})" for m in MODELS if m in gains})  # fmt: skip
        parts += [
            f"`ContradictedLabels` by {column}, poisoned cells (share in which it acts):\n",
            markdown(pd.DataFrame(table)),
        ]
    if len(other := cells[cells["method"].isin(["safe", *RULES])]) > len(cells[cells["method"] == "safe"]):
        some = other[other.groupby([*CELL, "model"])["method"].transform("nunique") == len(RULES) + 1]
        words = {method: method.partition("@")[2] or f"{SHIPPED:g} (shipped)" for method in ("safe", *RULES)}
        table = [{"standard errors": words[method], "model": TITLES[model]} | line(part)
                 for (model, method), part in some.groupby(["model", "method"], sort=False)]  # fmt: skip
        parts += [
            f"Other numbers of standard errors, {some['data'].nunique()} data sets:\n",
            markdown(pd.DataFrame(table)),
        ]
    marks = "<!-- by `python benchmarks/arena.py publish` -->", "<!-- end -->"
    into_page(DOCS / "results" / "arena.md", marks[0], "\n".join(parts), marks[1])
    kept = behind.pivot_table(
        index=[*CELL, "model"], columns="method", values=["accuracy", "balanced"], sort=False
    ).round(4)
    kept.columns = [f"{BEHIND[method]}{'' if score == 'accuracy' else ', balanced'}" for score, method in kept.columns]
    write_atomically(DOCS / "results" / "arena" / "cells.csv", kept.to_csv())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "publish"])
    parser.add_argument("--rows", type=Path, default=Path("runs/arena.csv"))
    parser.add_argument("--splits", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--data", nargs="*", help="these data sets alone")
    parser.add_argument("--rules", action="store_true", help="of run: the rule at other numbers of standard errors")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    made = parser.parse_args()
    {"run": run, "publish": publish}[made.what](made)
