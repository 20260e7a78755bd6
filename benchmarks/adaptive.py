"""Test accuracy under every attack that hurts, the one that knows FLORAL among them: docs/results/adaptive.md.

    OMP_NUM_THREADS=1 python benchmarks/adaptive.py run rows.csv --seconds 3600   # appends cells that are missing
    python benchmarks/adaptive.py note rows.csv                                   # run.json beside the rows
    python benchmarks/adaptive.py table rows.csv                                  # prints the tables

Rows of one file are of one commit. `run` keeps how they were made under making/ beside them, and run.json is made of
that.
"""

import argparse
import csv
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_bench.public_tables import load_table
from floral_bench.reporting.making import begin, one_commit, write_note
from floral_learn import FloralClassifier, load_moon, poison
from floral_learn.attacks import Alfa, AlfaTilt
from floral_learn.baselines import DEFENSES

DATA = ("moon", "breast cancer", "pima", "phoneme", "spambase")
ATTACKS = ("none", "random", "near-boundary", "farthest", "alfa", "alfa-tilt", "adaptive")
SLOW = "lfa"  # sixteen seconds on 500 rows and weak: measured after all others, on as many splits as there is time for
LEVELS, SPLITS = (0.1, 0.2), range(5)
_SVM = 10.0  # C of the attackers' SVM
SETTINGS = {
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
    test = min(2000, len(y) - train)
    X, X_test, y, y_test = train_test_split(
        X, y, train_size=train, test_size=test, stratify=y, random_state=1000 + split
    )
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def cells(splits):
    """One cell per data set, level, split and attack; splits outermost, so that a stopped run is balanced."""
    for attacks in (ATTACKS, (SLOW,)):
        for split in splits:
            for name in DATA:
                for level in LEVELS:
                    yield from ((name, level, split, attack) for attack in attacks if attack != "none" or level == 0.1)


def measure(name, level, split, attack):
    """Rows of the file for one cell; the defender's seeds are not those of the attacker."""
    X, y, X_test, y_test = rows_of(name, split)
    begin = time.perf_counter()
    labels = y if attack == "none" else poison(X, y, attack, level, random_state=split, **SETTINGS.get(attack, {})).y
    seconds = time.perf_counter() - begin
    for victim, make in VICTIMS.items():
        draws = range(3) if "FLORAL" in victim.upper() else range(1)
        scores = [make(90_000 + 10 * split + draw, level).fit(X, labels).score(X_test, y_test) for draw in draws]
        yield name, level, split, attack, victim, round(float(np.mean(scores)), 5), round(seconds, 2)


def run(path, limit, splits):
    """Append what is missing, until `limit` seconds are over."""
    making = begin().beside(path)
    one_commit(path, making)
    end, seen = time.time() + limit, set()
    if path.exists():
        with path.open() as file:
            seen = {(r["data"], float(r["level"]), int(r["split"]), r["attack"]) for r in csv.DictReader(file)}
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if not seen:
            writer.writerow(COLUMNS)
        for cell in cells(splits):
            if time.time() > end:
                break
            if cell not in seen:
                started = time.perf_counter()
                writer.writerows(list(measure(*cell)))
                file.flush()
                making.add(time.perf_counter() - started)
    if making.cells:
        write_note(path)


def table(path):
    """Mean accuracies over the splits that every attack has, as Markdown; then those where the slow one was run."""
    with path.open() as file:
        rows = [{**r, "level": float(r["level"]), "accuracy": float(r["accuracy"])} for r in csv.DictReader(file)]
    for victim in VICTIMS:
        print(f"\n### {victim}\n")
        _grid(rows, victim, ATTACKS)
    print(f"\n### {SLOW}, against SVC()\n")
    _grid(rows, "SVC()", (*ATTACKS[:-1], SLOW, ATTACKS[-1]))
    print("\n" + _against_others(rows))
    attacks = (*ATTACKS[1:-1], SLOW, ATTACKS[-1])
    seconds = {a: np.mean([float(r["attack_s"]) for r in rows if r["attack"] == a]) for a in attacks}
    print("\nSeconds per attack: " + ", ".join(f"{a} {s:.2g}" for a, s in seconds.items()) + ".")


def _against_others(rows):
    """How the last attack stands beside the strongest other one, cell by cell, against FloralClassifier()."""
    victim, gaps = next(iter(VICTIMS)), []
    for name in DATA:
        for level in LEVELS:
            of = {attack: _values(rows, name, level, attack, victim) for attack in (*ATTACKS[1:], SLOW)}
            others = [of[attack] for attack in (*ATTACKS[1:-1], SLOW)]
            for split, accuracy in of[ATTACKS[-1]].items():
                gaps.append(min(other[split] for other in others if split in other) - accuracy)
    return (
        f"{ATTACKS[-1]} is the strongest in {sum(gap >= 0 for gap in gaps)} of {len(gaps)} cells (data set, level, "
        f"split) and {np.mean(gaps):.3f} below the strongest other one on their mean; at worst another one is "
        f"{max(0.0, -min(gaps)):.3f} stronger."
    )


def _grid(rows, victim, attacks):
    print("| data, flips | splits | " + " | ".join(attacks) + " |\n" + "|---" * (2 + len(attacks)) + "|")
    overall = []
    for name in DATA:
        for level in LEVELS:
            of = {a: _values(rows, name, level, a, victim) for a in attacks}
            common = set.intersection(*(set(v) for v in of.values()))
            if common:
                overall.append([float(np.mean([of[a][s] for s in common])) for a in attacks])
                print(f"| {name}, {level:.0%} | {len(common)}".replace("%", " %"), *_marked(overall[-1]), sep=" | ")
    if overall:
        print("| **mean** | ", *_marked(np.mean(overall, axis=0)), sep=" | ")


def _values(rows, name, level, attack, victim):
    level = 0.1 if attack == "none" else level
    key = (name, level, attack, victim)
    return {r["split"]: r["accuracy"] for r in rows if (r["data"], r["level"], r["attack"], r["victim"]) == key}


def _marked(means):
    return [f"**{m:.3f}**" if m == min(means) else f"{m:.3f}" for m in means[:-1]] + [
        (f"**{means[-1]:.3f}**" if means[-1] == min(means) else f"{means[-1]:.3f}") + " |"
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "note", "table"))
    parser.add_argument("rows", type=Path, help="a csv file")
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin no cell after this")
    parser.add_argument("--splits", type=int, nargs="+", default=SPLITS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    try:
        if given.what == "run":
            run(given.rows, given.seconds, given.splits)
        else:
            {"note": write_note, "table": table}[given.what](given.rows)
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
