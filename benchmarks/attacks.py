"""Label attacks: how fast they run, what they cost an SVM on Moon, and how they carry over to other models.

python benchmarks/attacks.py [speed] [damage] [transfer] [mnist] [figures]     (all but the figures by default)
"""

import argparse
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from floral_bench.metrics import sample_deviation
from floral_bench.reporting.making import begin
from floral_learn.attacks import (
    ATTACKS,
    Alfa,
    AlfaTilt,
    Farthest,
    LabelFlipping,
    PoisonDisplay,
    RandomFlips,
    SecurityCurveDisplay,
    poison,
    transfer_table,
)
from floral_learn.datasets import DataNotFoundError, load_mnist, load_moon

SEEDS = range(1, 6)
MODELS = {
    "SVC": SVC(C=10.0, gamma=1.0),
    "logistic": LogisticRegression(),
    "forest": RandomForestClassifier(100, random_state=0),
    "MLP": MLPClassifier((32, 32), max_iter=300, early_stopping=False, random_state=0),
    "k-NN": KNeighborsClassifier(5),
}


def timed(attack, X, y):
    start = time.perf_counter()
    result = attack.poison(X, y)
    return time.perf_counter() - start, result


def speed():
    print("## Speed\n\n| attack | data | seconds | target |\n|---|---|---|---|")
    svm = {"C": 10.0, "gamma": 1.0, "budget": 0.2, "random_state": 0}
    for n, target in ((500, "5 s"), (2000, "60 s")):
        data = load_moon(random_state=1, n_train=n)
        seconds, result = timed(Alfa(**svm), data.X_train, data.y_train)
        print(f"| alfa, 10 starts | Moon, n = {n} | {seconds:.2f} | {target} |")
    data = load_moon(random_state=1, n_train=2000)
    seconds, result = timed(AlfaTilt(n_restarts=50, **svm), data.X_train, data.y_train)
    print(f"| alfa-tilt, 50 restarts | Moon, n = 2000 | {seconds:.2f} | 60 s |")
    try:
        mnist = load_mnist(n_train=10_000)
    except (DataNotFoundError, ValueError) as error:
        print(f"| alfa-tilt | MNIST skipped: {str(error)[:60]} | | |")
    else:
        attack = AlfaTilt(C=5.0, gamma=0.005, budget=0.1, n_restarts=50, random_state=0)
        seconds, result = timed(attack, mnist.X_train, mnist.y_train)
        note = (
            f"MNIST 1 vs 7, n = 10000 ({result.details['gram']}; angle {result.details['angle_degrees']:.0f} degrees)"
        )
        print(f"| alfa-tilt, 50 restarts, low-rank duals | {note} | {seconds:.1f} | possible |")
    lfa_speed()


def lfa_speed(flips=125):
    """Fast mode in full; exact mode for one step at three stages of the attack, integrated over all steps."""
    data = load_moon(random_state=1)
    attack = LabelFlipping(budget=flips, surrogate=MODELS["SVC"], X_val=data.X_val, y_val=data.y_val, random_state=0)
    fast, result = timed(attack, data.X_train, data.y_train)
    stages, per_fit = (0, flips // 2, flips - 1), []
    for stage in stages:
        labels, open_rows = data.y_train.copy(), np.ones(len(data.y_train), bool)
        labels[result.indices[:stage]] *= -1
        open_rows[result.indices[:stage]] = False
        one = replace(attack, budget=1, mode="exact", mask=open_rows)
        seconds, step = timed(one, data.X_train, labels)
        per_fit.append(seconds / step.details["n_fits"])
    fits = np.array([len(data.y_train) - step for step in range(flips)])
    exact = float((fits * np.interp(np.arange(flips), stages, per_fit)).sum())
    print(f"| lfa fast, {flips} flips ({result.details['n_fits']} fits) | Moon, n = 500 | {fast:.1f} | |")
    print(
        f"| lfa exact, {flips} flips ({fits.sum()} fits), extrapolated from 3 steps | Moon, n = 500 | {exact:.0f} | |"
    )
    print(f"| lfa: exact / fast | | {exact / fast:.1f} times | 20 times |")


def settings(name, data):
    victim = MODELS["SVC"]
    if name in ("alfa", "alfa-tilt"):
        return {"C": 10.0, "gamma": 1.0}
    if name in ("top-k", "randomized-top-k", "gradient"):
        return {"surrogate": victim}
    if name == "lfa":
        return {"surrogate": victim, "X_val": data.X_val, "y_val": data.y_val}
    return {}


def damage(budget=0.2):
    print(f"\n## Damage: Moon, five splits, {budget:.0%} of 500 labels, RBF SVC (C=10, gamma=1)\n")
    accuracies, seconds = {"(clean)": []}, {}
    for seed in SEEDS:
        data = load_moon(random_state=seed)
        accuracies["(clean)"].append(MODELS["SVC"].fit(data.X_train, data.y_train).score(data.X_test, data.y_test))
        variants = {name: (name, settings(name, data)) for name in ATTACKS}
        variants["lfa, objective=loss"] = "lfa", settings("lfa", data) | {"objective": "loss"}
        for name, (attack, params) in variants.items():
            start = time.perf_counter()
            result = poison(data.X_train, data.y_train, attack, budget, seed, **params)
            seconds.setdefault(name, []).append(time.perf_counter() - start)
            assert len(result.indices) == int(budget * 500)
            score = MODELS["SVC"].fit(data.X_train, result.y).score(data.X_test, data.y_test)
            accuracies.setdefault(name, []).append(score)
    clean, random = np.array(accuracies["(clean)"]), np.array(accuracies["random"])
    print("| attack | test accuracy | lost to clean | lost more than random | s |\n|---|---|---|---|---|")
    for name, values in accuracies.items():
        values = np.array(values)
        lost, more = clean - values, random - values
        time_taken = f"{np.mean(seconds[name]):.2f}" if name in seconds else ""
        print(
            f"| {name} | {values.mean():.3f} ± {sample_deviation(values):.3f} "
            f"| {lost.mean():.3f} ± {sample_deviation(lost):.3f} "
            f"| {more.mean():+.3f} (least {more.min():+.3f}) | {time_taken} |"
        )


def transfer(budget=0.2):
    attacks = {
        "farthest": lambda model: Farthest(budget=budget, surrogate=model, random_state=0),
        "alfa": lambda model: Alfa(budget=budget, surrogate=model, n_init=1, random_state=0),
    }
    for name, make in attacks.items():
        print(f"\n## Transfer of {name}: Moon, five splits, {budget:.0%}; accuracy lost by the victim (columns)\n")
        print("| surrogate | " + " | ".join(MODELS) + " |\n|---|" + "---|" * len(MODELS))
        drops = {}
        for seed in SEEDS:
            data = load_moon(random_state=seed)
            rows = {surrogate: make(model) for surrogate, model in MODELS.items()}
            rows["(random flips)"] = RandomFlips(budget=budget, random_state=seed)
            table = transfer_table(
                data.X_train, data.y_train, data.X_test, data.y_test, attacks=rows, victims=MODELS, random_state=seed
            )
            for surrogate, row in table.drops().items():
                drops.setdefault(surrogate, []).append([row[victim] for victim in MODELS])
        for surrogate, values in drops.items():
            mean, spread = np.mean(values, axis=0), sample_deviation(values, axis=0)
            cells = " | ".join(f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, spread, strict=True))
            print(f"| {surrogate} | {cells} |")


