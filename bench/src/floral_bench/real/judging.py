"""Who says which given labels look wrong: ours, cleanlab, and rules of one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC

from floral_bench.real.sets import Problem
from floral_learn import find_label_issues

OURS, GIVEN = "ours", "ours, probabilities of LR"
CONTRADICTED = "contradicted by our probabilities"
NEIGHBOURS = 10
TREES = 60


@dataclass(frozen=True)
class Judged:
    """A score that ranks labels, those that are flagged, and the share of wrong ones where somebody estimates it."""

    score: np.ndarray
    flagged: np.ndarray
    share: float = float("nan")


def model(name: str, seed: int) -> Any:
    """A classifier as the tables name it; the same settings everywhere."""
    if name == "SVC":
        return SVC()
    if name == "LR":
        return LogisticRegression(C=0.1, max_iter=300)
    return RandomForestClassifier(TREES, min_samples_leaf=3, random_state=seed)


class Judge:
    """All that is said about the given labels of one problem; what several of them need is computed once."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.seed = problem, seed
        self.codes = np.unique(problem.given, return_inverse=True)[1]
        self.probability = lru_cache(self._probability)
        self.issues = lru_cache(self._issues)

    def _issues(self, given: bool = False) -> Any:
        if self.problem.probability is not None:
            return find_label_issues(None, self.problem.given, pred_probs=self.problem.probability)
        if given:
            return find_label_issues(None, self.problem.given, pred_probs=self.probability("LR"))
        return find_label_issues(self.problem.X, self.problem.given, random_state=self.seed)

    def _probability(self, name: str) -> np.ndarray:
        """Held-out probabilities (n, M): ours, those that came with the set, or of a model on five folds."""
        if self.problem.probability is not None:
            return self.problem.probability / self.problem.probability.sum(axis=1, keepdims=True)
        if name == OURS:
            found = np.maximum(np.asarray(self.issues().probability, dtype=float), 1e-9)
            return found / found.sum(axis=1, keepdims=True)
        judge = model(name, self.seed)
        if name == "SVC":
            judge = CalibratedClassifierCV(judge, ensemble=False, cv=3)
        folds = StratifiedKFold(5, shuffle=True, random_state=self.seed)
        return cross_val_predict(judge, self.problem.X, self.codes, cv=folds, method="predict_proba")

    def ours(self, given: bool = False) -> Judged:
        """`find_label_issues`, on rows or (`given`) on the probabilities of another model alone."""
        found = self.issues(given)
        return Judged(np.asarray(found.score), np.asarray(found.flagged), float(found.wrong_share))

    def cleanlab(self, name: str) -> Judged:
        """cleanlab's flags with its defaults, and the rank by self-confidence."""
        from cleanlab.filter import find_label_issues as find

        probability = self.probability(name)
        flagged = np.asarray(find(self.codes, probability, n_jobs=1))
        return Judged(self._against(probability), flagged, float(flagged.mean()))

    def contradicted(self, name: str = OURS) -> Judged:
        """Held-out probabilities prefer another class."""
        probability = self.probability(name)
        return Judged(self._against(probability), probability.argmax(axis=1) != self.codes)

    def in_sample(self) -> Judged:
        """The margin of a logistic regression that has seen the labels."""
        probability = model("LR", self.seed).fit(self.problem.X, self.codes).predict_proba(self.problem.X)
        others = probability.copy()
        others[np.arange(len(others)), self.codes] = 0
        margin = others.max(axis=1) - probability[np.arange(len(others)), self.codes]
        return Judged(margin, margin > 0)

    def neighbours(self) -> Judged:
        """The vote of the nearest rows, as SimiFeat has it."""
        near = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(self.problem.X).kneighbors(return_distance=False)
        votes = (self.codes[near][:, :, None] == np.arange(self.codes.max() + 1)).mean(axis=1)
        return Judged(self._against(votes), votes.argmax(axis=1) != self.codes)

    def _against(self, probability: np.ndarray) -> np.ndarray:
        return 1 - probability[np.arange(len(self.codes)), self.codes]


JUDGES: dict[str, Callable[[Judge], Judged]] = {
    OURS: lambda judge: judge.ours(),
    GIVEN: lambda judge: judge.ours(given=True),
    "cleanlab, LR": lambda judge: judge.cleanlab("LR"),
    "cleanlab, SVC": lambda judge: judge.cleanlab("SVC"),
    "cleanlab, forest": lambda judge: judge.cleanlab("forest"),
    "cleanlab, our probabilities": lambda judge: judge.cleanlab(OURS),
    CONTRADICTED: lambda judge: judge.contradicted(),
    "contradicted by a forest": lambda judge: judge.contradicted("forest"),
    "in-sample margin": lambda judge: judge.in_sample(),
    "kNN vote": lambda judge: judge.neighbours(),
}
ON_PROBABILITIES = (OURS, "cleanlab, our probabilities", CONTRADICTED)


def measures(found: Judged, wrong: np.ndarray) -> dict[str, float]:
    """What is known of flags and ranks once the truth is; of true labels only how many are flagged."""
    out = {"flagged": float(found.flagged.mean()), "wrong": float(wrong.mean())}
    if found.share == found.share:
        out["estimated"] = found.share
    if not wrong.any():
        return out
    hits = int((found.flagged & wrong).sum())
    order = np.argsort(-found.score, kind="stable")
    half = -(-int(wrong.sum()) // 2)
    reads = int(np.searchsorted(np.cumsum(wrong[order]), half)) + 1
    return out | {
        "average precision": float(average_precision_score(wrong, found.score)),
        "F1": 2 * hits / (int(found.flagged.sum()) + int(wrong.sum())),
        "precision": hits / max(int(found.flagged.sum()), 1),
        "recall": hits / int(wrong.sum()),
        "read per error": reads / half,
    }
