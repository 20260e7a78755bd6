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
        at = self.problem
        if at.probability is None and not given:
            return find_label_issues(at.X, at.given, random_state=self.seed)
        shares = self.probability("LR") if given else at.probability
        return find_label_issues(None, at.given, pred_probs=shares, random_state=self.seed)

    def _probability(self, name: str) -> np.ndarray:
        """Probabilities (n, M): those of the set, ours, of a vote, of a model in-sample or on five folds."""
        at = self.problem
        if at.probability is not None or name == OURS:
            found = self.issues().probability if at.probability is None else at.probability
            found = np.maximum(np.asarray(found, dtype=float), 1e-9)
            return found / found.sum(axis=1, keepdims=True)
        if name == "in-sample":
            return model("LR", self.seed).fit(at.X, self.codes).predict_proba(at.X)
        if name == "kNN":
            near = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(at.X).kneighbors(return_distance=False)
            return np.eye(self.codes.max() + 1)[self.codes[near]].mean(axis=1)
        judge = model(name, self.seed)
        if name == "SVC":
            judge = CalibratedClassifierCV(judge, ensemble=False, cv=3)
        folds = StratifiedKFold(5, shuffle=True, random_state=self.seed)
        return cross_val_predict(judge, at.X, self.codes, cv=folds, method="predict_proba")

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

    def contradicted(self, name: str) -> Judged:
        """Another class is preferred; ranked by the probability of any other."""
        probability = self.probability(name)
        return Judged(self._against(probability), probability.argmax(axis=1) != self.codes)

    def margin(self) -> Judged:
        """By how much a logistic regression that has seen the labels prefers another class."""
        probability = self.probability("in-sample")
        own = 1 - self._against(probability)
        others = np.where(np.arange(probability.shape[1]) == self.codes[:, None], 0, probability).max(axis=1)
        return Judged(others - own, others > own)

    def _against(self, probability: np.ndarray) -> np.ndarray:
        return 1 - probability[np.arange(len(self.codes)), self.codes]


JUDGES: dict[str, Callable[[Judge], Judged]] = {
    OURS: lambda judge: judge.ours(),
    GIVEN: lambda judge: judge.ours(given=True),
    "cleanlab, LR": lambda judge: judge.cleanlab("LR"),
    "cleanlab, SVC": lambda judge: judge.cleanlab("SVC"),
    "cleanlab, forest": lambda judge: judge.cleanlab("forest"),
    "cleanlab, our probabilities": lambda judge: judge.cleanlab(OURS),
    CONTRADICTED: lambda judge: judge.contradicted(OURS),
    "contradicted by a forest": lambda judge: judge.contradicted("forest"),
    "in-sample margin": lambda judge: judge.margin(),
    "kNN vote": lambda judge: judge.contradicted("kNN"),
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
