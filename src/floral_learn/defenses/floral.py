"""FLORAL: a kernel SVM trained as a game against an attacker who flips labels."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from floral_learn.core.arrays import backend_for
from floral_learn.core.choose_gram import GRAMS, resolve_dtype
from floral_learn.core.game import solve
from floral_learn.core.kernels import KERNELS, Kernel
from floral_learn.core.projections import PROJECTIONS
from floral_learn.core.state import GameState
from floral_learn.core.suspicion import own_kernel, predicted, reason_texts, suspicion, without_own
from floral_learn.defenses.callbacks import CallbackSupportMixin, RoundLog, with_callbacks
from floral_learn.defenses.floral_fit import (
    RunningFit,
    fitted_attributes,
    generator,
    make_game,
    row_weights,
    take_rows,
    threads_for,
    used_rows,
)
from floral_learn.defenses.game_setup import check_trusted
from floral_learn.defenses.labels import encode_labels
from floral_learn.defenses.large_input import is_large, open_features, open_training
from floral_learn.defenses.tensor_input import (
    as_host,
    check_tensor,
    check_training_tensor,
    device_of,
    like,
    stays_on_device,
)

_TILE_NUMBERS = 2**24  # kernel values held at once while predicting


class FloralClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Kernel SVM for labels you do not trust: min over duals, against an attacker who flips influential labels.

    In each round an attacker flips the labels of k random points among the B largest dual variables, and the SVM
    answers with one projected gradient step on its dual (FLORAL, ICLR 2025, Algorithms 1 and 3). A drop-in for
    :class:`sklearn.svm.SVC`; several classes are trained one against all in a single game.

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
    C : "auto" or float, default="auto"
        Upper bound of the dual variables; row i has C times its sample weight. "auto" is 1, as in SVC, with
        ``budget="auto"`` (10 for several classes that need it), and else 10, as in the paper.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the sample weights, as in SVC.
    budget : "auto", float, int or dict, default="auto"
        B, the points among which the attacker chooses: a fraction of the rows (float) or a count (int); for three or
        more classes also a dict class -> either. Near twice the number of poisoned labels is best; far above it costs
        accuracy. Below 2 points the attacker is off. "auto" chooses from the untrusted labels alone how many, and
        which, may be flipped: those that held-out SVMs and nearest rows contradict (see ``selection_``).
    flips : float, int or None, default=None
        k, the points flipped in a round; None is B // 2, and B with ``budget="auto"``.
    n_rounds : int, default=500
        T, rounds of the game.
    learning_rate : "auto" or float, default="auto"
        Step size eta. "auto" is 1 / lambda_max of the centred Gram matrix, half the largest step that is stable
        whatever the attacker does. The paper uses absolute values of 1e-4 to 7e-4 for 500 rows.
    decay : (float, int) or None, default=None
        ``(factor, every)`` multiplies the step by `factor` after each `every` rounds.
    warm_up : int, default=1
        First rounds without an attack.
    average : bool, default=True
        Predict with the mean of the models of the last half of the rounds; False is the paper's last iterate, which has
        the last round's random flips in it.
    projection : {"exact", "fixed_point"}, default="exact"
        How the step is projected; "fixed_point" is the paper's Algorithm 2 (corrected and damped).
    gram : {"auto", "dense", "chunked", "low_rank"}, default="auto"
        How products with the kernel matrix are computed; what was chosen stands in ``gram_``.
    rank : "auto" or int, default="auto"
        Rank of the low-rank kernel; "auto" stops where more rank no longer changes predictions on a probe set, and
        ``gram_`` says so.
    max_memory : str or float, default="4GB"
        Cap for the kernel matrix or its factor.
    device : str or None, default=None
        None computes with numpy; "cpu", "cuda" and so on with torch.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Type of the kernel matrix; "auto" is float64 up to 3,000 rows and float32 above. Duals are always float64.
    flip_distribution : array-like of shape (n_classes, n_classes) or None, default=None
        Row c holds the probabilities of the classes that a flipped label of class c becomes; by default uniform over
        the others.
    random_state : int, RandomState, Generator or None, default=None
        Draws the flips, the order among ties and the landmarks of the low-rank kernel.
    verbose : int, default=0
        1 writes about ten lines a fit to stderr, with the time left.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (1, n_SV) or (n_classes, n_SV)
        Dual times label sign (of the flipped labels), averaged where `average`.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    support_ : ndarray of shape (n_SV,)
        Rows with a non-zero weight.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
        Empty where X was a file or lay on workers: the model then has landmarks of its own.
    n_support_ : ndarray of shape (n_classes,)
    n_iter_ : int
        Rounds played.
    budget_ : int or dict
        B in points; 0 when the attacker was off.
    flips_ : int
        k in points.
    selection_ : BudgetSelection or None
        What ``budget="auto"`` chose, and why; None for a given budget. `BudgetPathDisplay` draws it.
    C_ : float
        C as a number.
    gamma_ : float
    learning_rate_ : float
        The first step size.
    gram_ : str
        The Gram operator that was used, with the bytes it took.
    flip_rate_ : ndarray of shape (n_samples,)
        Share of the attacked rounds in which the attacker flipped a row's label.
    history_ : dict of ndarray
        ``objective``, ``residual`` (KKT), ``bias``, ``mu``, ``step``, ``flips`` and ``projection_iterations``, each
        with the round as its first axis.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    Notes
    -----
    ``score`` on untrusted labels is misleading: a model that repeats the poison scores best on it.

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
        "kernel": [StrOptions(set(KERNELS)), callable],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="neither")],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "C": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="neither")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "budget": [StrOptions({"auto"}), Real, dict],
        "flips": [Real, None],
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="neither")],
        "decay": [tuple, list, None],
        "warm_up": [Interval(Integral, 0, None, closed="left")],
        "average": ["boolean"],
        "projection": [StrOptions(set(PROJECTIONS))],
        "gram": [StrOptions(set(GRAMS))],
        "rank": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_memory": [str, Interval(Real, 0.0, None, closed="neither")],
        "device": [str, None],
        "dtype": [StrOptions({"auto", "float32", "float64"})],
        "flip_distribution": ["array-like", None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=0.0,
        C="auto",
        class_weight=None,
        budget="auto",
        flips=None,
        n_rounds=500,
        learning_rate="auto",
        decay=None,
        warm_up=1,
        average=True,
        projection="exact",
        gram="auto",
        rank="auto",
        max_memory="4GB",
        device=None,
        dtype="auto",
        flip_distribution=None,
        random_state=None,
        verbose=0,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.class_weight = class_weight
        self.budget = budget
        self.flips = flips
        self.n_rounds = n_rounds
        self.learning_rate = learning_rate
        self.decay = decay
        self.warm_up = warm_up
        self.average = average
        self.projection = projection
        self.gram = gram
        self.rank = rank
        self.max_memory = max_memory
        self.device = device
        self.dtype = dtype
        self.flip_distribution = flip_distribution
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self):
        """Sparse rows are welcome; a precomputed kernel is pairwise."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed" and not callable(self.kernel)
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None, trusted=None):
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
        return self._fit(X, y, sample_weight, trusted)

    def _fit(self, X, y, sample_weight=None, trusted=None, seeds=None, state=None):
        if hasattr(X, "__dask_graph__"):
            from floral_learn.defenses.dask_fit import fit_on_workers

            return fit_on_workers(self, X, y, sample_weight, trusted)
        y, sample_weight, trusted = as_host(y), as_host(sample_weight), as_host(trusted)
        if is_large(X):
            X, y = open_training(self, X, y)
        elif stays_on_device(self, X):
            X, y = check_training_tensor(self, X, y)
        else:
            X = as_host(X)
            X, y = validate_data(
                self,
                X,
                y,
                accept_sparse="csr" if self.kernel != "precomputed" and not callable(self.kernel) else False,
                dtype=[np.float64, np.float32],
                ensure_min_samples=2,
            )
        self.classes_, labels = encode_labels(y, type(self).__name__)
        n = X.shape[0]
        weight = row_weights(self, X, y, labels, sample_weight)
        eligible = check_trusted(trusted, n)
        if seeds is None:
            seeds = generator(self.random_state).integers(2**62, size=2)
        running = RunningFit(X, y, sample_weight, trusted, seeds, self.n_rounds, backend_for(device_of(self, X)))
        rows = used_rows(weight, labels, len(self.classes_))
        with running.backend.here():
            game = make_game(self, X, labels, weight, eligible, rows, running)
        self._running_fit = running
        try:
            callback = self._callback(game, running, rows, X, labels)
            with threads_for(n):
                result = solve(game, state, callback)
        finally:
            del self._running_fit
        for name, value in fitted_attributes(self, game, result.state, rows, X, labels).items():
            setattr(self, name, value)
        if len(left_out := np.setdiff1d(np.arange(n), np.arange(n)[rows])):
            self._train_scores[left_out] = self._scores(take_rows(X, left_out))
        return self

    _resume = with_callbacks(_fit)

    def _kernel(self) -> Kernel:
        return Kernel(self.kernel, self.gamma_, self.degree, self.coef0, self._shift)

    def _callback(self, game, running, rows, X, labels):
        """What happens after each round: callbacks, if any are set, and lines on stderr if verbose."""
        log = RoundLog() if self.verbose else None
        root = None
        if getattr(self, "_skl_callbacks", None):
            root = self._init_callback_context(max_subtasks=self.n_rounds)
            root.call_on_fit_task_begin(estimator=self, X=running.X, y=running.y)
        if log is None and root is None:
            return None

        def after_round(state: GameState) -> bool:
            running.state = state
            if log is not None:
                log(state.round, self.n_rounds, state.history)
            if root is None:
                return False
            task = root.subcontext(task_name=f"round {state.round}")
            task.call_on_fit_task_begin(estimator=self, X=running.X, y=running.y)
            stop = task.call_on_fit_task_end(
                estimator=self,
                X=running.X,
                y=running.y,
                reconstruction_attributes=lambda: fitted_attributes(self, game, state, rows, X, labels),
            )
            if stop or state.round >= self.n_rounds:
                root.call_on_fit_task_end(estimator=self, X=running.X, y=running.y)
            return stop

        return after_round

    def decision_function(self, X):
        """Signed distance-like score: positive is ``classes_[1]`` for two classes, largest wins for more.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        if hasattr(X, "__dask_graph__"):
            from floral_learn.defenses.dask_predict import decision_function

            return decision_function(self, X)
        if is_large(X):
            scores = np.concatenate([self._evaluate(block) for _, block in open_features(self, X).blocks()])
            if not np.isfinite(scores).all():
                raise ValueError("Input X contains NaN or infinity")
            return scores[:, 0] if len(self.classes_) == 2 else scores
        sparse_ok = "csr" if self.kernel != "precomputed" and not callable(self.kernel) else False
        if stays_on_device(self, X):
            rows = check_tensor(self, X)
        else:
            rows = as_host(X)
            rows = validate_data(self, rows, accept_sparse=sparse_ok, dtype=[np.float64, np.float32], reset=False)
        scores = like(self._scores(rows), X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _scores(self, X):
        if self.kernel == "precomputed":
            return X[:, self._basis] @ self._coef + self.intercept_
        return self._evaluate(X)

    def _evaluate(self, X):
        kernel, backend = self._kernel(), backend_for(device_of(self, X))
        dtype = resolve_dtype(self.dtype, len(self.flip_rate_))
        rows = kernel.prepare(X, backend, dtype)
        basis = kernel.prepare(self._basis, backend, dtype)
        coef = backend.array(self._coef)
        tile = max(1, _TILE_NUMBERS // max(1, basis.shape[0]))
        out = np.empty((X.shape[0], self._coef.shape[1]))
        for start in range(0, X.shape[0], tile):
            values = kernel(rows[start : start + tile], basis, backend)
            # The coefficients stay float64 where there are few columns: landmarks can have large ones of both signs.
            out[start : start + tile] = backend.numpy(backend.cast(values, backend.float64) @ coef)
        return out + self.intercept_

    def predict(self, X):
        """The class of each row.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if hasattr(X, "__dask_graph__"):
            from floral_learn.defenses.dask_predict import predict

            return predict(self, X)
        scores = as_host(self.decision_function(X))
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return like(self.classes_[chosen], X)

    def score(self, X, y, sample_weight=None):
        """Share of the rows that are predicted right; of untrusted labels it is misleading.

        Returns
        -------
        float
        """
        from sklearn.metrics import accuracy_score

        return accuracy_score(as_host(y), as_host(self.predict(X)), sample_weight=as_host(sample_weight))

    def label_issues(self):
        """Rank the training labels by how likely they are to be wrong.

        Each label is judged by the model without that row's own term, and by how often the attacker chose it; see
        :mod:`floral_learn.core.suspicion`. For a calibration on the data at hand, neighbours, groups of annotators and
        a page, use ``floral_learn.audit.audit``.

        Returns
        -------
        pandas.DataFrame
            ``row``, ``given``, ``suggested`` (the given label where the model agrees with it), ``suspicion`` (an
            estimate of the probability that the label is wrong) and ``reasons``, most suspicious first; every training
            row is listed.
        """
        check_is_fitted(self)
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("label_issues() needs pandas: pip install 'floral-learn[pandas]'") from error
        weights = np.zeros_like(self._train_scores)
        weights[self.support_] = self.dual_coef_.T
        diagonal = own_kernel(self._kernel(), self.support_, self.support_vectors_, len(weights))
        scores, labels = without_own(self._train_scores, weights, diagonal), self._train_labels
        score, holds = suspicion(scores, labels, self.flip_rate_, self._train_load)
        order = np.argsort(-score, kind="stable")
        return pd.DataFrame(
            {
                "row": order,
                "given": self.classes_[labels[order]],
                "suggested": self.classes_[predicted(scores)[order]],
                "suspicion": score[order],
                "reasons": reason_texts(holds[order]),
            }
        )
