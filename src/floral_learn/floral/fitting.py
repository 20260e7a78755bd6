"""A fit as a line: settings and checked input -> problem -> result -> fitted attributes; B and k -> the attacker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from floral_learn.base.validation import (
    LARGEST,
    LARGEST_SINGLE,
    check_decay,
    check_flip_distribution,
    check_scale,
    check_trusted,
    count_points,
)
from floral_learn.floral.inputs import check_callable, check_precomputed
from floral_learn.game.accelerated import minimise
from floral_learn.game.arrays import NumpyBackend, as_host, is_dask
from floral_learn.game.attackers import Attacker, NoAttack, RandomizedTopK
from floral_learn.game.game import Game, GameResult, solve, step_schedule
from floral_learn.game.gram import (
    DENSE_ROWS,
    EXACT_ROWS,
    MAX_BYTES,
    DenseGram,
    Gram,
    choose_gram,
    format_bytes,
    machine_bytes,
)
from floral_learn.game.kernels import Kernel, resolve_gamma
from floral_learn.game.model import FittedModel, TrainingRecord
from floral_learn.game.pairs import PairedGram, Pairs, vote

Rows = np.ndarray | slice
BOLD = 1.5  # times 1 / lambda_max; below 2 steps with unchanged labels are stable, and larger ones settle sooner
MOVES = 10.0  # times tol: what a game may still move at its last round without a warning
SVM_TOL = 3e-4  # KKT residual at which a game without an attacker is solved; SVC's default is 1e-3
SVM_OFF = 1e-2  # KKT residual above which the last round is not good enough to say nothing: a hundredth of the margin
FAR = 100.0  # rows farther from the origin than this many times their spread are centred: distances need the digits


@dataclass(frozen=True)
class Settings:
    """The parameters of a classifier that plays the game.

    The first block is what every such classifier has; the second has the values of :class:`FloralClassifier`, which
    :class:`PaperFloralClassifier` turns.
    """

    name: str  # of the classifier, for messages
    kernel: str | Callable[..., Any]
    gamma: str | float
    C: float
    budget: Any
    flips: Any
    n_rounds: int
    tol: float | None
    learning_rate: str | float
    gram: str | int
    device: str | None
    random_state: Any

    degree: int = 3
    coef0: float = 0.0
    class_weight: Any = None
    multi_class: str = "pairs"
    per_class: bool = True  # candidates of a class are at most the budget's share of its own rows
    warm_up: int = 1
    decay: tuple[float, int] | None = None
    average: bool = True
    projection: str = "exact"
    flip_distribution: Any = None
    always_rounds: bool = False  # rounds of projected gradient steps also where nobody attacks


@dataclass(frozen=True)
class TrainingInput:
    """Checked rows and labels, and where the game on them is played."""

    X: Any  # matrix, CSR matrix, tensor or dask array
    labels: np.ndarray  # (n,), class numbers
    classes: np.ndarray  # (M,)
    feature_names: np.ndarray | None
    backend: NumpyBackend


@dataclass(frozen=True)
class Problem:
    """A game, and what connects its rows and columns with those of the user."""

    settings: Settings
    data: TrainingInput
    rows: Rows  # which rows of the input play: those with a positive weight
    game: Game
    gram: Gram  # of the rows that play; the game's own, but for pairs of classes
    kernel: Kernel
    pairs: Pairs | None
    budget: Budget
    may_flip: np.ndarray  # (n,), of all rows
    step: np.ndarray  # the first one of each column of the game
    solved: bool  # whether nobody attacks: it is no game but the SVM itself, solved as SVC solves it
    warnings: list[str]  # what the caller of fit should hear


def make_problem(
    settings: Settings,
    data: TrainingInput,
    sample_weight: Any,
    trusted: Any,
    seeds: np.ndarray,
) -> Problem:
    """The game that ``fit`` plays on `data`; everything that can be wrong is checked before the kernel is
    computed.
    """
    n_classes, n = len(data.classes), len(data.labels)
    weight, rows = _row_weights(settings, data, sample_weight)
    weight, labels = weight[rows], data.labels[rows]
    eligible = None if trusted is None else check_trusted(trusted, n)
    may_flip, heard = np.zeros(n, dtype=bool), []
    may_flip[rows] = True if eligible is None else eligible[rows]
    eligible = None if eligible is None else eligible[rows]
    decay = None if settings.decay is None else check_decay(settings.decay)
    pairs = None
    if n_classes > 2 and settings.multi_class == "pairs":
        heard += say_what_pairs_take(labels, n_classes, settings)
        pairs = Pairs.of(labels, n_classes)
    budget = resolve_budget(settings, labels, data.classes, pairs)
    kernel, gram = _gram(settings, data, weight, rows, seeds)
    metric = None if (weight == 1).all() else weight
    game_gram: Gram = gram
    game_labels, cap, ids = labels, settings.C * weight, None
    game_seeds = seeds[:1]
    if pairs is not None:
        game_gram = PairedGram(gram, pairs)
        game_labels, cap = pairs.labels(labels), pairs.gather(cap, 0.0)
        eligible = pairs.member if eligible is None else pairs.gather(eligible, False)
        metric = None if metric is None else pairs.gather(metric, 1.0)
        ids = pairs.rows.clip(0)
        game_seeds = (seeds[0] + 7919 * np.arange(len(pairs.classes))) % 2**62
    solved = isinstance(budget.attacker, NoAttack) and not settings.always_rounds
    if isinstance(game_gram, PairedGram):
        largest = game_gram.steepest(game_labels, metric)
    else:  # a tight estimate where it is cheap, so that equal games get equal steps
        how = (200, 1e-10) if gram.n <= DENSE_ROWS else (30, 1e-3)
        column = None if metric is None else gram.backend.columns(metric, gram.backend.float64)
        largest = np.array([gram.lambda_max(*how, centred=True, weight=column)])
    if settings.learning_rate == "auto":
        bold = 1.0 if solved else BOLD
        eta = np.where(largest > 0, bold / np.where(largest > 0, largest, 1.0), 1.0)
    else:
        eta = np.full(len(largest), float(settings.learning_rate))
        heard += _oscillates(eta, largest, game_gram.n)
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
        keep_flips=kept <= MAX_BYTES / 20,  # a record is no place for gigabytes
    )
    step = np.broadcast_to(eta, (games if game.n_classes == 2 else n_classes,)).copy()
    return Problem(settings, data, rows, game, gram, kernel, pairs, budget, may_flip, step, solved, heard)


def play_problem(problem: Problem) -> GameResult:
    """The game, by rounds; without an attacker the SVM's dual, by the accelerated solver."""
    return minimise(problem.game, SVM_TOL) if problem.solved else solve(problem.game)


