"""How many of three target rows a targeted attack makes two victims misread, beside the same attack without a target.

python benchmarks/targets.py  (about ten seconds; its table is in docs/attacks.md)
"""

import argparse
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from floral_learn import poison

TABLES = {
    "breast cancer": load_breast_cancer(return_X_y=True),
    "moons": make_moons(600, noise=0.2, random_state=0),
    "digits": load_digits(return_X_y=True),
}


def measure(X, y, seed, victim, budget=0.06):
    """Share of the targets misread and test accuracy, with the target and without."""
    X, X_test, y, y_test = train_test_split(scale(X), y, test_size=0.3, random_state=seed)
    right = np.flatnonzero(victim.fit(X, y).predict(X_test) == y_test)
    target = np.random.default_rng(seed).choice(right, 3, replace=False)
    for aim in (X_test[target], None):
        victim.fit(X, poison(X, y, "farthest", budget, seed, target=aim).y)
        yield (victim.predict(X_test[target]) != y_test[target]).mean()
        yield victim.score(X_test, y_test)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    warnings.simplefilter("ignore")  # the surrogate of the attack may not converge
    print(
        "| data | targets misread | test accuracy | misread without a target | test accuracy |\n|---|---|---|---|---|"
    )
    for name, (X, y) in TABLES.items():
        victims = SVC(), RandomForestClassifier(50, random_state=0)
        values = np.mean([list(measure(X, y, seed, victim)) for seed in range(5) for victim in victims], axis=0)
        print(f"| {name} | {values[0]:.0%} | {values[1]:.3f} | {values[2]:.0%} | {values[3]:.3f} |".replace("%", " %"))
