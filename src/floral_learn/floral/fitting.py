"""A fit as a line: settings and checked input -> problem -> result -> fitted attributes."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from floral_learn.base.validation import LARGEST, LARGEST_SINGLE, check_decay, check_scale, check_trusted
from floral_learn.floral.inputs import TrainingInput, as_host, check_callable, check_precomputed
from floral_learn.floral.settings import Budget, Settings, resolve_budget
from floral_learn.game.accelerated import minimise
from floral_learn.game.arrays import Array, threads_for_product
from floral_learn.game.attackers import NoAttack
from floral_learn.game.choose_gram import DENSE_ROWS, choose_gram, parse_bytes, resolve_dtype
from floral_learn.game.game import Callback, Game, result_of, solve, step_schedule
from floral_learn.game.gram import DenseGram, Gram
from floral_learn.game.kernels import Kernel, resolve_gamma
from floral_learn.game.model import FittedModel, TrainingRecord, class_scores, without_own
from floral_learn.game.pairs import PairedGram, Pairs
from floral_learn.game.row_blocks import RowBlocks, gamma_of
from floral_learn.game.state import GameResult, GameState

Rows = np.ndarray | slice
FLIPS_SHARE = 20  # the flips of all rounds are kept if they take at most 1 / FLIPS_SHARE of max_memory
BOLD = 1.5  # times 1 / lambda_max; below 2 steps with unchanged labels are stable, and larger ones settle sooner
MOVES = 10.0  # times tol: what a game may still move at its last round without a warning
SVM_TOL = 3e-4  # KKT residual at which a game without an attacker is solved; SVC's default is 1e-3
SVM_OFF = 1e-2  # KKT residual above which the last round is not good enough to say nothing: a hundredth of the margin
USER = 6  # frames from `warn_if_unsettled` up to the line that called fit
UNEVEN = 1e3  # ratio of the spreads of two columns from which a warning speaks of scaling
FAR = 100.0  # rows farther from the origin than this many times their spread are centred: distances need the digits


@dataclass
class RunningFit:
    """What a callback can see of a fit under way (``estimator._running_fit``)."""

    X: Any
    y: np.ndarray
    sample_weight: Any
    trusted: Any
    seeds: np.ndarray  # of the game and of the landmarks
    n_rounds: int
    backend: Any
    feature_names: np.ndarray | None
    state: GameState | None = None


@dataclass(frozen=True)
class Problem:
    """A game, and what connects its rows and columns with those of the user."""

    settings: Settings
    data: TrainingInput
    rows: Rows  # which rows of the input play: those with a positive weight
    game: Game
    gram: Gram  # of the rows that play; the game's own, but for pairs of classes
    kernel: Kernel
    dtype: str
    pairs: Pairs | None
    budget: Budget
    may_flip: np.ndarray  # (n,), of all rows
    step: np.ndarray  # the first one of each column of the game

    @property
    def attacked(self) -> bool:
        """Whether anybody flips labels."""
        return not isinstance(self.game.attacker, NoAttack)

    @property
    def solved(self) -> bool:
        """Whether it is no game but the SVM itself, solved as SVC solves it."""
        return not self.attacked and not self.settings.always_rounds


def make_problem(
    settings: Settings,
    data: TrainingInput,
    sample_weight: Any,
    trusted: Any,
    seeds: np.ndarray,
    on_cluster: bool = False,
) -> Problem:
    """The game that ``fit`` plays on `data`; everything that can be wrong is checked before the kernel is
    computed.
    """
    n_classes = len(data.classes)
    weight = _row_weights(settings, data, sample_weight)
    rows = _used_rows(weight, data.labels, n_classes)
    weight, labels = weight[rows], data.labels[rows]
    eligible = check_trusted(trusted, len(data.labels))
    may_flip = _spread(np.ones(len(labels), dtype=bool) if eligible is None else eligible[rows], rows, len(data.labels))
    eligible = None if eligible is None else eligible[rows]
    decay = check_decay(settings.decay)
    pairs = Pairs.of(labels, n_classes, not on_cluster) if n_classes > 2 and settings.multi_class == "pairs" else None
    budget = resolve_budget(settings, labels, data.classes, pairs)
    kernel, gram, dtype = _gram(settings, data, weight, rows, seeds, on_cluster)
    metric = None if (weight == 1).all() else weight
    game_gram: Gram = gram
    game_labels, cap, ids = labels, settings.C * weight, None
    game_seeds = seeds[:1]
    if pairs is not None:
        game_gram = PairedGram(gram, pairs, parse_bytes(settings.max_memory) // 2)
        game_labels, cap = pairs.labels(labels), pairs.gather(cap, 0.0)
        eligible = pairs.member if eligible is None else pairs.gather(eligible, False)
        metric = None if metric is None else pairs.gather(metric, 1.0)
        ids, game_seeds = pairs.rows.clip(0), (seeds[0] + 7919 * np.arange(len(pairs.classes))) % 2**62
    solved = isinstance(budget.attacker, NoAttack) and not settings.always_rounds
    eta = _step(settings, game_gram, game_labels, metric, 1.0 if solved else BOLD)
    games = 1 if pairs is None else len(pairs.classes)
    kept = 4 * settings.n_rounds * int(np.max(budget.attacker.flips, initial=0)) * games
    game = Game(
        game_gram,
        game_labels,
        cap,
        step_schedule(eta, settings.n_rounds, decay),
        budget.attacker,
        n_classes=n_classes if pairs is None else 2,
        seeds=game_seeds,
        warm_up=settings.warm_up,
        projection=settings.projection,
        eligible=eligible,
        weight=metric,
        tol=settings.tol,
        row_ids=ids,
        keep_flips=kept <= parse_bytes(settings.max_memory) // FLIPS_SHARE,
    )
    step = np.broadcast_to(np.asarray(eta, dtype=float), (game.games * game.width,)).copy()
    return Problem(settings, data, rows, game, gram, kernel, dtype, pairs, budget, may_flip, step)


def play_problem(problem: Problem, state: GameState | None = None, callback: Callback | None = None) -> GameResult:
    """The game, by rounds; without an attacker the SVM's dual, by the accelerated solver."""
    game = problem.game
    gram = game.gram
    work = 2.0 * game.cap.shape[0] * max(gram.nbytes / gram.n, 1) / 4 * game.games
    with threads_for_product(work):
        if problem.solved:
            return minimise(game, SVM_TOL, state, callback)
        return solve(game, state, callback)


