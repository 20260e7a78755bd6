"""From a FloralClassifier's parameters and its data to a game, and from the game's state to fitted attributes."""

from __future__ import annotations

import sys
import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight
from threadpoolctl import threadpool_limits

from floral_learn.core.arrays import Array, NumpyBackend
from floral_learn.core.attackers import Attacker, NoAttack, RandomizedTopK
from floral_learn.core.choose_gram import DENSE_ROWS, choose_gram, resolve_dtype
from floral_learn.core.evidence import SuggestedFlips
from floral_learn.core.game import Game, result_of, step_schedule
from floral_learn.core.gram import DenseGram, Gram
from floral_learn.core.kernels import resolve_gamma
from floral_learn.core.row_blocks import RowBlocks, gamma_of
from floral_learn.core.state import GameState
from floral_learn.defenses.budget_selection import select_budget
from floral_learn.defenses.game_setup import (
    Budget,
    check_callable,
    check_decay,
    check_distribution,
    check_precomputed,
    resolve_budget,
    resolve_caps,
)
from floral_learn.defenses.tensor_input import as_host

Rows = np.ndarray | slice


@dataclass
class RunningFit:
    """What a callback can see of a fit under way (``estimator._running_fit``)."""

    X: Any
    y: np.ndarray
    sample_weight: Any
    trusted: Any
    seeds: np.ndarray  # of the game and of the landmarks
    n_rounds: int
    backend: NumpyBackend
    state: GameState | None = None