def unsettled(problem: Problem, result: GameResult) -> list[str]:
    """What to say where the rounds were over while the model still moved, or a projection failed.

    The words do not depend on what was measured: a search that fits a hundred times shows them once.
    """
    settings, state, heard = problem.settings, result.state, []
    if not result.history["projected"].all():
        heard.append("a projection did not reach its tolerance: check the scale of C and X")
    if state.settled or state.round < settings.n_rounds:
        return heard
    if problem.solved:
        fine = result.residual.max() <= SVM_OFF
    else:  # an attacker who draws anew in each round keeps the model moving a little
        fine = settings.tol is None or state.movement <= MOVES * settings.tol
    if not fine:
        advice = "raise n_rounds" if problem.solved else "raise n_rounds or tol"
        if isinstance(problem.data.X, np.ndarray):
            spread = problem.data.X[: 10**5].std(axis=0)
            spread = spread[spread > 0]
            if len(spread) and float(spread.max()) > 1000 * float(spread.min()):
                advice = "scale the columns of X, whose spreads differ by a factor of more than 1,000, or " + advice
        heard.append(f"the model still moved after n_rounds={settings.n_rounds} rounds: {advice}")
    return heard


def fitted_attributes(problem: Problem, result: GameResult) -> dict[str, Any]:
    """Every fitted attribute."""
    settings, data, game, gram = problem.settings, problem.data, problem.game, problem.gram
    backend, pairs, n, state = gram.backend, problem.pairs, len(data.labels), result.state
    every = np.arange(n)[problem.rows]
    averaged = settings.average and not problem.solved
    weights, bias = (result.mean_weights, result.mean_bias) if averaged else (result.weights, result.bias)
    cap = np.reshape(game.cap, (len(result.dual), -1))
    load = np.divide(result.dual, cap, out=np.zeros_like(result.dual), where=cap > 0)
    flip_rate = result.flip_rate
    if pairs is not None:
        weights, load = pairs.spread(weights), pairs.spread(load)
        flip_rate = pairs.spread(flip_rate).sum(axis=1, keepdims=True) / (len(data.classes) - 1)
    load = load.max(axis=1)
    load = load if load.max() >= 0.99 else load / max(load.max(), 1e-300)
    active = np.any(weights != 0, axis=1)
    support, (basis, coef) = every[active], gram.expansion(weights)
    precomputed = settings.kernel == "precomputed"
    model = FittedModel(
        problem.kernel,
        every[basis] if precomputed else as_host(data.X[every[basis]]),
        coef,
        np.array(bias),
        gram.dtype,
        len(data.classes),
        None if pairs is None else pairs.classes,
    )
    columns = backend.numpy(gram.matmat(backend.columns(weights))) + bias
    own = columns - weights * gram.diagonal()[:, None]  # without each row's own term
    scores = np.zeros((n, own.shape[1] if pairs is None else len(data.classes)))
    scores[problem.rows] = own if pairs is None else vote(own, pairs.classes, len(data.classes))
    if len(left_out := np.setdiff1d(np.arange(n), every)):
        square = data.X[left_out] if precomputed else as_host(data.X[left_out])
        scores[left_out] = model.scores(square, backend)
    record = TrainingRecord(data.labels, scores, np.zeros(n), np.zeros(n), problem.may_flip)
    record.flip_rate[problem.rows], record.load[problem.rows] = flip_rate[:, 0], load
    history, flips = dict(result.history), result.history["flips"]  # flips as rows of the user's X
    if pairs is not None and flips.size:
        columns = np.broadcast_to(np.arange(flips.shape[2]), flips.shape)
        flips = np.where(flips >= 0, pairs.rows[flips.clip(0), columns], -1)
    history["flips"] = np.where(flips >= 0, every[flips.clip(0)], -1).astype(np.int32)
    for name, values in history.items():
        history[name] = values[..., 0] if values.ndim > 1 and values.shape[-1] == 1 else values
    in_memory = not precomputed and not is_dask(data.X)
    fitted = {
        "classes_": data.classes,
        "n_features_in_": int(data.X.shape[1]),
        "dual_coef_": np.ascontiguousarray(weights[active].T),
        "intercept_": np.array(bias),
        "support_": support,
        "support_vectors_": as_host(data.X[support]) if in_memory else np.empty((0, 0)),
        "n_support_": np.bincount(data.labels[support], minlength=len(data.classes)),
        "n_iter_": state.round,
        "residual_": float(np.max(result.residual)),
        "budget_": problem.budget.points,
        "flips_": problem.budget.flips,
        "gamma_": problem.kernel.gamma,
        "learning_rate_": problem.step,
        "gram_": game.gram.describe(),
        "flip_rate_": record.flip_rate,
        "history_": history,
        "model_": model,
        "record_": record,
    }
    return fitted if data.feature_names is None else fitted | {"feature_names_in_": data.feature_names}


