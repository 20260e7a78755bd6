"""What ContradictedLabels brings behind four models, told nothing: accuracy minus that of the same plain model.

python benchmarks/arena.py run --out FOLDER --minutes 9    every cell, beside CleanLearning (cleanlab); resumable
python benchmarks/arena.py rules --out FOLDER              the same for other rules on the same evidence
python benchmarks/arena.py table --out FOLDER              the tables of docs/results/arena.md
python benchmarks/arena.py rules-table --out FOLDER        every rule, and the one chosen on all other data sets

28 data sets: those of `floral_bench.arena_data` that need no embeddings, and a9a, elec2, students, trec and catdog. One
split each, at most 400 training and 1,000 test rows; clean labels and four kinds of flips at 10 and 30 %.
"""

import argparse
import csv
import os
import time
import warnings
from functools import cache
from itertools import product
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_bench.arena_data import ARENA, load_arena
from floral_learn import ContradictedLabels, judge_labels, poison
from floral_learn.datasets.files import search_path
from floral_learn.labels.flagging import TELLING_GAIN
from floral_learn.sanitizers.inputs import spare_one_of_each_class

#: Data on which the numbers of labels/ were chosen (benchmarks/label_rules.py), and their relatives.
CHOSEN_ON = (
    "digits", "digits-3-8", "wine", "breast-cancer", "banknote", "phoneme", "phoneme-rare", "satimage", "trec",
    "mnist-1-7",
)  # fmt: skip
NEW = ("a9a", "elec2", "students", "trec", "catdog")
SETS = (*(name for name in ARENA if name not in ("imdb",)), *NEW)
N_TRAIN, N_TEST = 400, 1000
KINDS = (*((a, level) for level in (30, 10) for a in ("random", "class-biased", "farthest", "near-rbf")), ("none", 0))
MODELS = {
    "SVC": lambda: SVC(),
    "logistic regression": lambda: LogisticRegression(max_iter=500),
    "random forest": lambda: RandomForestClassifier(random_state=0, n_jobs=1),
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
}
COLUMNS = ("data", "attack", "level", "model", "method", "dropped", "accuracy", "balanced")
KEYS = ["data", "attack", "level", "model"]
GOAL_WORST = -0.03  # a rule that costs more than this in any cell is not chosen


def problem(name):
    """Training rows, labels, test rows, labels; standardised."""
    if name not in NEW:
        data = load_arena(name, seed=1, n_train=N_TRAIN)
        return data.X_train, np.unique(data.y_train, return_inverse=True)[1], data.X_test[:N_TEST], np.searchsorted(
            np.unique(data.y_train), data.y_test[:N_TEST]
        )  # fmt: skip
    path = next(p for p in (folder / "tables" / f"{name}.npz" for folder in search_path()) if p.is_file())
    with np.load(path) as stored:
        X, y = stored["X"].astype(float), np.unique(stored["y"], return_inverse=True)[1]
    order = np.random.default_rng(1).permutation(len(y))
    train, test = order[:N_TRAIN], order[N_TRAIN : N_TRAIN + N_TEST]
    scale = StandardScaler().fit(X[train])
    return scale.transform(X[train]), y[train], scale.transform(X[test]), y[test]


def flipped(X, y, attack, level):
    if attack == "none":
        return y
    kind, victim = ("near-boundary", {"surrogate": SVC()}) if attack == "near-rbf" else (attack, {})
    return poison(X, y, kind, level / 100, random_state=0, **victim).y


class Scores:
    """Accuracy of every model trained on some rows of a data set; the same labels are never trained on twice."""

    def __init__(self, X, y, X_test, y_test):
        self.X, self.y, self.X_test, self.y_test, self.known = X, y, X_test, y_test, {}

    @staticmethod
    @cache
    def of_data(name):
        return Scores(*problem(name))

    def of(self, model, labels, kept):
        key = model, labels.tobytes(), kept.tobytes()
        if key not in self.known:
            said = MODELS[model]().fit(self.X[kept], labels[kept]).predict(self.X_test)
            self.known[key] = self.judged(said)
        return self.known[key]

    def judged(self, said):
        return float((said == self.y_test).mean()), float(balanced_accuracy_score(self.y_test, said))


def run(args):
    """One line per cell, model and method; to measure a changed rule anew, take its lines out of cells.csv.

    The cheap models come first and data sets take turns, so that a run that is cut short has the same cells of all.
    """
    path, end = args.out / "cells.csv", time.monotonic() + 60 * args.minutes
    done = finished(path)
    same = {tuple(row[:5]): row[6:] for row in csv.reader(path.open())}
    for model, method, (attack, level), name in product(args.models or MODELS, args.methods or METHODS, KINDS, SETS):
        if (name, attack, level, model, method) in done:
            continue
        if time.monotonic() > end:
            return
        scores, cell = Scores.of_data(name), (name, attack, level)
        before = same.get((name, attack, str(level), model, "plain"))
        if args.acting and method != "CleanLearning" and kept_rows(*cell, args.out).all():
            append(path, [(*cell, model, method, 0, *(before or ("", "")))])  # nothing left out: no difference
            continue
        if method == "ContradictedLabels" and before and kept_rows(*cell, args.out).all():
            append(path, [(*cell, model, method, 0, *before)])  # nothing left out: the plain model
            continue
        dropped, (right, even) = METHODS[method](model, cell, scores, args.out)
        append(path, [(name, attack, level, model, method, dropped, f"{right:.4f}", f"{even:.4f}")])


