"""One cell of the questions suite: ask, read, train, score. A person is simulated who knows the true labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.stats import beta
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from floral_bench.questions.cells import AUTHOR, CORRECTED, MARKS, NAMES, RANDOM, REVIEW, SUSPECTS, UNSURE
from floral_bench.questions.peers import WEIGHTS, fixed_labels
from floral_bench.questions.problems import AUTHORS, ClassLostError, flipped, generator, split
from floral_bench.spec import Cell, CellResult
from floral_learn import LabelReview, find_label_issues

OTHER_MODELS: dict[str, Any] = {
    "forest": RandomForestClassifier(50, min_samples_leaf=2, random_state=0),
    "logistic": LogisticRegression(max_iter=500),
    "boosting": HistGradientBoostingClassifier(max_iter=30, random_state=0),
}
PLAIN = "SVC"


def run_cells(cells: Sequence[Cell]) -> list[CellResult]:
    """The results of several cells."""
    return [run_cell(cell) for cell in cells]


def run_cell(cell: Cell) -> CellResult:
    """Test accuracy after each number of answers: config is the model, statistic the number, "given" or "clean"."""
    return CellResult.of(cell, _run)


def _run(result: CellResult) -> None:
    cell = result.cell
    told, rows = dict(cell.method.params), dict(cell.data.params)["rows"]
    kind = "clean" if cell.attack is None else cell.attack.name
    X, X_test, y, y_test = split(cell.data.name, cell.seed, rows)
    rng = generator(cell.data.name, cell.seed, kind, cell.level / 100)
    try:
        given = flipped(kind, cell.level / 100, X, y, rng)
    except ClassLostError:
        result.add("left_out", 1.0)
        return
    models = OTHER_MODELS if told.get("others") else {PLAIN: SVC()}
    for name, model in models.items():
        result.add("accuracy", clone(model).fit(X, given).score(X_test, y_test), "given", name)
        result.add("accuracy", clone(model).fit(X, y).score(X_test, y_test), "clean", name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of small classes and of regressions that did not converge
        if told["who"] in CORRECTED:
            share: dict[str, Any] = {} if told["who"] == REVIEW else {"random_share": float(told["who"] == RANDOM)}
            names = np.random.default_rng(cell.seed).integers(AUTHORS, size=len(y))
            groups = {AUTHOR: np.arange(len(y)) % AUTHORS, NAMES: names}.get(told.get("groups", ""))
            review = LabelReview(X, given, random_state=cell.seed, groups=groups, **share)
            choose = _chooser(told["who"], review, X, given)
            for count in answered(review, y, rng, told.get("wrong", 0) / 100, choose):
                _score_review(result, review, models, count, (X_test, y_test), given != y)
                left = (review.labels != y).sum() / max(1, (given != y).sum())
                result.add("left", float(left), str(count), next(iter(models)))
        else:
            weight = WEIGHTS[told["who"]]
            for count, labels in enumerate(fixed_labels(told["who"], X, y, given, cell.seed), 1):
                if count in MARKS:
                    asked = _answered_rows(told["who"], labels, given, len(y), cell.seed, count)
                    weights = np.where(asked, weight, 1.0)
                    result.add("accuracy", SVC().fit(X, labels, weights).score(X_test, y_test), str(count), PLAIN)
                if count == max(MARKS):
                    return


def _chooser(who: str, review: LabelReview, X: np.ndarray, given: np.ndarray) -> Callable[[int], np.ndarray]:
    """What gives the next so many rows to ask about."""
    if who in (REVIEW, RANDOM):
        return review.ask
    suspicion = np.asarray(find_label_issues(X, given, random_state=0).score) if who == SUSPECTS else np.empty(0)

    def choose(n: int) -> np.ndarray:
        score = 1 - review.label_probability.max(axis=1) if who == UNSURE else suspicion.copy()
        score[list(review.answers)] = -np.inf
        return np.argsort(-score, kind="stable")[:n]

    return choose


def _answered_rows(who: str, labels: np.ndarray, given: np.ndarray, n: int, seed: int, count: int) -> np.ndarray:
    """Which rows were answered, where their weight matters: those of the random order."""
    asked = labels != given
    if who.startswith("random"):
        asked[np.random.default_rng(seed).permutation(n)[:count]] = True
    return asked


def _score_review(
    result: CellResult,
    review: LabelReview,
    models: dict[str, Any],
    count: int,
    test: tuple[Any, Any],
    wrong: np.ndarray,
) -> None:
    for name, model in models.items():
        result.add("accuracy", review.train(clone(model)).score(*test), str(count), name)
    if PLAIN in models:
        result.add("accuracy", review.train(SVC(), weighted=False).score(*test), str(count), "unweighted")
        share, truth = review.wrong_share, float(wrong.mean())
        if share.known:
            inside = share.low - 1e-9 <= truth <= share.high + 1e-9  # ends are rounded
            result.add("covered", float(inside), str(count), PLAIN)
            result.add("width", (share.high - share.low) / random_width(truth, count), str(count), PLAIN)


def answered(
    review: LabelReview,
    y: np.ndarray,
    rng: np.random.Generator,
    errors: float,
    choose: Callable[[int], np.ndarray],
) -> Iterator[int]:
    """Answer rows one by one up to ten, then by fives and by tens; yields each of MARKS when it is reached."""
    classes, count = np.unique(y), 0
    while count < max(MARKS):
        rows = choose(1 if count < 10 else 5 if count < 20 else 10)
        if not len(rows):
            return
        errs = rng.random(len(rows)) < errors
        said = [rng.choice(classes[classes != v]) if err else v for v, err in zip(y[rows], errs, strict=True)]
        review.answer(rows, said)
        count += len(rows)
        if count in MARKS:
            yield count


def random_width(share: float, answers: int) -> float:
    """Width of the 90 % interval (Jeffreys) of a share from so many answers about random rows."""
    low, high = beta.ppf([0.05, 0.95], share * answers + 0.5, (1 - share) * answers + 0.5)
    return float(high - low)