def _row_weights(settings: Settings, data: TrainingInput, sample_weight: Any) -> tuple[np.ndarray, Rows]:
    """Sample weight times class weight of each row, (n,); and which rows play: those with a positive one."""
    if sample_weight is not None and (given := np.asarray(sample_weight)).size and not given.any():
        raise ValueError("sample_weight is zero for every row")
    weight = _check_sample_weight(sample_weight, data.labels, dtype=np.float64, copy=True)
    if (weight < 0).any():
        raise ValueError("sample_weight must not be negative")
    if settings.class_weight is not None:
        given = data.classes[data.labels]
        weight *= compute_class_weight(settings.class_weight, classes=data.classes, y=given)[data.labels]
    if (weight > 0).all():
        return weight, slice(None)
    rows = np.flatnonzero(weight > 0)
    if len(np.unique(data.labels[rows])) < len(data.classes):
        raise ValueError("every row of at least one class has sample_weight 0; each class needs a positive one")
    return weight, rows


def _gram(
    settings: Settings, data: TrainingInput, weight: np.ndarray, rows: Rows, seeds: np.ndarray
) -> tuple[Kernel, Gram]:
    """The kernel with its numbers, and its operator on the used rows."""
    X, backend = data.X if isinstance(rows, slice) else data.X[rows], data.backend
    dtype = "float64" if X.shape[0] <= EXACT_ROWS else "float32"
    if settings.kernel == "precomputed":
        check_precomputed(data.X)
        square = np.ascontiguousarray(X if isinstance(rows, slice) else X[:, rows], dtype=dtype)
        return Kernel("precomputed"), DenseGram(backend.array(square), backend)
    if is_dask(X):
        from floral_learn.floral.dask_gram import gram_on_workers

        return gram_on_workers(settings, X, weight, dtype, np.random.default_rng(seeds[1:]))
    if callable(settings.kernel):
        check_callable(settings.kernel, X)
    kernel, rng = kernel_for(settings, X, weight, dtype), np.random.default_rng(seeds[1:])
    return kernel, choose_gram(X, kernel, gram=settings.gram, dtype=dtype, rng=rng, backend=backend)


