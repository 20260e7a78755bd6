"""The attacks that search flip the same labels as before for the same seeds.

Where flips are meant to change: python tests/attacks/test_golden_flips.py
"""

import json
from pathlib import Path

import pytest
from sklearn.datasets import make_blobs, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from floral_learn import FloralClassifier, poison

FILE = Path(__file__).with_name("golden_flips.json")
SETTINGS = {
    "alfa": {"C": 10.0, "gamma": 1.0, "n_init": 3},
    "alfa, another classifier": {"surrogate": LogisticRegression(), "n_init": 2},
    "alfa-tilt": {"C": 10.0, "gamma": 1.0, "n_restarts": 30},
    "alfa-tilt, low rank": {"gamma": 1.0, "n_restarts": 30, "gram": "low_rank", "rank": 40},
    "lfa": {"n_check": 4, "n_first": 20},
    "lfa, exact": {"surrogate": SVC(C=10.0, gamma=1.0), "n_check": 99, "n_first": 99, "budget": 3},
    "lfa, three classes": {"n_check": 3, "n_first": 10, "budget": 4},
    "adaptive": {"victim": FloralClassifier(budget=0.1), "n_regions": 3, "n_steps": 2},
}


def flips(name):
    """Rows that are flipped, in the order of the attack, and their new labels."""
    X, y = make_moons(90, noise=0.3, random_state=1)
    if "three" in name:
        X, y = make_blobs(60, centers=3, cluster_std=3.0, random_state=0)
    settings = {"budget": 9, "random_state": 5, "class_limits": {0: 6}} | SETTINGS[name]
    result = poison(X, y, attack=name.split(",")[0], **settings)
    return [[int(row), int(result.y[row])] for row in result.indices]


@pytest.mark.parametrize("name", SETTINGS)
def test_the_same_flips_as_before(name):
    assert flips(name) == json.loads(FILE.read_text())[name]


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: flips(name) for name in SETTINGS}) + "\n")
