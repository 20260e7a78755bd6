"""FLORAL: a kernel SVM trained as a game against an attacker who flips labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral, Real
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from floral_learn.base.callbacks import CallbackSupportMixin, RoundLog, with_callbacks
from floral_learn.base.estimator import Estimator
from floral_learn.base.extras import install_line
from floral_learn.base.validation import generator
from floral_learn.floral.fitting import (
    Problem,
    RunningFit,
    fitted_attributes,
    make_problem,
    play_problem,
    warn_if_unsettled,
)
from floral_learn.floral.inputs import (
    as_host,
    as_tensors_of,
    backend_of,
    is_blocks,
    is_dask,
    open_query,
    read_query,
    read_training,
    tensor_of,
)
from floral_learn.floral.settings import Engine, Settings
from floral_learn.game.arrays import threads_for_rows
from floral_learn.game.kernels import KERNELS
from floral_learn.game.model import FittedModel, TrainingRecord, margins, predicted, reason_texts
from floral_learn.game.state import GameState

if TYPE_CHECKING:
    import pandas as pd

MULTI_CLASS = ("pairs", "one-vs-rest")
# The fit that runs in this thread, for callbacks: on the estimator, two threads would take it from each other.
_RUNNING: ContextVar[tuple[Any, RunningFit] | None] = ContextVar("running fit", default=None)
_LOCK, _FOLLOWED = Lock(), set[int]()  # estimators whose callbacks follow a fit
# Allowed values of what every classifier that plays the game has.
SHARED_CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [StrOptions(set(KERNELS)), callable],
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="neither")],
    "degree": [Interval(Integral, 1, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "C": [Interval(Real, 0.0, None, closed="neither")],
    "class_weight": [StrOptions({"balanced"}), dict, None],
    "flips": [Real, None],
    "n_rounds": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0.0, None, closed="neither"), None],
    "learning_rate": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="neither")],
    "engine": [Engine, None],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["verbose"],
}


class GameClassifier(CallbackSupportMixin, ClassifierMixin, Estimator):
    """What classifiers that play the game share: everything but their parameters."""

    kernel: str | Callable[..., Any]
    engine: Engine | None
    n_rounds: int
    # Of a fit that has ended.
    classes_: np.ndarray
    n_features_in_: int
    model_: FittedModel
    record_: TrainingRecord

    def _settings(self) -> Settings:
        """All parameters, for a fit."""
        raise NotImplementedError

    def _shared_settings(self) -> dict[str, Any]:
        """Those that every such classifier has, by name; the engine's own are checked here."""
        engine = Engine() if self.engine is None else self.engine
        engine._validate_params()
        shared = {name: getattr(self, name) for name in (*SHARED_CONSTRAINTS, "budget") if name != "engine"}
        return {"name": type(self).__name__, **shared, **engine.get_params(deep=False)}

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``engine__rank=200`` and the like make an engine where there is none.

        Returns
        -------
        self
        """
        own = {name.removeprefix("engine__"): value for name, value in params.items() if name.startswith("engine__")}
        if own and params.get("engine", self.engine) is None:
            rest = {name: value for name, value in params.items() if not name.startswith("engine__")}
            params = {**rest, "engine": Engine().set_params(**own)}
        return super().set_params(**params)

    def __sklearn_tags__(self) -> Any:
        """Sparse rows are welcome, and tensors but for kernels that need numpy; a precomputed kernel is pairwise."""
        tags = super().__sklearn_tags__()
        tags.array_api_support = self.kernel != "precomputed" and not callable(self.kernel)
        tags.input_tags.sparse = self.kernel != "precomputed" and not callable(self.kernel)
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """What a file holds: fitted tensors as arrays, so that a model can be read where there is no torch."""
        return {name: as_host(value) for name, value in super().__getstate__().items()}

    def fit(self, X: Any, y: Any, sample_weight: Any = None, trusted: Any = None) -> Self:
        """Play the game on rows `X` with untrusted labels `y`.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            Also a path to a .npy or Parquet file (or a folder of the latter) or a numpy memory map, which are read in
            blocks; a dask array or dataframe, whose rows stay on the workers of the current client; or a torch tensor,
            which stays on its device: the game is played there, and scores of tensors are tensors.
        y : array-like of shape (n_samples,)
            Any labels: numbers, strings, booleans. For a Parquet file also the name of its label column.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 2 counts as two equal rows; weight 0 leaves a row out.
        trusted : bool array of shape (n_samples,), optional
            Labels known to be right: the attacker never flips them.

        Returns
        -------
        self
        """
        with self._one_fit_at_a_time():
            return self._validated_fit(X, y, sample_weight, trusted)

    def _fit(
        self, X: Any, y: Any, sample_weight: Any = None, trusted: Any = None, seeds: Any = None, state: Any = None
    ) -> Self:
        settings = self._settings()
        if is_dask(X):
            from floral_learn.floral.dask_fit import fit_on_workers

            return self._set_fitted(fit_on_workers(settings, X, y, sample_weight, trusted, self._with_rounds_reported))
        sample_weight, trusted = as_host(sample_weight), as_host(trusted)
        data = read_training(self, settings, X, y)
        if seeds is None:
            seeds = generator(settings.random_state).integers(2**62, size=2)
        log = RoundLog(settings.n_rounds) if settings.verbose else None
        with data.backend.here(), threads_for_rows(len(data.labels)):
            problem = make_problem(settings, data, sample_weight, trusted, seeds)
            running = RunningFit(
                data.X, data.y, sample_weight, trusted, seeds, settings.n_rounds, data.backend, data.feature_names
            )
            with self._with_rounds_reported(running, problem, log) as callback:
                result = play_problem(problem, state, callback)
            warn_if_unsettled(problem, result)
            return self._set_fitted(as_tensors_of(fitted_attributes(problem, result.state, result), X))

    _resume = with_callbacks(_fit)
    _validated_fit = with_callbacks(_fit_context(prefer_skip_nested_validation=True)(_fit))

    @contextmanager
    def _one_fit_at_a_time(self) -> Iterator[None]:
        """Refuse a second fit of this object while one with callbacks is under way: these follow one fit at a time."""
        if not getattr(self, "_skl_callbacks", None):
            yield
            return
        with _LOCK:
            if id(self) in _FOLLOWED:
                raise RuntimeError(
                    f"this {type(self).__name__} is being fitted in another thread, and its callbacks follow one fit "
                    "at a time: fit a clone in each thread"
                )
            _FOLLOWED.add(id(self))
        try:
            yield
        finally:
            with _LOCK:
                _FOLLOWED.discard(id(self))

    def _set_fitted(self, fitted: dict[str, Any]) -> Self:
        """Take on the attributes of a fit that has succeeded, all at once; those of the former one go."""
        kept = {name: value for name, value in vars(self).items() if not name.endswith("_") or name.startswith("_")}
        self.__dict__ = kept | fitted  # one assignment: another thread sees the former fit or this one
        return self

    @property
    def _running_fit(self) -> RunningFit | None:
        """The fit of this estimator that is under way in this thread, for callbacks."""
        running = _RUNNING.get()
        return running[1] if running is not None and running[0] is self else None

    @contextmanager
    def _with_rounds_reported(
        self, running: RunningFit, problem: Problem, log: RoundLog | None
    ) -> Iterator[Callable[[GameState], bool] | None]:
        """What happens after each round: callbacks, if any are set, and lines on stderr if verbose."""
        root = None
        before = _RUNNING.set((self, running))
        try:
            if getattr(self, "_skl_callbacks", None):
                root = self._init_callback_context(max_subtasks=self.n_rounds)
                root.call_on_fit_task_begin(estimator=self, X=running.X, y=running.y)

            def after_round(state: GameState) -> bool:
                running.state = state
                if log is not None:
                    log(state)
                if root is None:
                    return False
                task = root.subcontext(task_name=f"round {state.round}")
                task.call_on_fit_task_begin(estimator=self, X=running.X, y=running.y)
                stop = task.call_on_fit_task_end(
                    estimator=self,
                    X=running.X,
                    y=running.y,
                    reconstruction_attributes=lambda: fitted_attributes(problem, state),
                )
                return bool(stop)

            yield None if log is None and root is None else after_round
            if root is not None:
                root.call_on_fit_task_end(estimator=self, X=running.X, y=running.y)
        finally:
            _RUNNING.reset(before)

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distance-like score: positive is ``classes_[1]`` for two classes, largest wins for more.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        if is_dask(X):
            from floral_learn.floral.dask_fit import scores_on_workers

            return scores_on_workers(self, X)
        settings = self._settings()
        if is_blocks(X):
            backend = backend_of(settings, X)
            found = [self.model_.scores(block, backend) for _, block in open_query(self, X).blocks()]
            scores = np.concatenate(found)
            if not np.isfinite(scores).all():
                raise ValueError("Input X contains NaN or infinity")
        else:
            rows = read_query(self, settings, X)
            scores = tensor_of(self.model_.scores(rows, backend_of(settings, rows)), X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if is_dask(X):
            from floral_learn.floral.dask_fit import classes_on_workers

            return classes_on_workers(self, X)
        scores = as_host(self.decision_function(X))
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return tensor_of(self.classes_[chosen], X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows that are predicted right; of untrusted labels it is misleading.

        Returns
        -------
        float
        """
        from sklearn.metrics import accuracy_score

        return accuracy_score(as_host(y), as_host(self.predict(X)), sample_weight=as_host(sample_weight))

    def label_issues(self, X: Any = None) -> pd.DataFrame:
        """Rank the training labels, the most doubtful first.

        With the training rows `X` the ranking and the flags are those of :func:`floral_learn.find_label_issues`: held-
        out judges and neighbours. Without them the model itself judges each label, less that row's own term, which
        ranks less well. The game's own marks (the model disagrees, the attacker often flips the label, its dual is at
        the cap) are the reasons in both cases.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n, d), optional
            The rows that `fit` had.

        Returns
        -------
        pandas.DataFrame
            ``row``, ``given``, ``suggested`` (the given label where the judges agree with it), ``score`` (ranks
            labels, in [0, 1], not a probability), ``flagged`` (none where the judges are no better than the class
            shares) and ``reasons``; every training row is listed.
        """
        check_is_fitted(self)
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(f"label_issues() needs pandas: {install_line('cli')}") from error
        record = self.record_
        scores, labels = record.scores, record.labels
        # Here and not above: who only trains does not wait for the judges and the readers of tables.
        from floral_learn.labels.evidence import judge_labels
        from floral_learn.labels.flagging import gain_over_shares
        from floral_learn.labels.noise import calibrate

        margin = margins(scores, labels)
        if X is None:
            by_class = np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores
            known = gain_over_shares(calibrate(by_class, labels), labels)[1]
            named, negative = predicted(scores), margin[margin < 0]
            flagged = (margin < np.median(negative)) & known if len(negative) else np.zeros(len(margin), dtype=bool)
            score = 0.5 * (flagged + expit(-margin))
        else:
            evidence = judge_labels(as_host(X), self.classes_[labels], random_state=0)
            found, named = evidence.flags(), evidence.probability.argmax(axis=1)
            score, flagged = found.score, found.flagged
        order = np.argsort(-score, kind="stable")
        return pd.DataFrame(
            {
                "row": order,
                "given": self.classes_[labels[order]],
                "suggested": self.classes_[named[order]],
                "score": score[order],
                "flagged": flagged[order],
                "reasons": np.array(reason_texts(scores, labels, record.flip_rate, record.load), dtype=object)[order],
            }
        )