def plain(model, cell, scores, folder):
    given = labels_of(*cell)
    return 0, scores.of(model, given, np.ones(len(given), dtype=bool))


def contradicted(model, cell, scores, folder):
    kept = kept_rows(*cell, folder)
    return int((~kept).sum()), scores.of(model, labels_of(*cell), kept)


def clean_learning(model, cell, scores, folder):
    from cleanlab.classification import CleanLearning

    present, codes = np.unique(labels_of(*cell), return_inverse=True)
    certain = SVC(probability=True, random_state=0) if model == "SVC" else MODELS[model]()
    made = CleanLearning(certain, seed=0, find_label_issues_kwargs={"n_jobs": 1}).fit(scores.X, codes)
    dropped = int(made.get_label_issues()["is_label_issue"].sum())
    return dropped, scores.judged(present[made.predict(scores.X_test)])


METHODS = {"plain": plain, "ContradictedLabels": contradicted, "CleanLearning": clean_learning}


@cache
def labels_of(name, attack, level):
    scores = Scores.of_data(name)
    return flipped(scores.X, scores.y, attack, level)


def kept_rows(name, attack, level, folder):
    """Rows that the rule keeps, from `folder` where they are known."""
    path = folder / "kept" / f"{name}-{attack}-{level}.npy"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        rule, given = ContradictedLabels(random_state=0), labels_of(name, attack, level)
        rule.fit_resample(Scores.of_data(name).X, given)
        np.save(path, np.isin(np.arange(len(given)), rule.sample_indices_))
    return np.load(path)


def rules(args):
    """The same for other rules on the same evidence: thresholds, and labels replaced instead of left out."""
    path, end = args.out / "rules.csv", time.monotonic() + 60 * args.minutes
    done = finished(path)
    for (attack, level), name in product(KINDS, SETS):
        if (name, attack, level, "SVC", "plain") in done:
            continue
        if time.monotonic() > end:
            return
        scores, lines = Scores.of_data(name), []
        given = flipped(scores.X, scores.y, attack, level)
        for rule, (labels, kept) in candidates(judge_labels(scores.X, given, random_state=0)).items():
            changed = int((~kept).sum() + (labels != given).sum())
            for model in args.models or MODELS:
                right, even = scores.of(model, labels, kept)
                lines.append((name, attack, level, model, rule, changed, f"{right:.4f}", f"{even:.4f}"))
        append(path, lines)


def candidates(evidence):
    """Rule -> labels and kept rows."""
    flags, codes, names = evidence.flags(), evidence.codes, evidence.classes
    given, everything = names[codes], np.ones(len(codes), dtype=bool)
    found = {"plain": (given, everything)}
    for explained, overlap in product((0.3, 0.5, 0.55, 0.7), (0.1, 1.0)):
        act = flags.gain >= TELLING_GAIN and flags.explained >= explained and flags.overlap <= overlap
        doubted = flags.flagged & (flags.wrong_probability > 0.5) & act
        doubted = spare_one_of_each_class(doubted, codes, flags.wrong_probability)
        words = f"explained {explained}, " + ("any overlap" if overlap == 1 else f"overlap {overlap}")
        found[f"leave out: {words}"] = given, ~doubted
        if explained == 0.55:
            found[f"replace: {words}"] = names[np.where(doubted, flags.suggested, codes)], everything
    return found


def finished(path):
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(",".join(COLUMNS) + "\n")
    with path.open() as stream:
        lines = csv.DictReader(stream)
        return {(row["data"], row["attack"], int(row["level"]), row["model"], row["method"]) for row in lines}


