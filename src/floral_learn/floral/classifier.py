"""FLORAL: a kernel SVM trained as a game against an attacker who flips labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _get_feature_names, check_is_fitted, check_X_y, validate_data

from floral_learn.base.alignment import align, refuse_repeated_columns
from floral_learn.base.estimator import Estimator
from floral_learn.base.extras import install_line
from floral_learn.base.validation import encode_labels, generator, refuse_several_labels
from floral_learn.floral.fitting import (
    Settings,
    TrainingInput,
    fitted_attributes,
    make_problem,
    play_problem,
    unsettled,
)
from floral_learn.floral.inputs import check_tensor, in_other_words, tensor_of
from floral_learn.game.arrays import ONE_THREAD, SMALL_PRODUCT, as_host, backend_for, is_dask, is_tensor
from floral_learn.game.kernels import KERNELS
from floral_learn.game.model import FittedModel, TrainingRecord, margins, predicted, reason_texts

if TYPE_CHECKING:
    import pandas as pd

MULTI_CLASS = ("pairs", "one-vs-rest")
# Allowed values of what every classifier that plays the game has.
SHARED_CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [StrOptions(set(KERNELS)), callable],
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="neither")],
    "C": [Interval(Real, 0.0, None, closed="neither")],
    "flips": [Real, None],
    "n_rounds": [Interval(Integral, 1, None, closed="left")],
    "learning_rate": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="neither")],
    "gram": [StrOptions({"auto", "dense", "low_rank"}), Interval(Integral, 1, None, closed="left")],
    "device": [str, None],
    "random_state": ["random_state", np.random.Generator],
}


class GameClassifier(ClassifierMixin, Estimator):
    """What classifiers that play the game share: everything but their parameters."""

    kernel: str | Callable[..., Any]
    device: str | None
    # Of a fit that has ended.
    classes_: np.ndarray
    n_features_in_: int
    model_: FittedModel
    record_: TrainingRecord

    def _settings(self) -> Settings:
        """All parameters, for a fit."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        """Sparse rows are welcome but for kernels that need a matrix; a precomputed kernel is pairwise."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._needs_matrix
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, trusted: Any = None) -> Self:
        """Play the game on rows `X` with untrusted labels `y`.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            Also a torch tensor, which stays on its device: the game is played there, and scores of tensors are
            tensors; or a dask array or dataframe, whose rows stay where they are.
        y : array-like of shape (n_samples,)
            Any labels: numbers, strings, booleans.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 2 counts as two equal rows; weight 0 leaves a row out.
        trusted : bool array of shape (n_samples,), optional
            Labels known to be right: the attacker never flips them.

        Returns
        -------
        self
        """
        self._validate_params()
        settings = self._settings()
        if not is_dask(X):  # whose index lies with its blocks
            y, trusted = align(X, y), align(X, trusted, ("X", "trusted"))
            sample_weight = align(X, sample_weight, ("X", "sample_weight"))
        data = self._read(settings, X, y)
        seeds = generator(settings.random_state).integers(2**62, size=2)
        n = len(data.labels)
        with data.backend.here(), ONE_THREAD if n * min(n, 1024) <= SMALL_PRODUCT else nullcontext():
            problem = make_problem(settings, data, as_host(sample_weight), as_host(trusted), seeds)
            for words in problem.warnings:
                warnings.warn(words, UserWarning, stacklevel=2)
            result = play_problem(problem)
            fitted = fitted_attributes(problem, result)
        for words in unsettled(problem, result):
            warnings.warn(words, ConvergenceWarning, stacklevel=2)
        # Nothing was set on the way: a fit that fails leaves the estimator as it was.
        own = dict(vars(self))
        for name in vars(self):
            if name.endswith("_") and not name.startswith("_"):
                del own[name]
        self.__dict__ = own | fitted
        return self

    def _read(self, settings: Settings, X: Any, y: Any) -> TrainingInput:
        """Checked rows and labels; nothing is set on the estimator."""
        names, device = None, self.device
        if is_dask(X):
            from floral_learn.floral.dask_gram import read_collections

            X, y, names = read_collections(settings, X, y)
        elif is_tensor(X) and self._stays_on_device(X):
            y = np.asarray(as_host(y))
            X = check_tensor(X, y)
            device = str(X.device) if device is None else device
        else:
            y = as_host(y)
            refuse_several_labels(y)
            names = _get_feature_names(X)
            try:
                X, y = check_X_y(as_host(X), y, estimator=self, ensure_min_samples=2, **self._array_kind)
            except (TypeError, ValueError) as error:
                raise in_other_words(error, X, settings.name) from error
        classes, labels = encode_labels(y, settings.name)
        return TrainingInput(X, labels, classes, names, backend_for(device))

    @property
    def _needs_matrix(self) -> bool:
        """Whether the kernel needs all rows (or a matrix of kernel values) as a numpy array."""
        return self.kernel == "precomputed" or callable(self.kernel)

    @property
    def _array_kind(self) -> dict[str, Any]:
        """What `check_X_y` and `validate_data` let through."""
        return {"accept_sparse": False if self._needs_matrix else "csr", "dtype": [np.float64, np.float32]}

    def _stays_on_device(self, X: Any) -> bool:
        """Whether the tensor `X` need not pass through numpy."""
        return not self._needs_matrix and (X.device.type != "cpu" or self.device is not None)

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distance-like score: positive is ``classes_[1]`` for two classes, largest wins for more.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        if is_dask(X):
            from floral_learn.floral.dask_gram import scores_on_workers

            return scores_on_workers(self, X)
        device = self.device
        if is_tensor(X) and self._stays_on_device(X):
            rows = check_tensor(X, n_features=self.n_features_in_)
            device = str(X.device) if device is None else device
        else:
            refuse_repeated_columns(X)
            try:
                rows = validate_data(self, as_host(X), reset=False, **self._array_kind)
            except (TypeError, ValueError) as error:
                raise in_other_words(error, X, type(self).__name__) from error
        scores = tensor_of(self.model_.scores(rows, backend_for(device)), X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if is_dask(X):
            from floral_learn.floral.dask_gram import classes_on_workers

            check_is_fitted(self)
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
            labels, in [0, 1]), ``flagged`` (none where the judges are no better than the class
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
            flagged = known & (margin < np.median(negative)) if len(negative) else np.zeros_like(known)
            score = 0.5 * (flagged + expit(-margin))
        else:
            evidence = judge_labels(as_host(X), self.classes_[labels], random_state=0)
            found, named = evidence.flags(), evidence.probability.argmax(axis=1)
            score, flagged = found.score, found.flagged
        reasons = reason_texts(scores, labels, record.flip_rate, record.load)
        order = np.argsort(-score, kind="stable")
        return pd.DataFrame(
            {
                "row": order,
                "given": self.classes_[labels[order]],
                "suggested": self.classes_[named[order]],
                "score": score[order],
                "flagged": flagged[order],
                "reasons": np.array(reasons, dtype=object)[order],
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
    gram : {"auto", "dense", "low_rank"} or int, default="auto"
        How products with the kernel matrix are computed; an int is the rank of a low-rank kernel. "low_rank" stops
        where products are exact to half a percent or where more rank no longer changes how rows are told apart on a
        probe set, "auto" also takes the whole matrix where that is small. What was chosen stands in ``gram_``. Labels
        have no say in it. Up to 1,000 rows it is float64, above float32.
    device : str or None, default=None
        None computes with numpy, and a tensor where it lies; "cpu", "cuda" and so on with torch.
    random_state : int, RandomState, Generator or None, default=None
        Draws the flips, the order among ties and the landmarks of the low-rank kernel.

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
        Copies. Empty where X was a dask collection: the model then has landmarks of its own.
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
    may be fitted from several threads; the last fit to end stays.

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
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "tol": [Interval(Real, 0.0, None, closed="neither"), None],
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
        gram: str | int = "auto",
        device: str | None = None,
        random_state: Any = None,
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
        self.gram = gram
        self.device = device
        self.random_state = random_state

    def _settings(self) -> Settings:
        return Settings(name=type(self).__name__, **self.get_params(deep=False))