def mnist(budget=0.1):
    print(f"\n## MNIST 1 vs 7, 4,000 training rows, {budget:.0%}; RBF SVC (C=5, gamma=0.005)\n")
    try:
        data = load_mnist(n_train=4000)
    except (DataNotFoundError, ValueError) as error:
        print(f"skipped: {str(error)[:80]}")
        return
    svm = {"C": 5.0, "gamma": 0.005}
    victim, shared = SVC(**svm), {"budget": budget, "random_state": 0}
    rows = {
        "random": RandomFlips(**shared),
        "farthest": Farthest(**shared),
        "alfa, 1 start": Alfa(n_init=1, **svm, **shared),
        "alfa-tilt, 50 restarts, low rank": AlfaTilt(n_restarts=50, gram="low_rank", **svm, **shared),
        "alfa-tilt, 50 restarts, dense": AlfaTilt(n_restarts=50, gram="dense", **svm, **shared),
    }
    print("| attack | test accuracy | s |\n|---|---|---|")
    print(f"| (clean) | {victim.fit(data.X_train, data.y_train).score(data.X_test, data.y_test):.4f} | |")
    for name, attack in rows.items():
        seconds, result = timed(attack, data.X_train, data.y_train)
        score = victim.fit(data.X_train, result.y).score(data.X_test, data.y_test)
        print(f"| {name} | {score:.4f} | {seconds:.1f} |")


def figures(folder=Path("docs/images")):
    import matplotlib.pyplot as plt

    data = load_moon(random_state=1)
    shown = ("random", "farthest", "near-boundary", "alfa", "alfa-tilt", "lfa")
    figure, axes = plt.subplots(2, 3, figsize=(11, 6.6), sharex=True, sharey=True, layout="constrained")
    for name, ax in zip(shown, axes.flat, strict=True):
        result = poison(data.X_train, data.y_train, name, 0.2, 0, **settings(name, data))
        PoisonDisplay.from_result(data.X_train, result, title=name).plot(ax)
        ax.label_outer()
        if ax is not axes[0, 0]:
            ax.get_legend().remove()
    figure.savefig(folder / "attacks_flips.png", dpi=80)
    attacks = {
        name: ATTACKS[name](**settings(name, data))
        for name in ("random", "top-k", "gradient", "farthest", "near-boundary", "alfa", "alfa-tilt")
    }
    display = SecurityCurveDisplay.from_estimator(
        MODELS["SVC"],
        data.X_train,
        data.y_train,
        data.X_test,
        data.y_test,
        attacks=attacks,
        n_repeats=3,
        random_state=0,
    )
    display.plot().figure_.savefig(folder / "attacks_security_curve.png", dpi=90)
    print(f"\nwrote {folder}/attacks_flips.png and {folder}/attacks_security_curve.png")


if __name__ == "__main__":
    sections = {"speed": speed, "damage": damage, "transfer": transfer, "mnist": mnist, "figures": figures}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", choices=[[], *sections], help="which parts to run")
    parser.add_argument("--trial", action="store_true", help="measure a tree with local changes, for a look")
    given = parser.parse_args()
    run = begin(trial=given.trial)
    print(f"{run.heading()}; OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'unset')}\n")
    for section in given.sections or ["speed", "damage", "transfer", "mnist"]:
        started = time.perf_counter()
        sections[section]()
        print(f"\n{time.perf_counter() - started:.0f} s", flush=True)
