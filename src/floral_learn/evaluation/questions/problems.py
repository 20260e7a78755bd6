"""The data of the questions suite: data sets of the arena, poisoned."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.svm import SVC

from floral_learn.attacks import poison
from floral_learn.datasets import Dataset
from floral_learn.datasets.arena import load_arena

# Real tables that no setting of the review was chosen on.
TABLES = ("pima", "phoneme", "spambase", "htru2", "banknote", "magic04")
SEVERAL = ("satimage", "digits", "wine", "iris", "letters", "labelme")
# The same tables with a rare class, or with few columns, so that the classes overlap.
UNEVEN = ("spambase-rare", "phoneme-rare", "magic04-overlap")
# Settings were chosen on scikit-learn's sets and synthetic ones, some of them relatives of these.
SMALL = ("moon", "mnist-1-7", "breast-cancer", "digits-3-8", "ellipses", "circles", "imbalanced", "overlap")
ATTACKS = ("random", "farthest", "near-boundary", "class-biased", "alfa", "evasive")


@lru_cache(maxsize=4)
def problem(name: str, split: int) -> Dataset:
    """Split number `split` of a data set: at most 1,000 training and 1,000 test rows."""
    return load_arena(name, split)


@lru_cache(maxsize=8)
def given_labels(name: str, split: int, attack: str, level: float) -> np.ndarray:
    """The training labels after `attack` at `level` percent; "clean" leaves them. Orders of one cell share them."""
    data = problem(name, split)
    if attack == "clean" or level == 0:
        labels = data.y_train_clean.copy()
    else:
        options: dict[str, Any] = {"surrogate": SVC()} if attack == "near-boundary" else {}
        budget = int(len(data.y_train_clean) * level / 100 + 1e-9)
        labels = poison(data.X_train, data.y_train_clean, attack, budget, random_state=split, **options).y
    labels.flags.writeable = False
    return labels


@lru_cache(maxsize=4)
def plain_guesses(name: str, split: int, attack: str, level: float) -> dict[str, np.ndarray]:
    """What SVC() says of the test rows, trained on the given labels and on the clean ones."""
    data, given = problem(name, split), given_labels(name, split, attack, level)
    return {
        "SVC": SVC().fit(data.X_train, given).predict(data.X_test),
        "SVC on clean labels": SVC().fit(data.X_train, data.y_train_clean).predict(data.X_test),
    }
