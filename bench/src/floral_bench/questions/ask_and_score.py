"""One cell of the questions suite: ask, read, train, score."""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from sklearn.svm import SVC

from floral_bench.questions.cells import MARKS, REVIEW
from floral_bench.questions.orders import ORDERS
from floral_bench.questions.problems import SharedKernelSVC, given_labels, plain_guesses, problem
from floral_bench.spec import Cell, CellResult
from floral_learn import LabelReview
from floral_learn.datasets import Dataset


def run_cells(cells: Sequence[Cell]) -> list[CellResult]:
    """The results of several cells; those of one problem share its labels, SVC without answers, and equal orders."""
    known: dict[Hashable, CellResult] = {}
    return [run_cell(cell, known) for cell in cells]


def run_cell(cell: Cell, known: dict[Hashable, CellResult] | None = None) -> CellResult:
    """Test accuracy of SVC() after each number of answers: label fixed only, our posterior, and answers alone.

    Rows of the result: config is the reading, statistic the number of answers. `known` keeps the results of fixed
    orders, for another that asks about the same rows (ActiveLab with one annotator ranks as cleanlab does).
    """
    return CellResult.of(cell, lambda result: _run(cell, result, {} if known is None else known))


def _run(cell: Cell, result: CellResult, known: dict[Hashable, CellResult]) -> None:
    options = dict(cell.method.params)
    order = options["order"]
    attack = "clean" if cell.attack is None else cell.attack.name
    data = problem(cell.data.name, cell.seed)
    given = given_labels(cell.data.name, cell.seed, attack, cell.level)
    # the same seed for every order of a cell, and another for each cell
    seed = zlib.crc32(f"{cell.data.name} {attack} {cell.level} {cell.seed}".encode())
    rng = np.random.default_rng([seed, options["wrong_answers"]])
    truth = data.y_train_clean
    told = truth.copy()
    slips = rng.random(len(told)) < options["wrong_answers"] / 100
    told[slips] = _others(truth[slips], data.classes, rng)
    ranked = None if order == REVIEW else ORDERS[order](data.X_train, given, rng)[: MARKS[-1]]
    if ranked is not None:
        same = known.setdefault((cell.data, cell.attack, cell.level, told.tobytes(), ranked.tobytes()), result)
        if same is not result and same.error is None:
            result.rows += same.rows
            return
    for name, guess in plain_guesses(cell.data.name, cell.seed, attack, cell.level).items():
        _add(result, name, 0, data, guess)
    review = LabelReview(data.X_train, given, classes=data.classes, random_state=seed % 2**31)
    model = SharedKernelSVC(cell.data.name, cell.seed)
    asked: list[int] = []
    for rows in _batches(review, ranked):
        review.answer(rows, told[rows])
        asked += rows.tolist()
        if len(asked) in MARKS:
            fixed = given.copy()
            fixed[asked] = told[asked]
            _add(result, "fixed only", len(asked), data, model.fit(data.X_train, fixed).predict(data.X_test))
            _add(result, "posterior", len(asked), data, review.train(model).predict(data.X_test))
            if order == REVIEW:
                _add(result, "answers alone", len(asked), data, _by_answers_alone(data, asked, told[asked]))


def _batches(review: LabelReview, ranked: np.ndarray | None) -> Iterator[np.ndarray]:
    """Rows to answer: one by one up to 10, then up to the next mark by fives and by tens; fixed orders mark by mark."""
    if ranked is None:
        count, most = 0, min(MARKS[-1], len(review.given))
        while count < most:
            rows = review.ask(min(1 if count < 10 else 5 if count < 20 else 10, most - count))
            count += len(rows)
            yield rows
        return
    for start, end in pairwise(MARKS):
        if start < len(ranked):
            yield ranked[start:end]


def _by_answers_alone(data: Dataset, asked: list[int], labels: np.ndarray) -> np.ndarray:
    if len(np.unique(labels)) < 2:
        return np.full(len(data.y_test), labels[0])
    return SVC().fit(data.X_train[asked], labels).predict(data.X_test)


def _add(result: CellResult, name: str, answers: int, data: Dataset, guess: np.ndarray) -> None:
    hit = guess == data.y_test
    result.add("accuracy", float(hit.mean()), str(answers), name)
    by_class = [hit[data.y_test == label].mean() for label in np.unique(data.y_test)]
    result.add("balanced_accuracy", float(np.mean(by_class)), str(answers), name)


def _others(labels: np.ndarray, classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Another class for each label, at random."""
    codes = np.searchsorted(classes, labels)
    return classes[(codes + rng.integers(1, len(classes), len(codes))) % len(classes)]
