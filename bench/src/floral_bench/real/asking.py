"""Answers of a person who knows the truth, mostly: how many labels are wrong after them, and what models are worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from floral_bench.real.judging import OURS, model
from floral_bench.real.sets import Problem
from floral_learn import LabelReview, find_label_issues

MARKS = (10, 20, 50, 100, 200)
MODELS = ("SVC", "forest", "LR")
TRUE_LABELS = " on true labels"
WEIGHT = 10.0  # of an answered row where nothing else is corrected
CHOOSERS = (
    OURS,
    "top suspects, same correction",
    "least sure, same correction",
    "random rows, same correction",
    "top suspects, answers only",
    "random rows, answers at weight 10",
)


def after_answers(
    problem: Problem, chooser: str, wrong_answers: int, marks: Sequence[int], seed: int
) -> Iterator[tuple[int, str, float]]:
    """(answers, measure, value) before the first answer and after so many; `wrong_answers` in percent."""
    rng = np.random.default_rng([seed, wrong_answers])
    told = problem.y.copy()
    slips, m = rng.random(len(told)) < wrong_answers / 100, int(problem.y.max()) + 1
    told[slips] = (told[slips] + rng.integers(1, m, int(slips.sum()))) % m
    models = {name: model(name, seed) for name in MODELS}
    yield 0, "left", float((problem.given != problem.y).mean())
    for name, estimator in models.items():
        yield 0, name, _score(problem, clone(estimator).fit(problem.X, problem.given))
        yield 0, name + TRUE_LABELS, _score(problem, clone(estimator).fit(problem.X, problem.y))
    review: Any = _AnswersOnly(problem, WEIGHT if "weight" in chooser else 1.0)
    if "only" not in chooser and "weight" not in chooser:
        review = LabelReview(problem.X, problem.given, random_state=seed)
    asked = 0
    for rows in _asked(problem, chooser, review, marks, rng):
        review.answer(rows, told[rows])
        asked += len(rows)
        if asked in marks:
            yield asked, "left", float((review.labels != problem.y).mean())
            for name, estimator in models.items():
                yield asked, name, _score(problem, review.train(estimator))


class _AnswersOnly:
    """Asked as a `LabelReview` is: answered rows get their answers, and `weight`; nothing else changes."""

    def __init__(self, problem: Problem, weight: float) -> None:
        self.X, self.labels = problem.X, problem.given.copy()
        self.weights, self.weight = np.ones(len(self.labels)), weight

    def answer(self, rows: np.ndarray, labels: np.ndarray) -> None:
        self.labels[rows], self.weights[rows] = labels, self.weight

    def train(self, estimator: Any) -> Any:
        return clone(estimator).fit(self.X, self.labels, sample_weight=self.weights)


def _asked(
    problem: Problem, chooser: str, review: Any, marks: Sequence[int], rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """The rows to ask about, in the parts in which they are answered."""
    most = min(marks[-1], len(problem.y))
    if chooser == OURS:
        for _ in range(most):
            yield review.ask(1)
        return
    if chooser.startswith("least sure"):
        free, count = np.ones(len(problem.y), dtype=bool), 0
        while count < most:
            unsure = np.where(free, -np.abs(review.wrong_probability - 0.5), -np.inf)
            rows = np.argsort(-unsure, kind="stable")[: 1 if count < 20 else 5]
            free[rows], count = False, count + len(rows)
            yield rows
        return
    if chooser.startswith("random"):
        order = rng.permutation(len(problem.y))
    else:
        order = np.asarray(find_label_issues(problem.X, problem.given, random_state=0).ranking)
    yield from np.split(order[:most], [mark for mark in marks if mark < most])


def _score(problem: Problem, fitted: Any) -> float:
    return float((fitted.predict(problem.X_test) == problem.y_test).mean())