def kernel_for(settings: Settings, X: Any, weight: np.ndarray, dtype: str) -> Kernel:
    """gamma as a number; rows are shifted by their mean where they are far from the origin or kept in float32.

    Rows whose squares overflow or vanish in this type are refused: their kernel would be the same everywhere.
    """
    largest, shift = LARGEST if dtype == "float64" else LARGEST_SINGLE, None
    if not callable(settings.kernel) and (isinstance(X, np.ndarray) or sparse.issparse(X)):
        check_scale(X, largest)
    radial = settings.kernel in ("rbf", "laplacian") and not sparse.issparse(X)
    gamma = resolve_gamma(settings.gamma, X, weight)
    if radial:
        mean, some = as_host(X.mean(0)), as_host(X[:: max(1, len(X) // 1000)])
        far = float(np.abs(mean).max()) > FAR * float(np.ptp(some, axis=0).max())
        if far or dtype == "float32":
            shift = mean.astype(np.float64)
    return Kernel(settings.kernel, gamma, settings.degree, settings.coef0, shift)


def _oscillates(eta: np.ndarray, largest: np.ndarray, n: int) -> list[str]:
    """A warning of a step that is too large."""
    if eta[0] * largest.max() <= 2:
        return []
    return [
        f"learning_rate={eta[0]:g} is above 2 / lambda_max = {2 / largest.max():.3g} for this kernel and these {n:,} "
        f"rows (lambda_max of the centred Gram: {largest.max():.4g}): the game will oscillate. "
        "Use learning_rate='auto' or a smaller one."
    ]


def say_what_pairs_take(labels: np.ndarray, n_classes: int, settings: Settings) -> list[str]:
    """What the pairs of many classes take, before any work: a MemoryError, or a warning from a thousand pairs on."""
    count, rows = n_classes * (n_classes - 1) // 2, int(np.sort(np.bincount(labels))[-2:].sum())
    duals = count * rows
    needed = 8 * 25 * duals  # a game under way holds some 25 arrays of the duals' size, in float64
    words = (
        f"{n_classes} classes make {count:,} pairs, with {duals:,} duals in all: about {format_bytes(needed)} and "
        f"{settings.n_rounds * duals:.1e} updates of a dual; multi_class='one-vs-rest' plays {n_classes} columns of "
        f"{len(labels):,} duals"
    )
    if needed > machine_bytes():
        raise MemoryError(words)
    return [words] if count > 1000 else []


@dataclass(frozen=True)
class Budget:
    """The attacker, and what ``budget_`` and ``flips_`` show."""

    attacker: Attacker
    points: int
    flips: int


def resolve_budget(settings: Settings, labels: np.ndarray, classes: np.ndarray, pairs: Pairs | None = None) -> Budget:
    """The attacker for a budget (B) and flips (k; None is half of B) on rows with class numbers `labels`.

    With `per_class` the candidates of a class are at most that share of its own rows, so that a rare class is never
    taken whole, and of two classes the larger one has no more of them than the smaller, so that a rare class is not
    flooded either; without, they are the B largest duals of all rows, as in the paper. The game of a pair of classes
    gets 2 / M of the share of its own rows, so that as many labels are flipped per round, over all pairs, as in a game
    of two classes.
    """
    n, width = len(labels), 1 if len(classes) == 2 else len(classes)
    budget, flips, per_class = settings.budget, settings.flips, settings.per_class
    distribution = settings.flip_distribution
    distribution = None if distribution is None else check_flip_distribution(distribution, len(classes))
    if isinstance(budget, dict):
        columns = _per_column(budget, n, classes)
        per_class, points = False, int(columns.sum())
    else:
        points = count_points(budget, n, "budget")
        columns = np.full(width, points)
    most = int(columns.max())
    k = most // 2 if flips is None else count_points(flips, n, "flips")
    if k > most:
        raise ValueError(f"flips={flips!r} is {k} points, more than the budget of {most} to choose from")
    if most < 2 or k == 0:
        return Budget(NoAttack(), 0, 0)
    if pairs is not None:
        # A row plays in M - 1 of M (M - 1) / 2 pairs: 2 / M of the share in each makes about B candidates in all.
        share = most / n * 2 / len(classes)
        return Budget(_pair_attacker(share, k / most, labels, pairs, per_class), points, k)
    if not per_class:
        return Budget(RandomizedTopK(columns, k, distribution), points, k)
    counts = np.bincount(labels, minlength=len(classes))
    caps = class_caps(most / n, np.minimum(counts, counts[::-1]) if width == 1 else counts)
    k = min(k, int(caps.sum()) if flips is not None else int(caps.sum()) // 2)
    if k == 0:
        return Budget(NoAttack(), 0, 0)
    return Budget(RandomizedTopK(0, k, distribution, class_budget=caps), int(caps.sum()), k)


def class_caps(share: float, counts: np.ndarray) -> np.ndarray:
    """Candidates of each class: `share` of its own rows, rounded down."""
    return np.floor(share * counts + 1e-9).astype(int)


def _pair_attacker(share: float, flipped: float, labels: np.ndarray, pairs: Pairs, per_class: bool) -> Attacker:
    counts = np.bincount(labels, minlength=int(pairs.classes.max()) + 1)
    caps = class_caps(share, np.repeat(counts[pairs.classes].min(axis=1, keepdims=True), 2, axis=1))
    rows = counts[pairs.classes].sum(axis=1)
    total = caps.sum(axis=1) if per_class else np.floor(share * rows + 1e-9).astype(int)
    k = np.floor(flipped * total + 1e-9).astype(int)
    return RandomizedTopK(total[:, None], k, class_budget=caps if per_class else None)


def _per_column(budget: dict[Any, Any], n: int, classes: np.ndarray) -> np.ndarray:
    """B_m, the candidates that the attacker of each class names (Algorithm 3), (M,)."""
    if len(classes) == 2:
        raise ValueError("budget= as a dict needs three or more classes: with two there is one attacker")
    known = classes.tolist()
    if set(budget) != set(known):
        raise ValueError(f"budget= must have exactly the classes {sorted(map(str, known))} as keys")
    return np.array([count_points(budget[c], n, f"budget[{c!r}]") for c in known])