def warn_if_unsettled(problem: Problem, result: GameResult) -> None:
    """A ConvergenceWarning where the rounds were over while the model still moved, or a projection failed.

    The words do not depend on what was measured: a search that fits a hundred times shows them once.
    """
    settings, state = problem.settings, result.state
    if not bool(np.all(result.history["projected"])):
        warnings.warn("a projection did not reach its tolerance: check the scale of C and X", ConvergenceWarning, USER)
    if state.settled or state.round < settings.n_rounds:
        return
    if problem.solved:
        fine = result.residual.max() <= SVM_OFF
    else:  # an attacker who draws anew in each round keeps the model moving a little
        fine = settings.tol is None or state.movement <= MOVES * settings.tol
    if fine:
        return
    advice = "raise n_rounds" if problem.solved else "raise n_rounds or tol"
    if _uneven(problem.data.X):
        advice = "scale the columns of X, whose spreads differ by a factor of more than 1,000, or " + advice
    warnings.warn(
        f"the model still moved after n_rounds={settings.n_rounds} rounds: {advice}",
        ConvergenceWarning,
        stacklevel=USER,
    )


def _uneven(X: Any) -> bool:
    """Whether columns of a matrix in memory have very different spreads."""
    if not isinstance(X, np.ndarray):
        return False
    spread = X[: 10**5].std(axis=0)
    spread = spread[spread > 0]
    return bool(len(spread)) and float(spread.max()) > UNEVEN * float(spread.min())


