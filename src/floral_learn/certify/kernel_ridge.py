"""Kernel ridge classification whose predictions come with the exact number of flipped labels that they survive."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from floral_learn.base.estimator import Estimator, query_input, training_input, whole_fit
from floral_learn.base.validation import check_trusted
from floral_learn.game.arrays import backend_for
from floral_learn.game.kernels import Kernel, resolve_gamma
from floral_learn.game.low_rank import LowRankGram

from .certificate import Certificate, CertifiedPredictions
from .cheapest_flips import Attacker, possible_changes, survived_flips, turning_flips
from .label_weights import DenseWeights, FactorWeights, Rows, feature_transform, landmark_transform

DENSE_ROWS = 10_000  # up to here rank="auto" keeps the whole kernel matrix: 800 MB
AUTO_RANK = 1_000
_BLOCK_ENTRIES = {"numpy": 2**22, "torch": 2**25}  # weights a(x) held at once, beside a few copies


class CertifiedKernelClassifier(CertifiedPredictions, ClassifierMixin, Estimator):
    """argmin_f sum_i w_i |t_i - f(x_i)|^2 + ridge |f|^2 on one-hot labels t_i, with exact certificates.

    Scores are linear in the labels, so the fewest flips that turn a prediction are found by sorting. The certificate
    holds if features, kernel, gamma, ridge and weights do not depend on the labels: ``gamma="scale"`` and a scaler are
    fine, a search for gamma or ridge on the same labels is not, and an encoder that saw them is not. The classifier
    cannot see what happened before it; `certificate` names what it took as fixed.

    Certificates against more than a handful of flips are larger on :class:`~floral_learn.certify.SpectralFeatures` with
    ``kernel="linear"``, at the cost of accuracy where the classes have no gap between them (docs/certificates.md).

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "linear"}, default="rbf"
        Kernel on the rows of X.
    gamma : "scale", "auto" or float, default="scale"
        Width of the kernel, as in :class:`sklearn.svm.SVC`; both rules look at X alone.
    ridge : "auto" or float, default="auto"
        Penalty. More of it spreads the say over more labels: larger certificates, smoother boundaries. "auto" is
        a fixed share of the sum of the weights (of n, without weights).
    fit_intercept : bool, default=True
        Whether the kernel gets a constant 1 added, which is an intercept that is penalised as all else.
    possible_flips : dict or None, default=None
        What an attacker can do: a label -> the labels that can be put in its place. Classes that are not named cannot
        be bought. None: every label can become any other.
    rank : "auto", int or None, default="auto"
        None: the whole kernel matrix. A number: as many features from randomly pivoted Cholesky, which no label
        touches; the certificate is exact for that model. "auto": None up to 10,000 rows, 1,000 above; a linear kernel
        with fewer columns than rows is solved in its columns, exactly.
    dtype : {"float64", "float32"}, default="float64"
        Type of the weights a(x), of which (rows asked) x (labels) are sorted. float32 is faster, above all on a GPU;
        its rounding is taken off the certificate, which is never larger than in float64.
    device : str or None, default=None
        None: numpy. Else a torch device, such as "cuda".
    random_state : int, default=0
        Draws the landmarks where there is a rank. A number, so that a refit on other labels has the same features.

    Attributes
    ----------
    classes_ : ndarray of shape (M,)
        The labels.
    dual_coef_ : ndarray of shape (n or rank, 1 or M)
        Coefficients of the rows (or features).
    gamma_, ridge_ : float
        Numbers that were used.
    rank_ : int or None
        Features, or None for the whole kernel matrix.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import CertifiedKernelClassifier
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> clf = CertifiedKernelClassifier().fit(X[:200], y[:200])
    >>> clf.certified_flips(X[200:]).shape
    (100,)
    >>> bool(clf.certified_accuracy(X[200:], y[200:], flips=5) > 0.7)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [StrOptions({"rbf", "laplacian", "linear"})],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="neither")],
        "ridge": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "possible_flips": [dict, None],
        "rank": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left"), None],
        "dtype": [StrOptions({"float64", "float32"})],
        "device": [str, None],
        "random_state": [Integral],
    }

    def __init__(
        self,
        *,
        kernel: str = "rbf",
        gamma: str | float = "scale",
        ridge: str | float = "auto",
        fit_intercept: bool = True,
        possible_flips: Mapping[Any, Any] | None = None,
        rank: str | int | None = "auto",
        dtype: str = "float64",
        device: str | None = None,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.ridge = ridge
        self.fit_intercept = fit_intercept
        self.possible_flips = possible_flips
        self.rank = rank
        self.dtype = dtype
        self.device = device
        self.random_state = random_state

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, trusted: Any = None) -> Self:
        """Train on rows X (n, d) and labels y (n,).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Rows.
        y : array-like of shape (n,)
            Labels, two classes or more.
        sample_weight : array-like of shape (n,), optional
            Weights of the squared errors. They must not depend on the labels (no class weights), or the certificate
            is void. A row of weight two counts double but flips as one; a row of weight zero is left out.
        trusted : bool array of shape (n,), optional
            Labels that nobody can flip, such as those that a person has answered for.

        Returns
        -------
        CertifiedKernelClassifier
            Itself.
        """
        self._validate_params()
        X, codes, weight = training_input(self, X, y, sample_weight, accept_sparse="csr")
        reachable = check_trusted(trusted, len(codes))
        reachable = np.ones(len(codes), dtype=bool) if reachable is None else reachable
        self._weights: Any = None
        self._rows_given = len(codes)
        self._kept = np.arange(len(codes))
        if weight is not None:
            self._kept = np.flatnonzero(weight > 0)
            X, codes, weight = X[self._kept], codes[self._kept], weight[self._kept]
            reachable = reachable[self._kept]
        self._weight = np.ones(len(codes)) if weight is None else weight
        # An attacker may leave classes out altogether, so the set of classes is that of the given labels and known.
        self._attacker = Attacker(codes, possible_changes(self.possible_flips, self.classes_), reachable)
        self.gamma_ = 1.0 if self.kernel == "linear" else resolve_gamma(self.gamma, X, weight)
        self.ridge_ = float(ridge_rule(self._weight.sum()) if self.ridge == "auto" else self.ridge)
        # Distances do not change by a shift, and rows near the origin keep their digits.
        shifted = self.kernel != "linear" and not issparse(X)
        self._centre = np.average(X, axis=0, weights=weight) if shifted else None
        self._X = X - self._centre if shifted else X
        self._choose_landmarks()
        self.dual_coef_ = self._label_weights().coefficients(self._targets())
        return self

    def _targets(self) -> np.ndarray:
        codes = self._attacker.codes
        if len(self.classes_) == 2:
            return 2.0 * codes[:, None] - 1.0
        return (codes[:, None] == np.arange(len(self.classes_))).astype(float)

    def _choose_landmarks(self) -> None:
        n, width = self._X.shape
        self._landmarks: Any = None
        self._corner: Any = None
        self.rank_: int | None = None
        if self.kernel == "linear" and self.rank == "auto" and width < n and not issparse(self._X):
            self.rank_ = width
        elif self.rank is not None and (self.rank != "auto" or n > DENSE_ROWS):
            found = LowRankGram(
                self._X,
                Kernel(self.kernel, self.gamma_),
                min(n, AUTO_RANK if self.rank == "auto" else int(self.rank)),
                0.0,
                np.random.default_rng(self.random_state),
                "float64",
                backend_for(self.device),
            )
            self._landmarks, self._corner, self.rank_ = self._X[found.landmarks], found.corner, found.rank

    def _rows(self) -> Rows:
        return Rows(
            self._X,
            self._weight,
            Kernel(self.kernel, self.gamma_),
            self.fit_intercept,
            self.ridge_,
            self.dtype,
            backend_for(self.device),
        )

    def _transform(self, rows: Rows) -> Any:
        return (
            feature_transform(rows) if self._corner is None else landmark_transform(rows, self._landmarks, self._corner)
        )

    def _label_weights(self) -> Any:
        """What a(x) is computed with; made again where it is missing, since no file stores it."""
        if getattr(self, "_weights", None) is None:
            rows = self._rows()
            if self.rank_ is None:
                self._weights = DenseWeights(rows)
            else:
                transform = self._transform(rows)
                self._weights = FactorWeights(rows, transform(self._X)[0], transform)
        return self._weights

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | ({"_weights": None} if hasattr(self, "_weights") else {})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _asked(self, X: Any) -> Any:
        check_is_fitted(self)
        X = query_input(self, X, accept_sparse="csr")
        return X if self._centre is None else X - self._centre

    def decision_function(self, X: Any) -> np.ndarray:
        """Score of the second class minus that of the first, (m,), or the scores (m, M) of several classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            Rows.

        Returns
        -------
        ndarray
            Regression of labels that are 1 and -1, or 1 and 0 for each class.
        """
        X = self._asked(X)
        rows = self._rows()
        backend, coefficients = rows.backend, rows.backend.array(self.dual_coef_)
        parts = []
        fitted = rows.prepared(self._X) if self.rank_ is None else self._transform(rows)
        for block in self._blocks(X.shape[0], len(self.dual_coef_)):
            with backend.here():
                if self.rank_ is None:
                    features = rows.values(rows.prepared(X[block]), fitted)
                else:
                    features, _ = fitted(X[block])
                parts.append(backend.numpy(features @ coefficients))
        scores = np.concatenate(parts)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Class of each row of X (m, d), (m,): that with the largest score."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def certified_flips(self, X: Any) -> np.ndarray:
        """How many flipped training labels each prediction survives: exactly, but for ties.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            Rows.

        Returns
        -------
        ndarray of int of shape (m,)
            r: whichever r labels are replaced, a refit predicts the same, and some r + 1 change that (or make it a
            tie, or bring it within rounding). -1: the prediction itself is a tie. n: no flips that are possible
            change it.
        """
        X = self._asked(X)
        weights = self._label_weights()
        found = [self._survived(*weights.block(X[block]))[1] for block in self._blocks(X.shape[0], self._X.shape[0])]
        return np.concatenate(found)

    def label_weights(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """The say a_i(x) of every training label in the scores of every row, and the slack of a lead.

        The score of class c is the sum of a_i(x) over the training rows with label c.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            Rows; (m, n) numbers must fit in memory.

        Returns
        -------
        weights : ndarray of shape (m, n)
            0 for training rows of weight 0.
        slack : ndarray of shape (m,)
            How far rounding can move the difference of two scores.
        """
        X = self._asked(X)
        backend = backend_for(self.device)
        weights = np.zeros((X.shape[0], self._rows_given))
        slack = np.zeros(X.shape[0])
        for block in self._blocks(X.shape[0], self._X.shape[0]):
            a, slack_of_block = self._label_weights().block(X[block])
            weights[block, self._kept], slack[block] = backend.numpy(a), backend.numpy(slack_of_block)
        return weights, slack

    def certificate(self, X: Any) -> Certificate:
        """Certified flips of each prediction, with the labels whose flips would turn it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            Rows; the answer holds one list of training rows for each.

        Returns
        -------
        Certificate
            Predictions, flips, the rows to flip and their new labels, and the settings that were taken as fixed.
        """
        return self._certificate(self._asked(X))

    def held_out_certificate(self, rows: Any = None) -> Certificate:
        """Certificates of training rows, each predicted from all other rows: what to expect of rows like these.

        Leaving row i out of a ridge regression gives f(x_i) = sum_{j != i} a_j(x_i) t_j / (1 - a_i(x_i)), with the same
        a(x_i) as before (Golub, Heath, Wahba 1979), so that no other fit is needed.

        Parameters
        ----------
        rows : array of row numbers, optional
            Training rows with a weight above 0; all of them by default.

        Returns
        -------
        Certificate
            As from `certificate`.
        """
        check_is_fitted(self)
        rows = self._kept if rows is None else np.asarray(rows)
        place = np.searchsorted(self._kept, rows)
        if not (np.isin(rows, self._kept)).all():
            lost = rows[~np.isin(rows, self._kept)][0]
            raise ValueError(f"rows names {lost}, which is not a training row with a weight above 0")
        return self._certificate(self._X[place], place)

    def _certificate(self, X: Any, own: np.ndarray | None = None) -> Certificate:
        """Certificates of prepared rows; with `own` places among the training rows, each without its own label."""
        weights, backend = self._label_weights(), backend_for(self.device)
        winners, flips, rows, labels = [], [], [], []
        for block in self._blocks(X.shape[0], self._X.shape[0]):
            a, slack = weights.block(X[block])
            if own is not None:
                a[backend.arange(a.shape[0]), backend.array(own[block])] = 0.0
            winner, survives, rival = self._survived(a, slack)
            winners.append(winner)
            flips.append(survives)
            a, slack = backend.numpy(a), backend.numpy(slack)
            for j in range(len(winner)):
                turn = turning_flips(a[j], float(slack[j]), int(winner[j]), int(rival[j]), self._attacker)
                rows.append(None if turn is None else self._kept[turn[0]])
                labels.append(None if turn is None else self.classes_[turn[1]])
        return Certificate(
            prediction=self.classes_[np.concatenate(winners)],
            flips=np.concatenate(flips),
            rows=rows,
            labels=labels,
            exact=True,
            n_labels=self._rows_given,
            n_reachable=int(self._attacker.reachable.sum()),
            assumed=self._assumed(),
        )

    def _assumed(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"features": self.n_features_in_, "kernel": self.kernel}
        if self.kernel != "linear":
            settings["gamma"] = self.gamma_
        settings |= {"ridge": self.ridge_, "fit_intercept": self.fit_intercept}
        if self._corner is not None:
            settings["rank"] = self.rank_
        if (self._weight != 1.0).any():
            settings["sample_weight"] = "as given"
        return settings

    def _survived(self, a: Any, slack: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        backend = backend_for(self.device)
        with backend.here():
            return survived_flips(a, slack, self._attacker, backend)

    def _blocks(self, asked: int, columns: int) -> Any:
        entries = _BLOCK_ENTRIES[backend_for(self.device).name]
        return gen_batches(asked, max(1, entries // max(1, columns)))


def ridge_rule(weight: float) -> float:
    """The ridge that "auto" stands for, from the sum of the weights alone."""
    return 0.02 * weight
