"""Nobody to ask: classifiers that take care of wrong labels themselves, beside the plain ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier

from floral_bench.contenders import CleanlabClassifier
from floral_bench.real.judging import model
from floral_bench.real.sets import Problem
from floral_learn import ContradictedLabels, FloralClassifier, SanitizedClassifier

MODELS = ("SVC", "LR", "forest", "boosting")
PLAIN, TRUE_LABELS, SANITIZED, CLEAN_LEARNING = "plain", "plain, true labels", "SanitizedClassifier", "CleanLearning"
FLORAL = "FloralClassifier"


def trained(problem: Problem, name: str, seed: int) -> Iterator[tuple[str, str, float]]:
    """(who, measure, value): test accuracy, and the seconds of the fit."""
    base = model(name, seed)
    if name == "boosting":
        # small, since it is fitted some thirty times
        base = HistGradientBoostingClassifier(max_iter=20, learning_rate=0.2, max_leaf_nodes=15, random_state=seed)
    ways: dict[str, Any] = {PLAIN: base, TRUE_LABELS: base}
    ways[SANITIZED] = SanitizedClassifier(ContradictedLabels(random_state=seed), base)
    ways[CLEAN_LEARNING] = CleanlabClassifier(base, random_state=seed)
    if name == "SVC":
        ways[FLORAL] = FloralClassifier(random_state=seed)
    for who, estimator in ways.items():
        labels = problem.y if who == TRUE_LABELS else problem.given
        started = time.perf_counter()
        fitted = clone(estimator).fit(problem.X, labels)
        yield who, "seconds", time.perf_counter() - started
        yield who, "accuracy", float((fitted.predict(problem.X_test) == problem.y_test).mean())
