"""``FloralClassifier.fit`` on a cluster: dask arrays or dataframes in, an ordinary fitted classifier out.

The round is the one of game/game.py, with sums over workers in place of sums over rows. It exchanges, for each worker:
the candidates (exchange 1), the product F'v of the size of the rank (exchange 2), and scalars for the projection
(exchange 3 and one more for each further pass over mu). Closing some rounds takes two more, however many they are. The
flips are drawn here, from the same stream as on one machine.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from floral_learn.base.callbacks import RoundLog
from floral_learn.base.extras import install_line
from floral_learn.base.validation import generator
from floral_learn.floral.dask_rows import ClusterRows
from floral_learn.floral.fitting import RunningFit, fitted_attributes, make_problem, warn_if_unsettled
from floral_learn.floral.inputs import TrainingInput, is_dask
from floral_learn.floral.settings import Settings
from floral_learn.game.arrays import NUMPY
from floral_learn.game.attackers import Flips, NoAttack, View
from floral_learn.game.dual import KKTSums, optimality_of
from floral_learn.game.game import Callback, Game, play, result_of
from floral_learn.game.model import FittedModel, predicted
from floral_learn.game.projections import Root, find_root
from floral_learn.game.state import GameState, History, Marks

if TYPE_CHECKING:
    from floral_learn.floral.classifier import GameClassifier

CHECKPOINT_ROUNDS = 25
CHECKPOINT_SECONDS = 30.0


def solve_on_workers(game: Game, rows: ClusterRows, callback: Callback | None = None) -> GameState:
    """Play `game` on the workers that hold `rows`, from the last checkpoint of `rows` to its end."""
    rounds = ClusterRounds(game, rows)
    play(rounds, callback)
    return rounds.collect()


class ClusterRounds:
    """`game.operations.Rows` whose rows lie on workers; this process holds scalars, and the history."""

    def __init__(self, game: Game, rows: ClusterRows) -> None:
        self.game, self.rows, self.columns = game, rows, game.games * game.width
        self.looked = 0
        self.saved = time.monotonic()
        kept = rows.checkpoint
        if kept is not None:
            self.state = kept.copy(NUMPY)
        else:
            empty = np.zeros((0, self.columns))
            marks = Marks(Marks.stride_for(game.labels.shape[0] * self.columns, game.rounds))
            self.state = GameState(0, empty, empty, np.zeros(self.columns), empty, empty, History(), marks)
        self.closed = self.state.round
        self.view = View(
            np.zeros((0, self.columns)), game.labels, game.n_classes, None, None, game.seeds, NUMPY, None, None
        )

    def attack(self, number: int) -> Flips:
        """k of the candidates of all workers."""
        attacker = self.game.attacker_of(number)
        lists = self.rows.each("candidates", isinstance(attacker, NoAttack))
        merged = [_largest([part[i] for part in lists]) for i in range(len(lists[0]))]
        candidates = np.concatenate(merged) if merged else np.zeros((0, self.columns), dtype=np.int64)
        return attacker.choose(candidates, self.view, number)

    def relabel(self, flips: Flips) -> None:
        """Each worker flips its own rows."""
        self.flips = flips

    def descend(self, number: int) -> None:
        """F' of the weights, summed over the workers, back to each of them for its step and a first look at phi."""
        shares = _split(self.flips, self.rows.bounds)
        inner = np.sum(self.rows.each("product", own=shares), axis=0, dtype=np.float64)
        self.answers = self.rows.each("advance", inner, self.game.eta[number - 1], self.state.mu)

    def project(self) -> Root:
        """The root of the sum over workers of phi."""
        first = self.answers
        left, right = np.min([part[0] for part in first], axis=0), np.max([part[1] for part in first], axis=0)
        known = np.array(self.state.mu)

        def sums(mu: np.ndarray) -> tuple[np.ndarray, ...]:
            # The workers have looked at the former mu on their way.
            at_hand = [part[2:] for part in first] if np.array_equal(mu, known) else None
            known[:] = np.nan
            parts = self.rows.each("phi", mu) if at_hand is None else at_hand
            return tuple(np.sum(values, axis=0) for values in zip(*parts))

        return find_root(sums, left, right, self.state.mu, np)

    def accept(self, found: Root, flips: Flips) -> None:
        """The workers take the point that they looked at last; the marks of their sums are counted here, too."""
        state, number = self.state, self.state.round + 1
        self.rows.each("accept", number, self.game.rounds // 2)
        state.mu = found.mu
        state.marks.note(number, None, self.game.rounds // 2)

    def full(self) -> bool:
        """Whether it is time for a checkpoint, which wants every round closed."""
        late = time.monotonic() - self.saved > CHECKPOINT_SECONDS
        return self.state.round - self.closed >= CHECKPOINT_ROUNDS or late

    def close(self) -> None:
        """From the sums of all workers; then a checkpoint, if it is time."""
        waiting = self.state.round - self.closed
        inner = np.sum(self.rows.each("closing_product"), axis=0, dtype=np.float64)
        sums = KKTSums.joined(self.rows.each("closing", inner))
        parts = *optimality_of(sums), sums.objective
        self.state.history.close_rounds(*(part.reshape(waiting, -1) for part in parts))
        self.closed = self.state.round
        late = time.monotonic() - self.saved > CHECKPOINT_SECONDS
        if self.state.round % CHECKPOINT_ROUNDS == 0 or late:
            self.rows.checkpoint, self.saved = self.collect(), time.monotonic()

    def movement(self) -> float:
        """Mean squared change per round of the averaged decision values since the last look."""
        state = self.state
        first, _ = state.marks.nearest(state.round // 2)
        inner = np.sum(self.rows.each("average", state.round, first), axis=0, dtype=np.float64)
        found = self.rows.each("moved", inner, state.history.mean_bias(first, NUMPY))
        rounds, self.looked = state.round - self.looked, state.round
        if found[0] is None:
            return float("inf")
        total, count = np.sum(found, axis=0)
        return float(np.mean(total / np.maximum(count, 1))) / rounds

    def collect(self) -> GameState:
        """The state with what the workers hold."""
        dual, signs, weight_sum, flip_count, *marked = self.rows.collect()
        marks = replace(self.state.marks, weights=marked)
        whole = replace(
            self.state, dual=dual, signs=signs.astype(float), weight_sum=weight_sum, flip_count=flip_count, marks=marks
        )
        return whole.copy(NUMPY)


def _largest(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> np.ndarray:
    """Row numbers of the largest keys of each column among those that the workers named, (places, c), -1 where
    empty.
    """
    keys, rows = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    counts = parts[0][2]
    best = np.full((int(counts.max()), keys.shape[1]), -1, dtype=np.int64)
    for column, count in enumerate(counts):
        order = np.argsort(-keys[:, column], kind="stable")[:count]
        best[: len(order), column] = rows[order, column]
    return best


def _split(flips: Flips, bounds: np.ndarray) -> list[tuple[Any, ...]]:
    """The flips of each part: rows as numbers of the part, -1 for those of others."""
    parts = []
    for start, stop in pairwise(bounds):
        here = (flips.points >= start) & (flips.points < stop)
        parts.append((np.where(here, flips.points - start, -1), flips.labels))
    return parts


_INSTALL = f"fitting on a cluster needs dask: {install_line('dask')}"


def fit_on_workers(
    settings: Settings, X: Any, y: Any, sample_weight: Any, trusted: Any, watched: Callable[..., Any]
) -> dict[str, Any]:
    """Fitted attributes for the rows of X (dask array or dataframe) and of y (or the name of a column), left on the
    workers; `watched` gives the callback for a running fit.

    The game is the one of a single machine with ``gram="low_rank"`` and the same seed. A worker that dies is replaced
    by the others, from the last checkpoint (each 25 rounds or 30 seconds, held by this process).
    """
    _refuse(settings)
    settings = replace(settings, always_rounds=True)  # workers have rounds only, no accelerated solver
    rows = ClusterRows(_current_client(), *_chunks(X, y))
    if rows.shape[0] < 2:
        raise ValueError(f"X has {rows.shape[0]} rows; {settings.name} needs at least 2")
    classes = rows.labels_found
    if len(classes) < 2:
        raise ValueError(f"y has only one class ({classes.tolist()[0]!r}); {settings.name} needs at least 2 classes")
    labels = rows.recovering(lambda: rows.encode(classes))
    names = None if rows.names is None else np.array(rows.names, dtype=object)
    data = TrainingInput(rows, y, labels, classes, rows.shape[1], names, NUMPY)
    weight = _in_memory(sample_weight)
    if weight is not None and not np.all(weight):
        raise ValueError("a row has weight 0: leave such rows out of X and y when fitting on a cluster")
    seeds = generator(settings.random_state).integers(2**62, size=2)
    mask = _in_memory(trusted)
    log = RoundLog(settings.n_rounds) if settings.verbose else None
    problem = rows.recovering(lambda: make_problem(settings, data, weight, mask, seeds, on_cluster=True))
    rows.recovering(lambda: rows.begin(problem.game, problem.gram))
    running = RunningFit(X, y, sample_weight, trusted, seeds, settings.n_rounds, NUMPY, names)
    with watched(running, problem, log) as callback:
        once = _once(callback)
        state = rows.recovering(lambda: solve_on_workers(problem.game, rows, once))
    rows.checkpoint = state
    result = result_of(problem.game, state)
    warn_if_unsettled(problem, result)
    return rows.recovering(lambda: fitted_attributes(problem, state, result))


def _refuse(settings: Settings) -> None:
    """What a cluster cannot do, before any work."""
    if settings.needs_matrix:
        raise ValueError("dask input needs a named kernel other than 'precomputed'")
    if settings.gram not in ("auto", "low_rank"):
        raise ValueError(f"gram={settings.gram!r} cannot be spread over workers; use gram='low_rank' or 'auto'")
    if settings.kernel == "sigmoid":
        raise ValueError("the sigmoid kernel may be indefinite and has no low-rank factor, which a cluster needs")
    if settings.projection != "exact":
        raise ValueError(f"projection={settings.projection!r} runs on one machine only; use projection='exact'")
    if settings.device is not None:
        raise ValueError(f"device={settings.device!r}: workers compute with numpy; use device=None")


def _current_client() -> Any:
    try:
        from dask.distributed import default_client
    except ImportError as error:
        raise ImportError(_INSTALL) from error
    try:
        return default_client()
    except ValueError as error:
        raise ValueError(
            "dask input is fitted on a dask.distributed cluster: make a client first, such as "
            "dask.distributed.Client() for this machine or Client('tcp://...:8786')"
        ) from error


def _is_frame(x: Any) -> bool:
    """Whether `x` is a dask dataframe or series; they are not imported to find out."""
    frames = sys.modules.get("dask.dataframe")
    return frames is not None and isinstance(x, frames.DataFrame | frames.Series)


def _chunks(X: Any, y: Any) -> tuple[list[tuple[Any, Any]], list[str] | None]:
    """Blocks of X and y side by side, and the names of the columns if X is a dataframe."""
    return _frame_chunks(X, y) if _is_frame(X) else (_array_chunks(X, y), None)


def _frame_chunks(X: Any, y: Any) -> tuple[list[tuple[Any, Any]], list[str]]:
    from dask import delayed

    label = y
    if not isinstance(y, str):
        if not _is_frame(y):
            raise ValueError("y must be a dask series or the name of a column where X is a dask dataframe")
        # One table: two that are read apart may be cut into different partitions.
        label = "untrusted label"
        X = X.assign(**{label: y})
    names = [str(name) for name in X.columns if name != label]
    features, labels = delayed(_features, pure=True), delayed(_labels, pure=True)
    return [(features(part, label), labels(part, label)) for part in X.to_delayed()], names


def _features(part: Any, label: str) -> np.ndarray:
    return part.drop(columns=label).to_numpy()


def _labels(part: Any, label: str) -> np.ndarray:
    return np.asarray(part[label].to_numpy())


def _array_chunks(X: Any, y: Any) -> list[tuple[Any, Any]]:
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions; it has {X.ndim}")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    known = not np.isnan(X.shape[0])
    if _is_frame(y):
        y = y.to_dask_array()
    if not is_dask(y):
        import dask.array as da

        if not known:
            raise ValueError("y must be a dask collection like X where the lengths of X's blocks are not known")
        y = da.from_array(np.asarray(y), chunks=-1)
    if known and not np.isnan(y.shape[0]):
        if X.shape[0] != y.shape[0]:
            raise ValueError(f"X has {X.shape[0]:,} rows and y has {y.shape[0]:,}; y needs one label per row")
        y = y.reshape(-1).rechunk((X.chunks[0],))
    if X.numblocks[0] != y.numblocks[0]:
        raise ValueError(f"X has {X.numblocks[0]} blocks of rows and y has {y.numblocks[0]}; they must match")
    return list(zip(X.to_delayed().ravel(), y.to_delayed().ravel()))


def _once(callback: Callback | None) -> Callback | None:
    """`callback` for rounds that it has not seen: those after a checkpoint are played again when a worker is lost."""
    seen = 0

    def after_round(state: GameState) -> bool:
        nonlocal seen
        if callback is None or state.round <= seen:
            return False
        seen = state.round
        return bool(callback(state))

    return after_round if callback is not None else None


def _in_memory(values: Any) -> Any:
    return values.compute() if is_dask(values) else values


def scores_on_workers(clf: GameClassifier, X: Any) -> Any:
    """Scores of every row as a lazy dask array, (n,) or (n, n_classes); the workers get the fitted model, no more."""
    X = _columns_of_the_fit(clf, X)
    if len(clf.classes_) == 2:
        return X.map_blocks(_block_scores, clf.model_, dtype=np.float64, drop_axis=1)
    return X.map_blocks(_block_scores, clf.model_, dtype=np.float64, chunks=(X.chunks[0], (len(clf.classes_),)))


def classes_on_workers(clf: GameClassifier, X: Any) -> Any:
    """The class of every row as a lazy dask array, (n,)."""
    rows = _columns_of_the_fit(clf, X)
    return rows.map_blocks(_block_classes, clf.model_, clf.classes_, dtype=clf.classes_.dtype, drop_axis=1)


def _columns_of_the_fit(clf: GameClassifier, X: Any) -> Any:
    if _is_frame(X):
        names = getattr(clf, "feature_names_in_", None)
        X = (X if names is None else X[list(names)]).to_dask_array()
    if X.shape[1] != clf.n_features_in_:
        raise ValueError(f"X has {X.shape[1]} features, but the model expects {clf.n_features_in_}")
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X


def _block_scores(block: np.ndarray, model: FittedModel) -> np.ndarray:
    if not np.isfinite(block).all():
        raise ValueError("Input X contains NaN or infinity")
    scores = model.scores(block, NUMPY)
    return scores[:, 0] if model.n_classes == 2 else scores


def _block_classes(block: np.ndarray, model: FittedModel, classes: np.ndarray) -> np.ndarray:
    return classes[predicted(model.scores(block, NUMPY))]