def fitted_attributes(problem: Problem, state: GameState, result: GameResult | None = None) -> dict[str, Any]:
    """Every fitted attribute, from the state of the game after any closed round, or from its `result` at the end."""
    settings = problem.settings
    data, game, gram, pairs = problem.data, problem.game, problem.gram, problem.pairs
    backend, n, rows = gram.backend, len(data.labels), problem.rows
    average = settings.average and not problem.solved
    result = result or result_of(game, state, average)
    weights, bias = (result.mean_weights, result.mean_bias) if average else (result.weights, result.bias)
    dual, cap = result.dual, np.broadcast_to(backend.numpy(game.cap), result.dual.shape)
    load = np.divide(dual, cap, out=np.zeros_like(dual), where=cap > 0)
    flip_rate = result.flip_rate
    if pairs is not None:
        weights, load = pairs.spread(weights), pairs.spread(load)
        flip_rate = pairs.spread(flip_rate).sum(axis=1, keepdims=True) / (len(data.classes) - 1)
    load = load.max(axis=1)
    load = load if load.max() >= 0.99 else load / max(load.max(), 1e-300)
    every = np.arange(n)[rows]
    active = np.any(weights != 0, axis=1)
    support = every[active]
    basis, coef = gram.expansion(weights)
    pair_classes = None if pairs is None else pairs.classes
    precomputed = settings.kernel == "precomputed"
    model = FittedModel(
        problem.kernel,
        every[basis] if precomputed else data.take(every[basis]),
        coef,
        np.array(bias),
        problem.dtype,
        len(data.classes),
        pair_classes,
    )
    columns = backend.numpy(gram.matmat(backend.columns(weights))) + bias
    own = class_scores(without_own(columns, weights, gram.diagonal()), pair_classes, len(data.classes))
    scores = _spread(own, rows, n)
    if len(left_out := np.setdiff1d(np.arange(n), every)):
        square = data.X[left_out] if precomputed else data.take(left_out)
        scores[left_out] = model.scores(square, backend)
    rates = _spread(flip_rate[:, 0], rows, n)
    record = TrainingRecord(data.labels, scores, rates, _spread(load, rows, n), problem.may_flip)
    found = {
        "classes_": data.classes,
        "n_features_in_": data.n_features,
        "dual_coef_": np.ascontiguousarray(weights[active].T),
        "intercept_": np.array(bias),
        "support_": support,
        "support_vectors_": _vectors(data, support, precomputed),
        "n_support_": np.bincount(data.labels[support], minlength=len(data.classes)),
        "n_iter_": state.round,
        "residual_": float(np.max(result.residual)),
        "budget_": problem.budget.points,
        "flips_": problem.budget.flips,
        "gamma_": problem.kernel.gamma,
        "learning_rate_": problem.step,
        "gram_": game.gram.describe(),
        "flip_rate_": record.flip_rate,
        "history_": _history(result.history, problem),
        "model_": model,
        "record_": record,
    }
    return found if data.feature_names is None else found | {"feature_names_in_": data.feature_names}


def _row_weights(settings: Settings, data: TrainingInput, sample_weight: Any) -> np.ndarray:
    """Sample weight times class weight of each row, (n,)."""
    weight = _check_sample_weight(sample_weight, data.labels, dtype=np.float64, copy=True)
    if (weight < 0).any():
        raise ValueError("sample_weight must not be negative")
    if not weight.any():
        raise ValueError("sample_weight is zero for every row")
    if settings.class_weight is not None:
        given = data.classes[data.labels]
        weight *= compute_class_weight(settings.class_weight, classes=data.classes, y=given)[data.labels]
    return weight


def _used_rows(weight: np.ndarray, labels: np.ndarray, n_classes: int) -> Rows:
    """The rows with a positive weight: a row of weight 0 is left out of the game."""
    rows = np.flatnonzero(weight > 0)
    if len(rows) == len(weight):
        return slice(None)
    if len(np.unique(labels[rows])) < n_classes:
        raise ValueError("every row of at least one class has sample_weight 0; each class needs a positive one")
    return rows


def _gram(
    settings: Settings, data: TrainingInput, weight: np.ndarray, rows: Rows, seeds: np.ndarray, on_cluster: bool
) -> tuple[Kernel, Gram, str]:
    """The kernel with its numbers, its operator on the used rows, and the type of its values."""
    used, backend = data.keep(rows), data.backend
    dtype = resolve_dtype(settings.dtype, used.shape[0])
    if settings.kernel == "precomputed":
        check_precomputed(data.X)
        square = used if isinstance(rows, slice) else used[:, rows]
        square = np.ascontiguousarray(square, dtype=dtype)
        return Kernel("precomputed"), DenseGram(backend.array(square), backend), dtype
    if callable(settings.kernel):
        check_callable(settings.kernel, used)
    else:
        _check_scale(used, dtype)
    gamma, shift = _gamma_and_shift(settings, used, weight, dtype)
    kernel = Kernel(settings.kernel, gamma, settings.degree, settings.coef0, shift)
    gram = choose_gram(
        used,
        kernel,
        gram="low_rank" if on_cluster else settings.gram,  # rows on workers have no other
        rank=settings.rank,
        max_memory=settings.max_memory,
        dtype=dtype,
        rng=np.random.default_rng(seeds[1:]),
        backend=backend,
        progress=_factor_log if settings.verbose else None,
    )
    return kernel, gram, dtype


