"""Label attacks: what they cost an SVM and other models, how well they aim, and the one that knows FLORAL.

python benchmarks/attacks.py                               # damage and transfer: docs/results/attacks.md
python benchmarks/attacks.py targets                       # the table of docs/attacks.md
python benchmarks/attacks.py figures                       # docs/images/attacks_*.png
python benchmarks/attacks.py adaptive --rows rows.csv      # appends cells that are missing, of one commit
python benchmarks/attacks.py tables --rows rows.csv        # the tables of docs/results/adaptive.md
"""

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from csv_rows import append
from sklearn.datasets import load_breast_cancer, load_digits, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC

from floral_bench.displays import SecurityCurveDisplay
from floral_bench.public_tables import load_table
from floral_bench.reporting.making import begin
from floral_bench.reporting.tables import grid, spread
from floral_bench.transfer import transfer_table
from floral_learn import FloralClassifier, load_moon, poison
from floral_learn.attacks import ATTACKS, Alfa, AlfaTilt, Farthest, PoisonDisplay, RandomFlips
from floral_learn.paper.defenses import DEFENSES

SEEDS = range(1, 6)
BUDGET = 0.2
LEVEL = f"{100 * BUDGET:.0f} %"
MODELS = {
    "SVC": SVC(C=10.0, gamma=1.0),
    "logistic": LogisticRegression(),
    "forest": RandomForestClassifier(100, random_state=0),
    "MLP": MLPClassifier((32, 32), max_iter=300, early_stopping=False, random_state=0),
    "k-NN": KNeighborsClassifier(5),
}


def show(head, lines):
    print(grid(head, lines, left=len(head)))


# --- Moon: damage, transfer, pictures ---------------------------------------------------------------------------------


def settings(name, data):
    """What the attack knows of the victim, where it can use it."""
    victim = MODELS["SVC"]
    if name in ("alfa", "alfa-tilt"):
        return {"C": 10.0, "gamma": 1.0}
    if name in ("top-k", "randomized-top-k", "gradient"):
        return {"surrogate": victim}
    return {"surrogate": victim, "X_val": data.X_val, "y_val": data.y_val} if name == "lfa" else {}


def damage():
    print(f"## Damage: Moon, five splits, {LEVEL} of 500 labels, RBF SVC (C=10, gamma=1)\n")
    found = {"(clean)": []}
    for seed in SEEDS:
        data = load_moon(random_state=seed)
        score = lambda y, data=data: MODELS["SVC"].fit(data.X_train, y).score(data.X_test, data.y_test)  # noqa: E731
        found["(clean)"].append((score(data.y_train), np.nan))
        variants = {name: (name, settings(name, data)) for name in ATTACKS}
        variants["lfa, objective=loss"] = "lfa", settings("lfa", data) | {"objective": "loss"}
        for name, (attack, params) in variants.items():
            start = time.perf_counter()
            result = poison(data.X_train, data.y_train, attack=attack, budget=BUDGET, random_state=seed, **params)
            seconds = time.perf_counter() - start
            found.setdefault(name, []).append((score(result.y), seconds))
    table = {name: np.array(values) for name, values in found.items()}
    clean, random = table["(clean)"][:, 0], table["random"][:, 0]
    more = lambda values: f"{values.mean():+.3f} (least {values.min():+.3f})"  # noqa: E731
    show(
        ["attack", "test accuracy", "lost to clean", "lost more than random", "s"],
        [
            [name, spread(hit), spread(clean - hit), more(random - hit), "" if np.isnan(s[0]) else f"{s.mean():.2f}"]
            for name, (hit, s) in ((name, values.T) for name, values in table.items())
        ],
    )


def transfer():
    attacks = {
        "farthest": lambda model: Farthest(budget=BUDGET, surrogate=model, random_state=0),
        "alfa": lambda model: Alfa(budget=BUDGET, surrogate=model, n_init=1, random_state=0),
    }
    for name, make in attacks.items():
        print(f"\n## Transfer of {name}: Moon, five splits, {LEVEL}; accuracy lost by the victim (columns)\n")
        drops = {}
        for seed in SEEDS:
            data = load_moon(random_state=seed)
            rows = {surrogate: make(model) for surrogate, model in MODELS.items()}
            rows["(random flips)"] = RandomFlips(budget=BUDGET, random_state=seed)
            table = transfer_table(
                data.X_train, data.y_train, data.X_test, data.y_test, attacks=rows, victims=MODELS, random_state=seed
            )
            for surrogate, row in table.drops().items():
                drops.setdefault(surrogate, []).append([row[victim] for victim in MODELS])
        lines = [[surrogate, *map(spread, zip(*values, strict=True))] for surrogate, values in drops.items()]
        show(["surrogate", *MODELS], lines)


def figures(folder=Path("docs/images")):
    import matplotlib.pyplot as plt

    data = load_moon(random_state=1)
    shown = ("random", "farthest", "near-boundary", "alfa", "alfa-tilt", "lfa")
    figure, axes = plt.subplots(2, 3, figsize=(11, 6.6), sharex=True, sharey=True, layout="constrained")
    for name, ax in zip(shown, axes.flat, strict=True):
        result = poison(data.X_train, data.y_train, attack=name, budget=BUDGET, random_state=0, **settings(name, data))
        PoisonDisplay.from_result(data.X_train, result, title=name).plot(ax)
        ax.label_outer()
        if ax is not axes[0, 0]:
            ax.get_legend().remove()
    figure.savefig(folder / "attacks_flips.png", dpi=80)
    curves = ("random", "top-k", "gradient", "farthest", "near-boundary", "alfa", "alfa-tilt")
    attacks = {name: ATTACKS[name](**settings(name, data)) for name in curves}
    parts = (data.X_train, data.y_train, data.X_test, data.y_test)
    display = SecurityCurveDisplay.from_estimator(MODELS["SVC"], *parts, attacks=attacks, n_repeats=3, random_state=0)
    display.plot().figure_.savefig(folder / "attacks_security_curve.png", dpi=90)


