"""What ContradictedLabels brings behind four models, told nothing: accuracy minus that of the same plain model.

python benchmarks/arena.py run --out cells.csv --jobs 14    every cell, beside CleanLearning (cleanlab)
python benchmarks/arena.py table --out cells.csv            the tables of docs/results/arena.md

Fifteen data sets, 1,000 training rows and 1,500 test rows where they have them, clean labels and four kinds of flips at
10 and 30 %. The rule has no number of its own: what it uses was chosen by benchmarks/label_rules.py on some of them.
"""

import argparse
import csv
import os
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn import datasets as shipped
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_learn import ContradictedLabels, SanitizedClassifier, poison
from floral_learn.datasets.files import search_path

os.environ.setdefault("OMP_NUM_THREADS", "1")
CHOSEN_ON = ("digits", "wine", "breast cancer", "banknote", "phoneme", "satimage", "trec")
TABLES = ("banknote", "phoneme", "satimage", "htru2", "pima", "spambase", "magic04", "a9a", "elec2", "students")
FLIPS = ("random", "class-biased", "farthest", "near-boundary-rbf")
MODELS = {
    "SVC": lambda: SVC(),
    "logistic regression": lambda: LogisticRegression(max_iter=500),
    "random forest": lambda: RandomForestClassifier(random_state=0, n_jobs=1),
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
}


def problems():
    """Name -> (X, y, X_test, y_test), standardised."""
    made = {"digits": shipped.load_digits, "wine": shipped.load_wine, "breast cancer": shipped.load_breast_cancer}
    raw = {name: (*load(return_X_y=True), None, None) for name, load in made.items()}
    for name in (*TABLES, "trec", "catdog"):
        path = next(p for p in (folder / "tables" / f"{name}.npz" for folder in search_path()) if p.is_file())
        with np.load(path) as stored:
            tested = ("X_test", "y_test") if name in ("trec", "catdog") else ()
            raw[name] = (
                stored["X"],
                stored["y"],
                *(stored[key] for key in tested),
                *([None, None] if not tested else []),
            )
    for name, (X, y, X_test, y_test) in raw.items():
        rng = np.random.default_rng(0)
        order = rng.permutation(len(y))
        if X_test is None:
            size = min(1000, int(0.6 * len(y)))
            train, test = order[:size], order[size : size + 1500]
            X, y, X_test, y_test = X[train], y[train], X[test], y[test]
        else:
            test = rng.permutation(len(y_test))[:1500]
            X, y, X_test, y_test = X[order[:1000]], y[order[:1000]], X_test[test], y_test[test]
        scale = StandardScaler().fit(X.astype(float))
        yield name, (scale.transform(X.astype(float)), y, scale.transform(X_test.astype(float)), y_test)


def cell(name, X, y, X_test, y_test, attack, level):
    """One line per model and method."""
    from cleanlab.classification import CleanLearning

    warnings.simplefilter("ignore")
    given = y
    if attack != "none":
        victim = {"surrogate": SVC()} if attack.endswith("-rbf") else {}
        given = poison(X, y, attack.removesuffix("-rbf"), level / 100, random_state=0, **victim).y
    codes = np.unique(given, return_inverse=True)[1]
    lines = []
    for model, make in MODELS.items():
        certain = SVC(probability=True, random_state=0) if model == "SVC" else make()
        confident = CleanLearning(certain, seed=0, find_label_issues_kwargs={"n_jobs": 1}).fit(X, codes)
        said = {
            "plain": make().fit(X, given).predict(X_test),
            "ContradictedLabels": SanitizedClassifier(ContradictedLabels(random_state=0), make())
            .fit(X, given)
            .predict(X_test),
            "CleanLearning": np.unique(given)[confident.predict(X_test)],
        }
        for method, labels in said.items():
            scores = (labels == y_test).mean(), balanced_accuracy_score(y_test, labels)
            lines.append([name, attack, level, model, method, *(f"{score:.4f}" for score in scores)])
    return lines


def run(args):
    kinds = [("none", 0), *((attack, level) for attack in FLIPS for level in (10, 30))]
    jobs = (delayed(cell)(name, *data, *kind) for name, data in problems() for kind in kinds)
    with args.out.open("w", newline="") as stream:
        csv.writer(stream).writerow(["data", "attack", "level", "model", "method", "accuracy", "balanced"])
        for lines in Parallel(n_jobs=args.jobs, return_as="generator_unordered")(jobs):
            csv.writer(stream).writerows(lines)
            stream.flush()


def table(args):
    import pandas as pd

    rows = pd.read_csv(args.out)
    keys = ["data", "attack", "level", "model"]
    for column in ("accuracy", "balanced"):
        plain = rows[rows["method"] == "plain"].set_index(keys)[column]
        rows[column] -= rows.set_index(keys).index.map(plain)
    rows = rows[rows["method"] != "plain"]
    for words, some in (
        ("all data sets", rows),
        ("data sets on which nothing was chosen", rows[~rows["data"].isin(CHOSEN_ON)]),
    ):
        print(f"\n{words[0].upper()}{words[1:]} ({some['data'].nunique()}):\n")
        print("| model behind | method | clean | poisoned, 95 % over data sets | median cell | worst cell | balanced |")
        print("|---" * 7 + "|")
        for (model, method), part in some.groupby(["model", "method"], sort=False):
            bad = part[part["level"] > 0]
            by_data = bad.groupby("data")["accuracy"].mean()
            half = 1.96 * by_data.std() / np.sqrt(len(by_data))
            worst = bad.loc[bad["accuracy"].idxmin()]
            print(
                f"| {model} | {method} | {part[part['level'] == 0]['accuracy'].mean():+.4f} | {by_data.mean():+.4f} "
                f"({by_data.mean() - half:+.4f} to {by_data.mean() + half:+.4f}) | {bad['accuracy'].median():+.4f} | "
                f"{worst['accuracy']:+.3f} ({worst['data']}, {worst['attack']} {worst['level']} %) | "
                f"{bad['balanced'].mean():+.4f} |"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    made = parser.parse_args()
    {"run": run, "table": table}[made.what](made)
