"""On Moon every attack that claims to be strong costs an RBF SVM clearly more than random flips; and it transfers."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from floral_bench.transfer import transfer_table
from floral_learn.attacks import ATTACKS, Farthest, poison
from floral_learn.datasets import load_moon

VICTIM = SVC(C=10.0, gamma=1.0)


def accuracy(data, labels):
    return VICTIM.fit(data.X_train, labels).score(data.X_test, data.y_test)


def settings(name, data):
    if name in ("alfa", "alfa-tilt"):
        return {"C": 10.0, "gamma": 1.0}
    if name == "lfa":
        return {"surrogate": VICTIM, "X_val": data.X_val, "y_val": data.y_val, "n_check": 6, "n_first": 60}
    return {}


@pytest.mark.parametrize(
    ("name", "n_train", "splits"),
    [
        ("farthest", 500, 5),
        ("alfa", 500, 3),
        ("alfa-tilt", 500, 3),
        ("lfa", 150, 2),
        pytest.param("alfa", 500, 5, marks=pytest.mark.slow),
        pytest.param("alfa-tilt", 500, 5, marks=pytest.mark.slow),
        pytest.param("lfa", 150, 5, marks=pytest.mark.slow),
    ],
)
def test_twenty_percent_cost_far_more_than_random_flips(name, n_train, splits):
    losses = {"random": [], name: []}
    for seed in range(1, splits + 1):
        data = load_moon(random_state=seed, n_train=n_train, n_val=300, n_test=1000)
        clean = accuracy(data, data.y_train)
        for attack in losses:
            result = poison(
                data.X_train, data.y_train, attack=attack, budget=0.2, random_state=0, **settings(attack, data)
            )
            assert len(result.indices) == n_train // 5
            losses[attack].append(clean - accuracy(data, result.y))
    gap = np.array(losses[name]) - np.array(losses["random"])
    assert gap.mean() > 0.08
    assert gap.min() > 0.02


def test_labels_poisoned_against_one_model_hurt_another():
    data = load_moon(random_state=1)
    victims = {"svc": VICTIM, "knn": KNeighborsClassifier(15)}
    table = transfer_table(
        data.X_train,
        data.y_train,
        data.X_test,
        data.y_test,
        attacks={
            "random": ATTACKS["random"](budget=0.2, random_state=0),
            "logistic": Farthest(budget=0.2, surrogate=LogisticRegression()),
        },
        victims=victims,
        random_state=0,
    )
    assert (table.loc["logistic"] < table.loc["random"] - 0.05).all()