def generator(random_state: Any) -> np.random.Generator:
    """One Generator from anything that scikit-learn or numpy call a random state."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1, size=4))


class _OneThread:
    """One BLAS thread while at least one small game is played, then the caller's setting again.

    The setting belongs to the whole process: games played in several Python threads share it, so that the first one in
    sets it and the last one out restores it.
    """

    def __init__(self) -> None:
        self._lock, self._players, self._limits = Lock(), 0, None

    def __enter__(self) -> None:
        with self._lock:
            self._players += 1
            if self._players == 1:
                self._limits = threadpool_limits(1, user_api="blas")

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._players -= 1
            if self._players == 0 and self._limits is not None:
                self._limits.restore_original_limits()


_ONE_THREAD = _OneThread()


def threads_for(n: int) -> AbstractContextManager[Any]:
    """The caller's BLAS threads, but one for small games.

    A product with 1,000 rows takes less time than waking a second thread, and on a busy machine waiting for it costs
    many times the product.
    """
    return _ONE_THREAD if n <= 1000 else nullcontext()


def row_weights(clf: Any, X: Any, y: np.ndarray, labels: np.ndarray, sample_weight: Any) -> np.ndarray:
    """Sample weight times class weight of each row, (n,)."""
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, copy=True)
    if (weight < 0).any():
        raise ValueError("sample_weight must not be negative")
    if not weight.any():
        raise ValueError("sample_weight is zero for every row")
    if clf.class_weight is not None:
        weight *= compute_class_weight(clf.class_weight, classes=clf.classes_, y=y)[labels]
    return weight


def used_rows(weight: np.ndarray, labels: np.ndarray, n_classes: int) -> Rows:
    """The rows with a positive weight: a row of weight 0 is left out of the game."""
    rows = np.flatnonzero(weight > 0)
    if len(rows) == len(weight):
        return slice(None)
    if len(np.unique(labels[rows])) < n_classes:
        raise ValueError("every row of at least one class has sample_weight 0; each class needs a positive one")
    return rows


def make_game(
    clf: Any,
    X: Any,
    labels: np.ndarray,
    weight: np.ndarray,
    eligible: np.ndarray | None,
    rows: Rows,
    running: RunningFit,
) -> Game:
    """The game for the used rows; sets ``budget_``, ``selection_``, ``flips_``, ``C_``, ``learning_rate_``, ``gamma_``
    and ``gram_``.
    """
    weight = weight[rows]
    # Everything that can be wrong is checked before the kernel is computed.
    budget = resolve_budget(clf.budget, clf.flips, len(weight), clf.classes_)
    caps = resolve_caps(clf.C, clf.budget, len(clf.classes_))
    clf.C_, clf.selection_ = caps[0], None
    distribution = check_distribution(clf.flip_distribution, len(clf.classes_))
    if clf.budget == "auto" and distribution is not None:
        raise ValueError('flip_distribution= needs a budget in numbers: budget="auto" chooses the new labels, too')
    decay = check_decay(clf.decay)
    gram = _gram(clf, X, labels[rows], weight, rows, running)
    metric = None if (weight == 1).all() else weight
    eta = _step(clf, gram, metric)
    eligible = None if eligible is None else eligible[rows]
    attacker: Attacker = NoAttack()
    if clf.budget == "auto":
        budget, eligible, targets, weight = _chosen_budget(
            clf, gram, labels, weight, caps, eligible, rows, eta, running
        )
        metric = None if (weight == 1).all() else weight
        if budget.flips:
            attacker = SuggestedFlips(budget.columns, budget.flips, targets=targets)
    elif budget.flips:
        attacker = RandomizedTopK(budget.columns, budget.flips, distribution)
    clf.budget_, clf.flips_, clf.learning_rate_, clf.gram_ = budget.shown, budget.flips, eta, gram.describe()
    return Game(
        gram,
        labels[rows],
        clf.C_ * weight,
        step_schedule(eta, clf.n_rounds, decay),
        attacker,
        n_classes=len(clf.classes_),
        seeds=running.seeds[:1],
        warm_up=clf.warm_up,
        projection=clf.projection,
        eligible=eligible,
        weight=metric,
    )


def _chosen_budget(
    clf: Any,
    gram: Gram,
    labels: np.ndarray,
    weight: np.ndarray,
    caps: tuple[float, ...],
    eligible: np.ndarray | None,
    rows: Rows,
    eta: float,
    running: RunningFit,
) -> tuple[Budget, np.ndarray, np.ndarray, np.ndarray]:
    """``budget="auto"``: B and k, the labels that may be flipped, to what, and weights; sets ``selection_``, ``C_``."""
    given, plain, of_class = labels[rows], weight, np.ones(len(clf.classes_))
    if clf.class_weight is not None:  # what a class is worth says nothing about whose labels are wrong
        of_class = compute_class_weight(clf.class_weight, classes=clf.classes_, y=clf.classes_[labels])
        plain = weight / of_class[given]
    metric = None if (plain == 1).all() else plain
    with threads_for(gram.n):
        found, suspect, targets = select_budget(
            gram,
            given,
            caps,
            eta if clf.class_weight is None else _step(clf, gram, metric),
            clf.classes_,
            int(running.seeds[0]),
            eligible=eligible,
            weight=metric,
        )
    support = np.full(len(labels), np.nan)
    support[rows] = found.support
    clf.selection_, clf.C_ = replace(found, support=support), found.cap
    if clf.verbose:
        sys.stderr.write(f"[floral] budget: {found.reason}\n")
    # A suspect may belong to either class, and counts as one of the lighter.
    weight = np.where(suspect, plain * np.minimum(of_class[given], of_class[targets]), weight)
    width = 1 if len(clf.classes_) == 2 else len(clf.classes_)
    return Budget(np.full(width, found.budget), found.flips, found.budget), suspect, targets, weight


def _gram(clf: Any, X: Any, labels: np.ndarray, weight: np.ndarray, rows: Rows, running: RunningFit) -> Gram:
    if clf.kernel == "precomputed":
        check_precomputed(X)
        square = X if isinstance(rows, slice) else X[np.ix_(rows, rows)]
        square = np.ascontiguousarray(square, dtype=resolve_dtype(clf.dtype, len(square)))
        clf.gamma_, clf._shift = 1.0, None
        return DenseGram(running.backend.array(square), running.backend)
    used = X
    if not isinstance(rows, slice):
        used = X.keep(rows) if isinstance(X, RowBlocks) else X[rows]
    if callable(clf.kernel):
        check_callable(clf.kernel, used)
    centre = clf.kernel in ("rbf", "laplacian") and resolve_dtype(clf.dtype, used.shape[0]) == "float32"
    if isinstance(used, RowBlocks):  # one pass for both numbers
        found = used.moments(weight)
        clf.gamma_, clf._shift = gamma_of(clf.gamma, found), found.mean if centre and not used.sparse else None
    else:
        clf.gamma_ = resolve_gamma(clf.gamma, used, weight)
        clf._shift = as_host(used.mean(axis=0)) if centre and not sparse.issparse(used) else None
    return choose_gram(
        used,
        clf._kernel(),
        gram="low_rank" if hasattr(used, "each") else clf.gram,  # rows on workers have no other
        rank=clf.rank,
        max_memory=clf.max_memory,
        dtype=resolve_dtype(clf.dtype, used.shape[0]),
        rng=np.random.default_rng(running.seeds[1:]),
        backend=running.backend,
        labels=labels,
        progress=_factor_log if clf.verbose else None,
    )


def _factor_log(made: int, most: int) -> None:
    sys.stderr.write(f"[floral] low-rank kernel: {made} columns of at most {most}\n")


def _step(clf: Any, gram: Gram, metric: np.ndarray | None) -> float:
    # A tight estimate where it is cheap, so that equal games get equal steps.
    steps, tol = (200, 1e-10) if gram.n <= DENSE_ROWS else (30, 1e-3)
    weight: Array = None if metric is None else gram.backend.columns(metric, gram.backend.float64)
    largest = gram.lambda_max(steps, tol, centred=True, weight=weight)
    if clf.learning_rate == "auto":
        return 1.0 / largest if largest > 0 else 1.0
    if clf.learning_rate * largest > 2:
        warnings.warn(
            f"learning_rate={clf.learning_rate:g} is above 2 / lambda_max = {2 / largest:.3g} for this kernel and "
            f"these {gram.n:,} rows (lambda_max of the centred Gram: {largest:.4g}): the game will oscillate. "
            "Use learning_rate='auto' or a smaller one.",
            UserWarning,
            stacklevel=6,
        )
    return float(clf.learning_rate)


def fitted_attributes(clf: Any, game: Game, state: GameState, rows: Rows, X: Any, labels: np.ndarray) -> dict[str, Any]:
    """Every fitted attribute, from the state of the game after any closed round."""
    gram, backend = game.gram, game.gram.backend
    result = result_of(game, state)
    weights, bias = (result.mean_weights, result.mean_bias) if clf.average else (result.weights, result.bias)
    n, every = X.shape[0], np.arange(X.shape[0])[rows]
    active = np.any(weights != 0, axis=1)
    support = every[active]
    basis, coef = gram.expansion(weights)
    load = (result.dual / backend.numpy(game.cap)).max(axis=1)
    load = load if load.max() >= 0.99 else load / max(load.max(), 1e-300)
    scores = backend.numpy(gram.matmat(backend.columns(weights))) + bias
    precomputed = clf.kernel == "precomputed"
    return {
        "dual_coef_": np.ascontiguousarray(weights[active].T),
        "intercept_": np.array(bias),
        "support_": support,
        "support_vectors_": np.empty((0, 0)) if precomputed else _vectors(X, support),
        "n_support_": np.bincount(labels[support], minlength=len(clf.classes_)),
        "n_iter_": state.round,
        "flip_rate_": _spread(result.flip_rate[:, 0], rows, n),
        "history_": {name: _squeeze(values) for name, values in result.history.items()},
        "_basis": every[basis] if precomputed else take_rows(X, every[basis]),
        "_coef": coef,
        "_train_labels": labels,
        "_train_scores": _spread(scores, rows, n),
        "_train_load": _spread(load, rows, n),
    }


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Rows of an array, a CSR matrix or a file of rows, in memory."""
    return X.take(rows) if isinstance(X, RowBlocks) else as_host(X[rows])


def _vectors(X: Any, support: np.ndarray) -> Any:
    if isinstance(X, RowBlocks):  # they may not fit in memory; `support_` says which rows they are
        return np.empty((0, X.shape[1]))
    return as_host(X if len(support) == X.shape[0] else X[support])


def _squeeze(values: np.ndarray) -> np.ndarray:
    return values[..., 0] if values.ndim > 1 and values.shape[-1] == 1 else values


def _spread(values: np.ndarray, rows: Rows, n: int) -> np.ndarray:
    out = np.zeros((n, *values.shape[1:]), dtype=values.dtype)
    out[rows] = values
    return out