def _check_scale(used: Any, dtype: str) -> None:
    """Refuse rows whose squares overflow or vanish in this type: their kernel would be the same everywhere."""
    if not isinstance(used, np.ndarray) and not sparse.issparse(used):
        return  # tensors and rows in files are checked by their kernel alone
    values = used.data if sparse.issparse(used) else used
    largest = LARGEST if dtype == "float64" else LARGEST_SINGLE
    check_scale(values, largest)
    if values.ndim == 2 and 0 < (spread := float(np.ptp(values, axis=0).max(initial=0.0))) < 1 / largest:
        raise ValueError(f"X varies by at most {spread:.1e}; squares of such vanish: standardise its columns first.")


def _gamma_and_shift(settings: Settings, used: Any, weight: np.ndarray, dtype: str) -> tuple[float, np.ndarray | None]:
    """gamma as a number; the mean of the rows where these are far from the origin or kept in float32."""
    radial = settings.kernel in ("rbf", "laplacian")
    if isinstance(used, RowBlocks):  # one pass for both numbers
        found = used.moments(weight)
        return gamma_of(settings.gamma, found), found.mean if radial and not used.sparse else None
    if sparse.issparse(used) or not radial:
        return resolve_gamma(settings.gamma, used, weight), None
    mean = as_host(used.mean(0))
    far = float(np.abs(mean).max()) > FAR * float(np.ptp(as_host(used[:: max(1, len(used) // 1000)]), axis=0).max())
    shift = mean.astype(np.float64) if far or dtype == "float32" else None
    return resolve_gamma(settings.gamma, used, weight), shift


def _factor_log(made: int, most: int) -> None:
    sys.stderr.write(f"[floral] low-rank kernel: {made} columns of at most {most}\n")


def _step(settings: Settings, gram: Gram, labels: np.ndarray, metric: np.ndarray | None, factor: float) -> Any:
    """The first step size: `factor` / lambda_max of the centred kernel, of each pair of classes on its own."""
    given = None if settings.learning_rate == "auto" else float(settings.learning_rate)
    if isinstance(gram, PairedGram):
        steepest = gram.steepest(labels, metric)
        if given is None:
            return np.where(steepest > 0, factor / np.maximum(steepest, 1e-300), 1.0)
        _warn_of_step(given, float(steepest.max()), gram.n)
        return np.full(len(steepest), given)
    # A tight estimate where it is cheap, so that equal games get equal steps.
    steps, tol = (200, 1e-10) if gram.n <= DENSE_ROWS else (30, 1e-3)
    weight: Array = None if metric is None else gram.backend.columns(metric, gram.backend.float64)
    largest = gram.lambda_max(steps, tol, centred=True, weight=weight)
    if given is None:
        return factor / largest if largest > 0 else 1.0
    _warn_of_step(given, largest, gram.n)
    return given


def _warn_of_step(eta: float, largest: float, n: int) -> None:
    if eta * largest > 2:
        warnings.warn(
            f"learning_rate={eta:g} is above 2 / lambda_max = {2 / largest:.3g} for this kernel and these {n:,} rows "
            f"(lambda_max of the centred Gram: {largest:.4g}): the game will oscillate. "
            "Use learning_rate='auto' or a smaller one.",
            UserWarning,
            stacklevel=USER + 2,
        )


def _vectors(data: TrainingInput, support: np.ndarray, precomputed: bool) -> Any:
    if precomputed:
        return np.empty((0, 0))
    if isinstance(data.X, RowBlocks):  # they may not fit in memory; `support_` says which rows they are
        return np.empty((0, data.X.shape[1]))
    return as_host(data.X[support])  # a copy: what the user does to X later is no concern of the model


def _history(history: dict[str, np.ndarray], problem: Problem) -> dict[str, np.ndarray]:
    """The record with flips as rows of the user's X; quantities of a single column without their last axis."""
    flips = history["flips"]
    every = np.arange(len(problem.data.labels))[problem.rows]
    if problem.pairs is not None and flips.size:
        columns = np.broadcast_to(np.arange(flips.shape[2]), flips.shape)
        flips = np.where(flips >= 0, problem.pairs.rows[flips.clip(0), columns], -1)
    flips = np.where(flips >= 0, every[flips.clip(0)], -1).astype(np.int32)
    return {name: _squeeze(values) for name, values in (history | {"flips": flips}).items()}


def _squeeze(values: np.ndarray) -> np.ndarray:
    return values[..., 0] if values.ndim > 1 and values.shape[-1] == 1 else values


def _spread(values: np.ndarray, rows: Rows, n: int) -> np.ndarray:
    out = np.zeros((n, *values.shape[1:]), dtype=values.dtype)
    out[rows] = values
    return out
