"""The attack that knows FLORAL beside all others, on five data sets: the page docs/results/adaptive.md.

OMP_NUM_THREADS=1 python benchmarks/adaptive.py run --rows rows.csv      # adds the cells that are missing
python benchmarks/adaptive.py tables --rows docs/results/adaptive/rows.csv.gz
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_bench.public_tables import load_table
from floral_bench.reporting.making import begin
from floral_bench.reporting.tables import grid
from floral_learn import FloralClassifier, load_moon, poison
from floral_learn.attacks import Alfa, AlfaTilt
from floral_learn.paper.defenses import DEFENSES

DATA, LEVELS, SPLITS = ("moon", "breast cancer", "pima", "phoneme", "spambase"), (0.1, 0.2), 5
COMPARED = ("none", "random", "near-boundary", "farthest", "alfa", "alfa-tilt", "adaptive")
SLOW = "lfa"  # measured after all others
_SVM = 10.0  # C of the attackers' SVM
OPTIONS = {
    "alfa": {"C": _SVM},
    "alfa-tilt": {"C": _SVM},
    "lfa": {"surrogate": SVC(C=_SVM)},
    "adaptive": {"starts": ("farthest", Alfa(C=_SVM), AlfaTilt(C=_SVM))},
}
VICTIMS = {
    "FloralClassifier()": lambda seed, level: FloralClassifier(random_state=seed),
    "FLORAL, budget = level": lambda seed, level: FloralClassifier(budget=level, random_state=seed),
    "SVC()": lambda seed, level: SVC(),
    "ContradictedLabels + SVC()": lambda seed, level: DEFENSES["contradicted"](random_state=seed),
}
COLUMNS = ("data", "level", "split", "attack", "victim", "accuracy", "attack_s")


def rows_of(name, split):
    """At most 500 training rows and 2,000 test rows, standardised by the former."""
    if name == "moon":
        moon = load_moon(random_state=split)
        return moon.X_train, moon.y_train, moon.X_test, moon.y_test
    X, y = load_breast_cancer(return_X_y=True) if name == "breast cancer" else load_table(name)
    train = 500 if len(y) > 1000 else int(0.65 * len(y))
    sizes = {"train_size": train, "test_size": min(2000, len(y) - train)}
    X, X_test, y, y_test = train_test_split(X, y, **sizes, stratify=y, random_state=1000 + split)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def run(path):
    """Append what is missing; splits outermost, so that a stopped run is balanced."""
    making = begin().beside(path)
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n")
    known = {tuple(cell) for cell in pd.read_csv(path)[list(COLUMNS[:4])].drop_duplicates().to_numpy()}
    for attacks in (COMPARED, (SLOW,)):
        for cell in ((d, v, s, a) for s in range(SPLITS) for d in DATA for v in LEVELS for a in attacks):
            if cell in known or (cell[3] == "none" and cell[1] != LEVELS[0]):
                continue
            started = time.perf_counter()
            with path.open("a", newline="") as stream:
                csv.writer(stream, lineterminator="\n").writerows(measure(cell))
            making.add(time.perf_counter() - started)


def measure(cell):
    """Rows of the file for one cell; the defender's seeds are not those of the attacker."""
    name, level, split, attack = cell
    X, y, X_test, y_test = rows_of(name, split)
    start = time.perf_counter()
    given = {"budget": level, "random_state": split, **OPTIONS.get(attack, {})}
    labels = y if attack == "none" else poison(X, y, attack=attack, **given).y
    seconds = time.perf_counter() - start
    for victim, make in VICTIMS.items():
        draws = range(3) if "FLORAL" in victim.upper() else range(1)
        scores = [make(90_000 + 10 * split + draw, level).fit(X, labels).score(X_test, y_test) for draw in draws]
        yield (*cell, victim, round(float(np.mean(scores)), 5), round(seconds, 2))


def tables(path):
    """Mean accuracies over the splits that every attack has; then those where the slow one was run."""
    frame = pd.read_csv(path)
    clean = frame[frame.attack == "none"]
    frame = pd.concat([frame, *(clean.assign(level=level) for level in LEVELS[1:])])  # one for all levels
    for victim in VICTIMS:
        print(f"\n### {victim}\n")
        compare(frame[frame.victim == victim], COMPARED)
    print(f"\n### {SLOW}, against SVC()\n")
    compare(frame[frame.victim == "SVC()"], (*COMPARED[:-1], SLOW, COMPARED[-1]))


def compare(frame, attacks):
    """A line per data set and level with the lowest accuracy in bold, and their mean."""
    wide = frame.pivot_table(index=["data", "level", "split"], columns="attack", values="accuracy", sort=False)
    groups = wide.reindex(columns=list(attacks)).dropna().groupby(["data", "level"], sort=False)
    means = groups.mean().reindex([(name, level) for name in DATA for level in LEVELS]).dropna()
    # half a thousandth is rounded up, whatever the last bit of a mean is
    mark = lambda row: [f"**{v + 1e-9:.3f}**" if v == min(row) else f"{v + 1e-9:.3f}" for v in row]  # noqa: E731
    lines = [
        [f"{name}, {level:.0%}".replace("%", " %"), groups.size()[name, level], *mark(row)]
        for (name, level), row in zip(means.index, means.to_numpy(), strict=True)
    ]
    head = ["data, flips", "splits", *attacks]
    print(grid(head, [*lines, ["**mean**", "", *mark(means.mean())]], left=len(head)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("run", "tables"))
    parser.add_argument("--rows", type=Path, required=True)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # the surrogate of an attack may not converge
    (run if given.action == "run" else tables)(given.rows)