def append(path, lines):
    with path.open("a", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(lines)


def gains(path):
    """Rows of a file, with accuracies minus those of the plain model."""
    rows = pd.read_csv(path)
    for column in ("accuracy", "balanced"):
        plain = rows[rows["method"] == "plain"].set_index(KEYS)[column]
        rows[column] -= rows.set_index(KEYS).index.map(plain)
        rows.loc[(rows["method"] == "ContradictedLabels") & (rows["dropped"] == 0), column] = 0.0
    return rows[rows["method"] != "plain"].dropna(subset="accuracy")


def summary(part):
    """Clean mean; mean and half width of its interval over data sets; median, worst cell, balanced mean."""
    bad = part[part["level"] > 0]
    by_data = bad.groupby("data")["accuracy"].mean()
    half = 1.96 * by_data.std() / np.sqrt(len(by_data))
    worst = bad.loc[bad["accuracy"].idxmin()]
    return {
        "clean": part[part["level"] == 0]["accuracy"].mean(), "clean worst": part[part["level"] == 0]["accuracy"].min(),
        "gain": by_data.mean(), "half": half, "median": bad["accuracy"].median(), "worst": worst["accuracy"],
        "where": f"{worst['data']}, {worst['attack']} {worst['level']} %", "balanced": bad["balanced"].mean(),
        "acted": (bad["dropped"] > 0).mean(),
    }  # fmt: skip


def table(args):
    """Means with intervals over data sets; where CleanLearning was not run in all cells, ours in the same ones too."""
    rows = gains(args.out / "cells.csv")
    chosen = rows["data"].isin(CHOSEN_ON)
    for words, some in (("All data sets", rows), ("Data on which nothing was chosen", rows[~chosen])):
        print(f"\n{words} ({some['data'].nunique()}):\n")
        print("| model | method | cells | clean labels | poisoned (95 % over data sets) | median | worst | balanced |")
        print("|---" * 8 + "|")
        for model, of_model in some.groupby("model", sort=False):
            ours, peer = (of_model[of_model["method"] == name] for name in ("ContradictedLabels", "CleanLearning"))
            parts = [("ContradictedLabels", ours)]
            if len(peer):
                parts.append(("CleanLearning", peer))
            if 0 < len(peer) < len(ours):
                parts.append(("ContradictedLabels, the same cells", ours.merge(peer[KEYS], on=KEYS)))
            for method, part in parts:
                s = summary(part)
                clean = "" if np.isnan(s["clean"]) else f"{s['clean']:+.4f} (worst {s['clean worst']:+.3f})"
                interval = f"{s['gain']:+.4f} ({s['gain'] - s['half']:+.4f} to {s['gain'] + s['half']:+.4f})"
                worst = f"{s['worst']:+.3f} ({s['where']})"
                print(f"| {model} | {method} | {len(part)} | {clean} | {interval} | {s['median']:+.4f} | {worst} | "
                      f"{s['balanced']:+.4f} |")  # fmt: skip
    bad = rows[(rows["level"] > 0) & (rows["method"] == "ContradictedLabels")]
    for column, words in (("attack", "attack"), ("data", "data set")):
        print(f"\nContradictedLabels by {words}, poisoned cells:\n\n| {words} | acts in | " + " | ".join(MODELS) + " |")
        print("|---" * (2 + len(MODELS)) + "|")
        for name, part in bad.groupby(["attack", "level"] if column == "attack" else "data", sort=False):
            acted = part[part["model"] == "SVC"]["dropped"] > 0
            means = part.groupby("model")["accuracy"].mean()
            title = f"{name[0]} {name[1]} %" if column == "attack" else name
            values = " | ".join(f"{means[m]:+.4f}" if m in means else "" for m in MODELS)
            print(f"| {title} | {acted.sum()} of {len(acted)} | {values} |")


def rules_table(args):
    """Every rule over all data sets, and the one that is chosen on all others, data set by data set."""
    rows = gains(args.out / "rules.csv")
    bad, models = rows[rows["level"] > 0], list(rows["model"].unique())
    print("| rule | clean | " + " | ".join(models) + " | worst cell | cells in which it acts |")
    print("|---" * (4 + len(models)) + "|")
    for rule, part in rows.groupby("method", sort=False):
        found = [summary(part[part["model"] == model]) for model in models]
        worst = min(found, key=lambda s: s["worst"])
        print(f"| {rule} | {np.mean([s['clean'] for s in found]):+.4f} | "
              + " | ".join(f"{s['gain']:+.4f} ({s['worst']:+.3f})" for s in found)
              + f" | {worst['where']} | {100 * found[0]['acted']:.0f} % |")  # fmt: skip
    left_out, picked = [], {}
    for name in bad["data"].unique():
        others = bad[bad["data"] != name].groupby("method")["accuracy"].agg(["mean", "min"])
        safe = others[others["min"] >= GOAL_WORST]["mean"]
        best = safe.idxmax()
        picked[best] = picked.get(best, 0) + 1
        left_out.append(rows[(rows["data"] == name) & (rows["method"] == best)])
    found = pd.concat(left_out)
    print(
        f"\nChosen on all other data sets (largest mean gain, no cell below {GOAL_WORST}), judged on the one left out."
    )
    print("Chosen: " + "; ".join(f"{rule} ({times} times)" for rule, times in picked.items()) + "\n")
    print(
        "| model behind | clean labels | poisoned, 95 % over data sets | worst cell | balanced |\n|---|---|---|---|---|"
    )
    for model in models:
        s = summary(found[found["model"] == model])
        interval = f"{s['gain']:+.4f} ({s['gain'] - s['half']:+.4f} to {s['gain'] + s['half']:+.4f})"
        worst = f"{s['worst']:+.3f} ({s['where']})"
        print(f"| {model} | {s['clean']:+.4f} | {interval} | {worst} | {s['balanced']:+.4f} |")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    doings = {"run": run, "rules": rules, "table": table, "rules-table": rules_table}
    parser.add_argument("what", choices=list(doings))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=9.0, help="stop after so many; the next call goes on")
    parser.add_argument("--models", nargs="*", help="only these")
    parser.add_argument("--methods", nargs="*", help="of run: only these")
    parser.add_argument("--acting", action="store_true", help="of run: train only where the rule leaves labels out")
    made = parser.parse_args()
    doings[made.what](made)