class FloralClassifier(GameClassifier):
    """Kernel SVM for labels you do not trust: min over duals, against an attacker who flips influential labels.

    In each round an attacker flips the labels of k random points among the B largest dual variables, and the SVM
    answers with one projected gradient step on its dual (FLORAL, ICLR 2025, Algorithms 1 and 3). It takes the place of
    :class:`sklearn.svm.SVC` in pipelines and searches; several classes are trained in pairs, as there.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "sigmoid", "laplacian", "precomputed"} or callable, default="rbf"
        A callable gets two arrays of rows and returns the matrix of kernel values.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel width, as in SVC: "scale" is 1 / (n_features * Var(X)), "auto" is 1 / n_features.
    degree : int, default=3
        Degree of the poly kernel.
    coef0 : float, default=0.0
        Constant of the poly and sigmoid kernels.
    C : float, default=1.0
        Upper bound of the dual variables; row i has C times its sample weight.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the sample weights, as in SVC.
    budget : float or int, default=0.05
        B, the points among which the attacker chooses: a fraction of the rows (float) or a count (int). The share of
        wrong labels is where to begin if C is large; far above it costs accuracy. Below 2 points the attacker is off,
        and the model is SVC's. Candidates of a class are at most that share of its own rows (and, of two classes, of
        the smaller one's), so that a rare class is neither taken whole nor flooded. Pairs of M classes have 2 / M of
        that share of their own rows each: about B candidates in all.
    flips : float, int or None, default=None
        k, the points flipped per round; None is half of B.
    n_rounds : int, default=500
        T, the most rounds to be played.
    tol : float or None, default=3e-4
        End the game once the mean squared change per round of the averaged decision values on the training rows, from
        one look to the next (after 24, 32, 48, 64, 96, ... rounds), is at most `tol` (before round 64, a third of it);
        0.0003 is reached after some 32 to 192 rounds. None plays `n_rounds` rounds. A ConvergenceWarning says that the
        rounds were over while the model still moved by more than ten times `tol`. With the attacker off there is no
        game to settle: the SVM is solved, in at most `n_rounds` accelerated steps, to a KKT residual of 0.0003 (a
        warning: above 0.01).
    learning_rate : "auto" or float, default="auto"
        Step size eta. "auto" is 1.5 / lambda_max of the centred Gram matrix (1 / lambda_max with the attacker off);
        2 / lambda_max is the largest step that is stable as long as the labels stay those of the last round.
    multi_class : {"pairs", "one-vs-rest"}, default="pairs"
        Three or more classes: a game for each pair of classes, decided by votes as in SVC, or one column per class in a
        single game (the paper's Algorithm 3).
    engine : Engine or None, default=None
        How and where the game is computed: Gram operator, rank, memory, device, type. None is ``Engine()``.
    random_state : int, RandomState, Generator or None, default=None
        Draws the flips, the order among ties and the landmarks of the low-rank kernel.
    verbose : int, default=0
        1 writes lines to stderr while the fit runs, with the time left.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (1, n_SV), (n_pairs, n_SV) or (n_classes, n_SV)
        Dual times label sign (of the flipped labels), the mean over the last half of the rounds; one row per column of
        the game. Pairs are in the order of ``itertools.combinations(classes_, 2)``, positive for the second class.
    intercept_ : ndarray of shape (1,), (n_pairs,) or (n_classes,)
    support_ : ndarray of shape (n_SV,)
        Rows with a non-zero weight.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
        Copies. Empty where X was a file or lay on workers: the model then has landmarks of its own.
    n_support_ : ndarray of shape (n_classes,)
    n_iter_ : int
        Rounds played.
    residual_ : float
        Largest violation of the KKT conditions by the last round's duals, under that round's labels.
    budget_ : int
        B in points of all rows; 0 when the attacker was off.
    flips_ : int
        k in points.
    gamma_ : float
    learning_rate_ : ndarray of shape (1,), (n_pairs,) or (n_classes,)
        The first step size of each column of the game.
    gram_ : str
        The Gram operator that was used, with the bytes it took.
    flip_rate_ : ndarray of shape (n_samples,)
        Share of the attacked rounds in which the attacker flipped a row's label.
    history_ : dict of ndarray
        ``objective``, ``residual`` (KKT), ``bias``, ``mu``, ``step``, ``flips``, ``projection_iterations`` and
        ``projected`` (whether the projection reached its tolerance), each with the round as its first axis.
    model_ : FittedModel
        All that prediction reads.
    record_ : TrainingRecord
        All that `label_issues` reads.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    Notes
    -----
    ``score`` on untrusted labels is misleading: a model that repeats the poison scores best on it.

    A fit that fails or is interrupted leaves the estimator as it was: unfitted, or with its former model. One object
    may be fitted from several threads (not with callbacks, which follow one fit); the last fit to end stays.

    The game as the paper has it, to the letter, is :class:`PaperFloralClassifier`.

    The attacker compares duals with 16 bits and orders equal ones by a permutation drawn once per fit, so that numpy,
    torch, float32 and a cluster choose the same points.

    There is no ``predict_proba``; wrap the classifier in :class:`sklearn.calibration.CalibratedClassifierCV`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import FloralClassifier
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> untrusted = y.copy()
    >>> untrusted[:30] = 1 - untrusted[:30]
    >>> clf = FloralClassifier(gamma=1.0, budget=0.1, random_state=0).fit(X, untrusted)
    >>> bool(clf.score(X, y) > 0.9)
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn's own convention)
        **SHARED_CONSTRAINTS,
        "budget": [Real],
        "multi_class": [StrOptions(set(MULTI_CLASS))],
    }

    def __init__(
        self,
        *,
        kernel: str | Callable[..., Any] = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        C: float = 1.0,
        class_weight: dict[Any, float] | str | None = None,
        budget: float = 0.05,
        flips: float | None = None,
        n_rounds: int = 500,
        tol: float | None = 3e-4,
        learning_rate: str | float = "auto",
        multi_class: str = "pairs",
        engine: Engine | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.class_weight = class_weight
        self.budget = budget
        self.flips = flips
        self.n_rounds = n_rounds
        self.tol = tol
        self.learning_rate = learning_rate
        self.multi_class = multi_class
        self.engine = engine
        self.random_state = random_state
        self.verbose = verbose

    def _settings(self) -> Settings:
        return Settings(**self._shared_settings(), multi_class=self.multi_class)
