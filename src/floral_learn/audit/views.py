"""Play games on the given labels and ask the averaged models, without each row's own pull, what they think of it.

Two kernel widths (1 / (d Var) and four times that) see smooth and local structure; in both an attacker with a budget of
a tenth of the rows keeps the models from leaning on a few influential labels. The choice was made on Moon and digits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from floral_learn.core.arrays import NUMPY
from floral_learn.core.attackers import RandomizedTopK
from floral_learn.core.choose_gram import DENSE_ROWS, choose_gram, resolve_dtype
from floral_learn.core.game import Game, solve, step_schedule
from floral_learn.core.gram import Gram
from floral_learn.core.kernels import Kernel, resolve_gamma
from floral_learn.core.low_rank import LowRankGram
from floral_learn.core.suspicion import disagreement, predicted, without_own

WIDTHS = (1.0, 4.0)  # multiples of gamma="scale"
BUDGET = 0.1  # share of the rows among which the attacker of the score chooses
PATH = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3)
ROUNDS = 200
RANK = 256
C = 10.0

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Views:
    """What the games say about every label."""

    disagreement: np.ndarray  # (n,), mean over the widths of sigma(-2 margin), own term left out
    scores: np.ndarray  # (n, columns), mean decision values without own terms
    flip_rate: np.ndarray  # (n,), mean over the widths
    load: np.ndarray  # (n,), dual relative to its cap or to the largest one
    path_disagreement: np.ndarray  # (n, budgets of PATH), as `disagreement`, the narrow kernel always at BUDGET
    path_agreement: np.ndarray  # (budgets,), share of the given labels that the first model repeats


@dataclass(frozen=True)
class Grams:
    """The kernel operators of both widths, built once for all label sets."""

    grams: tuple[Gram, ...]
    diagonals: tuple[np.ndarray, ...]
    steps: tuple[float, ...]


def build_grams(X: np.ndarray, rng: np.random.Generator) -> Grams:
    """Operators for the rows `X`: exact up to 3,000 rows, of rank 256 above."""
    gamma = resolve_gamma("scale", X)
    dtype = resolve_dtype("auto", len(X))
    shift = X.mean(axis=0) if dtype == "float32" else None
    grams, diagonals, steps = [], [], []
    for width in WIDTHS:
        kernel = Kernel("rbf", gamma * width, shift=shift)
        with warnings.catch_warnings():
            # A smoother kernel than asked for is as good a view: nothing here depends on the exact width.
            warnings.simplefilter("ignore", UserWarning)
            small = len(X) <= DENSE_ROWS
            gram = choose_gram(X, kernel, gram="dense" if small else "low_rank", rank=RANK, dtype=dtype, rng=rng)
        grams.append(gram)
        diagonals.append(_diagonal(gram))
        steps.append(1.0 / gram.lambda_max(60, 1e-3, centred=True))
    return Grams(tuple(grams), tuple(diagonals), tuple(steps))


def look(
    made: Grams,
    labels: np.ndarray,
    n_classes: int,
    seed: int,
    *,
    trusted: np.ndarray | None = None,
    with_path: bool = False,
    progress: Progress | None = None,
) -> Views:
    """Play one batch of games a width on `labels` (n,), class numbers; `with_path` adds the other budgets."""
    doubts, scores, rates, loads = [], [], [], []
    path, agreement = np.zeros((len(labels), 0)), np.zeros(0)
    for number, (gram, diagonal, eta) in enumerate(zip(made.grams, made.diagonals, made.steps)):
        budgets = PATH if with_path and number == 0 else (BUDGET,)
        own, rate, load, agree = _play(
            gram, diagonal, eta, labels, n_classes, budgets, seed + number, trusted, progress
        )
        at = budgets.index(BUDGET)
        doubts.append(disagreement(own[at], labels))
        scores.append(own[at])
        rates.append(rate[:, at])
        loads.append(load[:, at])
        if len(budgets) > 1:
            path = np.column_stack([disagreement(values, labels) for values in own])
            agreement = agree
    doubt, score, rate = (np.mean(parts, axis=0) for parts in (doubts, scores, rates))
    # The first width is played at every budget, the others at one.
    path = (path + np.sum(doubts[1:], axis=0)[:, None]) / len(doubts)
    return Views(doubt, score, rate, np.max(loads, axis=0), path, agreement)


def _play(
    gram: Gram,
    diagonal: np.ndarray,
    eta: float,
    labels: np.ndarray,
    n_classes: int,
    budgets: tuple[float, ...],
    seed: int,
    trusted: np.ndarray | None,
    progress: Progress | None,
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
    """Decision values without own terms (one (n, columns) a budget); flip rates, loads (n, budgets); agreement."""
    n, games = gram.n, len(budgets)
    width = 1 if n_classes == 2 else n_classes
    points = np.floor(np.array(budgets) * n + 1e-9).astype(int)
    points[points < 2] = 0
    game = Game(
        gram,
        np.repeat(labels[:, None], games, axis=1),
        np.full(n, C),
        step_schedule(np.full(games, eta), ROUNDS),
        RandomizedTopK(np.repeat(points[:, None], width, axis=1), points // 2),
        n_classes=n_classes,
        seeds=seed + np.arange(games),
        eligible=None if trusted is None else ~trusted,
    )
    told = None if progress is None else (lambda state: progress("games", state.round / ROUNDS))
    result = solve(game, callback=told)
    values = gram.backend.numpy(gram.matmat(NUMPY.columns(result.mean_weights))) + result.mean_bias
    own = without_own(values, result.mean_weights, diagonal)
    load = (result.dual.reshape(n, games, width) / C).max(axis=2)
    load = np.where(load.max(axis=0) >= 0.99, load, load / np.maximum(load.max(axis=0), 1e-300))
    parts = [slice(j * width, (j + 1) * width) for j in range(games)]
    agreement = np.array([(predicted(values[:, part]) == labels).mean() for part in parts])
    return [own[:, part] for part in parts], result.flip_rate, load, agreement


def _diagonal(gram: Gram) -> np.ndarray:
    if isinstance(gram, LowRankGram):
        factor = np.asarray(gram.backend.numpy(gram.factor), dtype=np.float64)
        return np.einsum("ij,ij->i", factor, factor)
    return np.ones(gram.n)
