"""Answers of a person who knows the truth, mostly: how many labels are wrong after them, and what models are worth."""

from __future__ import annotations

from collections.abc import Iterator
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


def after_answers(problem: Problem, chooser: str, wrong_answers: int, seed: int) -> Iterator[tuple[int, str, float]]:
    """(answers, measure, value) before the first answer and after each of `MARKS`; `wrong_answers` in percent."""
    rng = np.random.default_rng([seed, wrong_answers])
    told = problem.y.copy()
    slips, m = rng.random(len(told)) < wrong_answers / 100, int(problem.y.max()) + 1
    told[slips] = (told[slips] + rng.integers(1, m, int(slips.sum()))) % m
    models = {name: model(name, seed) for name in MODELS}
    yield 0, "left", float((problem.given != problem.y).mean())
    for name, estimator in models.items():
        yield 0, name, _score(problem, clone(estimator).fit(problem.X, problem.given))
        yield 0, name + TRUE_LABELS, _score(problem, clone(estimator).fit(problem.X, problem.y))
    reader = _Corrected(problem, seed) if chooser == OURS or "same" in chooser else _AnswersOnly(problem, chooser)
    asked = 0
    for rows in _asked(problem, chooser, reader, rng, seed):
        reader.answer(rows, told[rows])
        asked += len(rows)
        if asked in MARKS:
            yield asked, "left", float((reader.labels() != problem.y).mean())
            for name, guess in models.items():
                yield asked, name, _score(problem, reader.trained(guess))


class _Corrected:
    """`LabelReview` reads the answers and corrects other labels."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.review = LabelReview(problem.X, problem.given, random_state=seed)

    def answer(self, rows: np.ndarray, labels: np.ndarray) -> None:
        self.review.answer(rows, labels)

    def labels(self) -> np.ndarray:
        return self.review.labels

    def trained(self, estimator: Any) -> Any:
        return self.review.train(clone(estimator))


class _AnswersOnly:
    """Answered rows get their answers, and where rows were drawn at random more weight; nothing else changes."""

    def __init__(self, problem: Problem, chooser: str) -> None:
        self.X, self.given = problem.X, problem.given.copy()
        self.weights, self.weight = np.ones(len(self.given)), WEIGHT if "weight" in chooser else 1.0

    def answer(self, rows: np.ndarray, labels: np.ndarray) -> None:
        self.given[rows], self.weights[rows] = labels, self.weight

    def labels(self) -> np.ndarray:
        return self.given

    def trained(self, estimator: Any) -> Any:
        return clone(estimator).fit(self.X, self.given, sample_weight=self.weights)


def _asked(problem: Problem, chooser: str, reader: Any, rng: np.random.Generator, seed: int) -> Iterator[np.ndarray]:
    """The rows to ask about, in the parts in which they are answered."""
    most = min(MARKS[-1], len(problem.y))
    if chooser == OURS:
        for _ in range(most):
            yield reader.review.ask(1)
        return
    if chooser.startswith("least sure"):
        free, count = np.ones(len(problem.y), dtype=bool), 0
        while count < most:
            unsure = np.where(free, -np.abs(reader.review.wrong_probability - 0.5), -np.inf)
            rows = np.argsort(-unsure, kind="stable")[: 1 if count < 20 else 5]
            free[rows], count = False, count + len(rows)
            yield rows
        return
    if chooser.startswith("random"):
        order = rng.permutation(len(problem.y))
    else:
        order = np.asarray(find_label_issues(problem.X, problem.given, random_state=seed).ranking)
    yield from np.split(order[:most], [mark for mark in MARKS if mark < most])


def _score(problem: Problem, fitted: Any) -> float:
    return float((fitted.predict(problem.X_test) == problem.y_test).mean())
