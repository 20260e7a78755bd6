"""How often the interval of `wrong_share` holds on problems that nobody looked at.

    python -m floral_bench.questions.fresh 100 160

Each number is another problem, made up or drawn, and is used once: when the review changes, take others. Four of five
are made-up tables: mixtures of Student clouds, columns that a random network labels, shells, and trees over counts.
Classes, columns, noise, the kind of errors and their share (evenly from 0.02 to 0.45, one in eight none) are drawn. The
others give each of 500 rows of music, labelme or product one of its people's votes, drawn anew.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import beta

from floral_bench.questions.cells import MARKS
from floral_bench.real.planted import margin
from floral_bench.reporting.tables import markdown
from floral_learn import LabelReview
from floral_learn.datasets.files import find_file

VOTED = ("music", "labelme", "product")


def problem(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, true classes and given labels of problem `number`."""
    return drawn_votes(number // 5) if number % 5 == 4 else made_up(4 * (number // 5) + number % 5)


def drawn_votes(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of a crowd's table with one vote each."""
    name, rng = VOTED[number % len(VOTED)], np.random.default_rng([31, number])
    with np.load(find_file(f"tables/{name}_crowd.npz", hint="Arrays X, y and answers (-1: none).")) as found:
        X, y, answers = found["X"], found["y"], found["answers"]
    rows = rng.permutation(np.flatnonzero((answers >= 0).any(axis=1)))[:500]
    chosen = np.where(answers[rows] >= 0, rng.random(answers[rows].shape), -1.0).argmax(axis=1)
    return X[rows].astype(float), y[rows].astype(int), answers[rows, chosen].astype(int)


def made_up(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, true classes and given labels of problem `number`."""
    rng = np.random.default_rng([4711, number])
    n, d, M = int(rng.integers(250, 900)), int(rng.integers(4, 25)), int(rng.choice([2, 2, 3, 5]))
    X, scores = TABLES[number % len(TABLES)](n, d, M, rng)
    y = np.argsort(np.argsort(scores[:, 0])) * M // n if scores.shape[1] == 1 else scores.argmax(axis=1)
    y = np.where(rng.random(n) < 0.5 * np.exp(-3 * _certainty(scores)), rng.integers(M, size=n), y)  # classes overlap
    y = np.unique(y, return_inverse=True)[1]
    share = 0.0 if number % 8 == 7 else float(rng.uniform(0.02, 0.45))
    given = _with_errors(ERRORS[number // len(TABLES) % len(ERRORS)], share, X, y, scores, rng)
    return X, y, given


def _clouds(n: int, d: int, M: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    centres = rng.normal(size=(M, d)) * rng.uniform(0.5, 2.0)
    X = centres[rng.integers(M, size=n)] + rng.standard_t(4, size=(n, d))
    return X, -((X[:, None] - centres) ** 2).mean(axis=2)


def _network(n: int, d: int, M: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, d))
    X[:, ::3] = np.exp(X[:, ::3])  # skewed columns
    hidden = np.tanh((X - X.mean(axis=0)) @ rng.normal(size=(d, 8)) / np.sqrt(d) * 2)
    return X, hidden @ rng.normal(size=(8, M)) + 0.3 * rng.normal(size=M)


def _shells(n: int, d: int, M: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, d))
    return X, (X[:, :3] ** 2).sum(axis=1, keepdims=True)


def _tree(n: int, d: int, M: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.poisson(rng.uniform(1, 8, d), size=(n, d)).astype(float)
    first, second = X[:, 0] > np.median(X[:, 0]), X[:, 1] > np.median(X[:, 1])
    leaf = rng.normal(size=(4, M))
    return X, leaf[2 * first + second] + 0.05 * rng.normal(size=(n, M))


TABLES = (_clouds, _network, _shells, _tree)
ERRORS = ("anywhere", "one way", "between classes that are alike", "along a column", "corner", "careless source")


def _certainty(scores: np.ndarray) -> np.ndarray:
    if scores.shape[1] == 1:
        return np.ones(len(scores))
    gap = margin(scores)
    return gap / gap.mean()


def _with_errors(
    kind: str, share: float, X: np.ndarray, y: np.ndarray, scores: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    n, M = len(y), int(y.max()) + 1
    weight = rng.exponential(size=n)  # the rows with the largest ones get a wrong label
    if kind == "one way":
        weight[y != rng.integers(M)] *= 0.1
    elif kind == "between classes that are alike":
        weight *= np.exp(-2 * _certainty(scores))
    elif kind == "along a column":
        weight *= np.exp(2 * np.argsort(np.argsort(X[:, 0])) / n)
    elif kind == "corner":
        weight *= 1 + 20 * ((X[:, 0] > np.quantile(X[:, 0], 0.6)) & (X[:, 1] > np.quantile(X[:, 1], 0.4)))
    elif kind == "careless source":
        weight *= 1 + 9 * (rng.integers(4, size=n) == 0)
    wrong = np.argsort(-weight)[: int(share * n)]
    other = (y + rng.integers(1, max(M, 2), size=n)) % max(M, 2)
    if kind == "between classes that are alike" and scores.shape[1] > 1:
        order = np.argsort(scores, axis=1)
        other = np.where(order[:, -1] == y, order[:, -2], order[:, -1]) % M
    given = y.copy()
    given[wrong] = other[wrong]
    return given


def held(number: int) -> list[dict[str, float]]:
    """Whether the interval of the share holds after each number of right answers, and how wide it is."""
    X, y, given = problem(number)
    review, found = LabelReview(X, given, classes=np.unique([y, given]), random_state=number), []
    for count in range(1, max(MARKS) + 1):
        rows = review.ask(1)
        review.answer(rows, y[rows])
        if count in MARKS:
            share = review.wrong_share
            inside = share.low - 1e-9 <= np.mean(given != y) <= share.high + 1e-9  # ends are rounded
            found.append({"answers": count, "held": float(inside), "width": share.high - share.low})
    return found


def coverage(numbers: Sequence[int], jobs: int = -1) -> pd.DataFrame:
    """Share of the problems on which the interval holds, with its own 95 % interval (Clopper and Pearson)."""
    frame = pd.DataFrame([line for lines in Parallel(jobs)(map(delayed(held), numbers)) for line in lines])
    lines = []
    for answers, part in frame.groupby("answers"):
        k, n = int(part["held"].sum()), len(part)
        low, high = beta.ppf([0.025, 0.975], [k, k + 1], [n - k + 1, n - k])
        shown = f"{k / n:.0%} [{0 if k == 0 else low:.0%}, {1 if k == n else high:.0%}]"
        lines.append([answers, n, shown, f"{part['width'].mean():.2f}"])
    return pd.DataFrame(lines, columns=["right answers", "problems", "the 90 % interval held", "mean width"])


if __name__ == "__main__":
    sys.stdout.write(markdown(coverage(range(*map(int, sys.argv[1:])))))
