"""The data of the questions suite: data sets of the arena, poisoned."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from floral_bench.arena_data import load_arena
from floral_bench.cell_data import flips_at
from floral_learn.attacks import poison
from floral_learn.datasets import Dataset

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
        budget = flips_at(level, len(data.y_train_clean))
        labels = poison(data.X_train, data.y_train_clean, attack=attack, budget=budget, random_state=split, **options).y
    labels.flags.writeable = False
    return labels


@lru_cache(maxsize=2)
def _kernels(name: str, split: int) -> tuple[np.ndarray, np.ndarray]:
    """The kernel of SVC() between training rows, and between test and training rows."""
    data = problem(name, split)
    gamma = 1.0 / (data.X_train.shape[1] * data.X_train.var())
    return rbf_kernel(data.X_train, gamma=gamma), rbf_kernel(data.X_test, data.X_train, gamma=gamma)


class SharedKernelSVC(ClassifierMixin, BaseEstimator):
    """SVC() trained on the training rows of a problem and asked about its test rows, with kernels computed once.

    A problem's rows are fitted dozens of times with other labels and weights. The rows that are handed over must be all
    of the problem's, in order.
    """

    def __init__(self, name: str, split: int) -> None:
        self.name, self.split = name, split

    def fit(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None = None) -> SharedKernelSVC:
        """Fit on all training rows."""
        kernel = _kernels(self.name, self.split)[0]
        if len(X) != len(kernel):
            raise ValueError(f"X has {len(X)} rows and the problem {len(kernel)}; all of them must be given, in order")
        self.model_ = SVC(kernel="precomputed").fit(kernel, y, sample_weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Classes of all test rows."""
        kernel = _kernels(self.name, self.split)[1]
        if len(X) != len(kernel):
            raise ValueError(f"X has {len(X)} rows and the problem {len(kernel)}; all of them must be given, in order")
        return self.model_.predict(kernel)


@lru_cache(maxsize=4)
def plain_guesses(name: str, split: int, attack: str, level: float) -> dict[str, np.ndarray]:
    """What SVC() says of the test rows, trained on the given labels and on the clean ones."""
    data, model = problem(name, split), SharedKernelSVC(name, split)
    labels = {"SVC": given_labels(name, split, attack, level), "SVC on clean labels": data.y_train_clean}
    return {words: model.fit(data.X_train, y).predict(data.X_test) for words, y in labels.items()}