# --- three target rows, and the same attack without a target ----------------------------------------------------------


def targets():
    tables = {
        "breast cancer": load_breast_cancer(return_X_y=True),
        "moons": make_moons(600, noise=0.2, random_state=0),
        "digits": load_digits(return_X_y=True),
    }
    lines = []
    for name, (X, y) in tables.items():
        victims = SVC(), RandomForestClassifier(50, random_state=0)
        values = np.mean([list(aimed(X, y, seed, victim)) for seed in range(5) for victim in victims], axis=0)
        lines.append([name, *(f"{v:.3f}" if i % 2 else f"{v:.0%}".replace("%", " %") for i, v in enumerate(values))])
    show(["data", "targets misread", "test accuracy", "misread without a target", "test accuracy"], lines)


def aimed(X, y, seed, victim):
    """Share of the targets misread and test accuracy, with the target and without."""
    X, X_test, y, y_test = train_test_split(scale(X), y, test_size=0.3, random_state=seed)
    right = np.flatnonzero(victim.fit(X, y).predict(X_test) == y_test)
    target = np.random.default_rng(seed).choice(right, 3, replace=False)
    for aim in (X_test[target], None):
        victim.fit(X, poison(X, y, attack="farthest", budget=0.06, random_state=seed, target=aim).y)
        yield (victim.predict(X_test[target]) != y_test[target]).mean()
        yield victim.score(X_test, y_test)


# --- the attack that knows FLORAL beside all others, on five data sets ------------------------------------------------

DATA, LEVELS = ("moon", "breast cancer", "pima", "phoneme", "spambase"), (0.1, 0.2)
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


def adaptive(path, limit):
    """Append what is missing, until `limit` seconds are over; splits outermost, so that a stopped run is balanced."""
    making, started = begin().beside(path), time.perf_counter()
    everything = [
        (name, level, split, attack)
        for attacks in (COMPARED, (SLOW,)) for split in range(5) for name in DATA for level in LEVELS
        for attack in attacks if attack != "none" or level == LEVELS[0]
    ]  # fmt: skip
    for _ in append(path, COLUMNS, measure, everything, seconds=limit):
        started, before = time.perf_counter(), started
        making.add(started - before)


def measure(cell):
    """Rows of the file for one cell; the defender's seeds are not those of the attacker."""
    name, level, split, attack = cell
    X, y, X_test, y_test = rows_of(name, split)
    start = time.perf_counter()
    given = {"budget": level, "random_state": split, **OPTIONS.get(attack, {})}
    labels = y if attack == "none" else poison(X, y, attack=attack, **given).y
    seconds = time.perf_counter() - start
    rows = []
    for victim, make in VICTIMS.items():
        draws = range(3) if "FLORAL" in victim.upper() else range(1)
        scores = [make(90_000 + 10 * split + draw, level).fit(X, labels).score(X_test, y_test) for draw in draws]
        rows.append((*cell, victim, round(float(np.mean(scores)), 5), round(seconds, 2)))
    return rows


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
    ours = frame[frame.victim == next(iter(VICTIMS))]
    wide = ours.pivot_table(index=["data", "level", "split"], columns="attack", values="accuracy").drop(columns="none")
    gaps = wide.drop(columns=COMPARED[-1]).min(axis=1) - wide[COMPARED[-1]]
    print(
        f"\n{COMPARED[-1]} is the strongest in {(gaps >= 0).sum()} of {len(gaps)} cells (data set, level, "
        f"split) and {gaps.mean():.3f} below the strongest other one on their mean; at worst another one is "
        f"{max(0.0, -gaps.min()):.3f} stronger."
    )
    seconds = frame.groupby("attack").attack_s.mean()
    attacks = (*COMPARED[1:-1], SLOW, COMPARED[-1])
    print("\nSeconds per attack: " + ", ".join(f"{a} {seconds[a]:.2g}" for a in attacks) + ".")


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
    show(["data, flips", "splits", *attacks], [*lines, ["**mean**", "", *mark(means.mean())]])


def main():
    parts = {"damage": damage, "transfer": transfer, "targets": targets, "figures": figures}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *parts, "adaptive", "tables"], help="default: damage transfer")
    parser.add_argument("--rows", type=Path, default=Path("rows.csv"), help="of the attack that knows FLORAL")
    parser.add_argument("--seconds", type=float, default=np.inf, help="adaptive: begin no cell after this")
    parser.add_argument("--trial", action="store_true", help="measure a tree with local changes, for a look")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # the surrogate of an attack may not converge
    try:
        if given.parts == ["tables"]:
            return tables(given.rows)
        if given.parts == ["adaptive"]:
            return adaptive(given.rows, given.seconds)
        run = begin(trial=given.trial)
    except ValueError as error:
        sys.exit(str(error))
    print(f"{run.heading()}; OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'unset')}\n")
    for part in given.parts or ["damage", "transfer"]:
        started = time.perf_counter()
        parts[part]()
        print(f"\n{time.perf_counter() - started:.0f} s", flush=True)
    return None


if __name__ == "__main__":
    main()
