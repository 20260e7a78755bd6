"""Nobody to ask: classifiers that take care of wrong labels themselves, beside the plain ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier

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
    ways[CLEAN_LEARNING] = _clean_learning(base, seed)
    if name == "SVC":
        ways[FLORAL] = FloralClassifier(random_state=seed)
    for who, estimator in ways.items():
        labels = problem.y if who == TRUE_LABELS else problem.given
        classes, codes = np.unique(labels, return_inverse=True)  # cleanlab takes no gaps between class numbers
        started = time.perf_counter()
        fitted = clone(estimator).fit(problem.X, codes)
        yield who, "seconds", time.perf_counter() - started
        yield who, "accuracy", float((classes[fitted.predict(problem.X_test)] == problem.y_test).mean())


def _clean_learning(base: Any, seed: int) -> Any:
    from cleanlab.classification import CleanLearning
    from sklearn.calibration import CalibratedClassifierCV

    # it needs probabilities, which SVC() alone does not give
    inner = base if hasattr(base, "predict_proba") else CalibratedClassifierCV(base, ensemble=False, cv=3)
    return CleanLearning(clone(inner), seed=seed, verbose=False, find_label_issues_kwargs={"n_jobs": 1})
