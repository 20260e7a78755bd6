"""Kernel ridge classification whose predictions come with the exact number of flipped labels that they survive."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.base import ClassifierMixin
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from floral_learn.base.alignment import align
from floral_learn.base.estimator import Estimator, query_input, training_input, whole_fit
from floral_learn.base.validation import check_trusted
from floral_learn.game.kernels import Kernel, resolve_gamma
from floral_learn.game.low_rank import LowRankGram

from .certificate import Certificate, CertifiedPredictions
from .cheapest_flips import Attacker, possible_changes, survived_flips, turning_flips
from .collective import CollectiveCertificate, most_changed
from .label_weights import DenseWeights, FactorWeights, TrainingRows, column_transform, landmark_transform

AUTO_RANK = 1_000  # features where the kernel matrix does not fit: for 60,000 rows 0.5 GB


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
        touches; the certificate is exact for that model. "auto": the whole matrix where it fits in `max_memory` (11,000
        rows in 1 GB), else 1,000; a linear kernel with fewer columns than rows is solved in its columns, exactly.
    max_memory : float, default=1e9
        Bytes that a fit may take. What needs more is refused before the work starts.
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
        "max_memory": [Interval(Real, 0.0, None, closed="neither")],
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
        max_memory: float = 1e9,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.ridge = ridge
        self.fit_intercept = fit_intercept
        self.possible_flips = possible_flips
        self.rank = rank
        self.max_memory = max_memory
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
        trusted = align(X, trusted, ("X", "trusted"))
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
        self.rank_ = self._choose_rank()
        self._landmarks: Any = None
        self._corner: Any = None
        if self.rank_ is not None and self._columns() is None:
            kernel, rng = Kernel(self.kernel, self.gamma_), np.random.default_rng(self.random_state)
            found = LowRankGram(self._X, kernel, self.rank_, 0.0, rng, "float64")
            self._landmarks, self._corner, self.rank_ = self._X[found.landmarks], found.corner, found.rank
        self.dual_coef_ = self._label_weights().coefficients(self._targets())
        return self

    def _columns(self) -> int | None:
        """Columns in which a linear kernel is solved as it is, or None."""
        n, width = self._X.shape
        narrow = self.kernel == "linear" and self.rank == "auto" and width < n
        return width if narrow and not issparse(self._X) else None

    def _choose_rank(self) -> int | None:
        """Features, None for the whole kernel matrix; refused where they would not fit in `max_memory`."""
        n, n_classes, limit = self._X.shape[0], len(self.classes_), self.max_memory
        rank = self._columns() or self.rank
        if rank == "auto":
            rank = None if 8 * n * n <= limit else AUTO_RANK
        rank = None if rank is None else min(n, int(rank))
        numbers = n * (n if rank is None else rank) + n * n_classes + n_classes**2
        if 8 * numbers > limit:
            what = "the whole kernel matrix" if rank is None else f"{rank:,} features"
            raise ValueError(
                f"{n:,} rows, {n_classes:,} classes and {what} take {8e-9 * numbers:.1f} GB, over max_memory="
                f"{self.max_memory:g}; lower rank, train on fewer rows, or raise max_memory"
            )
        return rank

    def _targets(self) -> np.ndarray:
        codes = self._attacker.codes
        if len(self.classes_) == 2:
            return 2.0 * codes[:, None] - 1.0
        return (codes[:, None] == np.arange(len(self.classes_))).astype(float)

    def _label_weights(self) -> Any:
        """What a(x) is computed with; made again where it is missing, since no file stores it."""
        if getattr(self, "_weights", None) is None:
            settings = self.kernel, self.gamma_, self.fit_intercept, self.ridge_
            rows = TrainingRows(self._X, self._weight, *settings)
            if self.rank_ is None:
                self._weights = DenseWeights(rows)
            elif self._corner is None:
                self._weights = FactorWeights(rows, column_transform)
            else:
                transform = landmark_transform(rows, self._landmarks, self._corner)
                self._weights = FactorWeights(rows, transform)
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
        X, weights = self._asked(X), self._label_weights()
        parts = [weights.features(X[block]) @ self.dual_coef_ for block in self._blocks(X)]
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
        X, weights = self._asked(X), self._label_weights()
        found = []
        for block in self._blocks(X):
            a, slack = weights.block(X[block])
            found.append(survived_flips(a, slack, self._attacker)[1])
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
        weights = np.zeros((X.shape[0], self._rows_given))
        slack = np.zeros(X.shape[0])
        for block in self._blocks(X):
            weights[block, self._kept], slack[block] = self._label_weights().block(X[block])
        return weights, slack

    def certificate(self, X: Any) -> Certificate:
        """Certified flips of each prediction, with the labels whose flips change it and the settings taken as fixed.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            Rows.

        Returns
        -------
        Certificate
            Predictions, flips that they survive, and for each the smallest set of labels that changes it.
        """
        return self._certificate(self._asked(X))

    def breaking_flips(self, X: Any) -> list[dict[int, Any]]:
        """The smallest set of flips that changes each prediction.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            Rows.

        Returns
        -------
        list of m dicts
            Training row -> new label: with these labels a refit predicts another class, and no fewer flips do that
            (ties aside). Empty where no possible flips change the prediction.
        """
        found = self.certificate(X)
        return [
            {} if rows is None or labels is None else dict(zip(rows.tolist(), labels.tolist(), strict=True))
            for rows, labels in zip(found.rows, found.labels, strict=True)
        ]

    def collective_certificate(
        self, X: Any, flips: int, y: Any = None, *, time_limit: float = 10.0
    ) -> CollectiveCertificate:
        """How many of these predictions can one set of `flips` flipped labels change altogether.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            Rows.
        flips : int
            Labels that are flipped at most: one attack for all rows.
        y : array-like of shape (m,), optional
            True labels; then only right predictions count.
        time_limit : float, default=10.0
            Seconds, about, for the mixed integer program of a small problem; 0 leaves it out. The bounds always hold.

        Returns
        -------
        CollectiveCertificate
            An upper bound, the number that a named attack does change, and this attack; exact where both are equal.
        """
        if not isinstance(flips, Integral) or flips < 0:
            raise ValueError(f"flips={flips!r} must be a whole number, 0 or more")
        truth = None if y is None else np.asarray(align(X, y))
        X, weights, n_counted = self._asked(X), self._label_weights(), 0
        if truth is not None and truth.shape != (X.shape[0],):
            raise ValueError(f"X has {X.shape[0]} rows, y has shape {truth.shape}; one label per row is needed")
        # a(x), gains, and a copy of them
        parts, most = [], int(self.max_memory) // (24 * len(self._kept))
        for block in self._blocks(X):
            a, slack = weights.block(X[block])
            winner, survived, _ = survived_flips(a, slack, self._attacker)
            counted = np.ones(len(a), bool) if truth is None else self.classes_[winner] == truth[block]
            weak = counted & (survived < flips)
            n_counted += int(counted.sum())
            parts.append((a[weak], slack[weak]))
            if sum(len(part) for part, _ in parts) > most:
                raise ValueError(
                    f"more than {most:,} predictions can be changed, which is what max_memory={self.max_memory:g} "
                    f"holds for {len(self._kept):,} labels; ask about fewer rows or flips, or raise max_memory"
                )
        weak_rows = [np.concatenate(part) for part in zip(*parts, strict=True)]
        counts = int(flips), n_counted, len(weak_rows[0])
        at_most, at_least, rows, codes = most_changed(*weak_rows, self._attacker, int(flips), time_limit)
        return CollectiveCertificate(*counts, at_most, at_least, self._kept[rows], self.classes_[codes])

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
        weights, winners, flips, rows, labels = self._label_weights(), [], [], [], []
        for block in self._blocks(X):
            a, slack = weights.block(X[block])
            if own is not None:
                a[np.arange(len(a)), own[block]] = 0.0
            winner, survives, rival = survived_flips(a, slack, self._attacker)
            winners.append(winner)
            flips.append(survives)
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

    def _blocks(self, X: Any) -> Any:
        """Slices of the rows asked, so that a few (rows, labels or classes) matrices fit in the working memory."""
        # eight such matrices of 8-byte numbers at a time
        numbers = int(2**14 * get_config()["working_memory"])
        return gen_batches(X.shape[0], max(1, numbers // max(len(self._kept), len(self.classes_))))


def ridge_rule(weight: float) -> float:
    """The ridge that "auto" stands for, from the sum of the weights alone."""
    return 0.02 * weight
