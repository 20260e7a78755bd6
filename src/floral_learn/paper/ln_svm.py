"""LN-SVM: an SVM trained on the Gram matrix that random label flips leave in expectation.

Biggio, Nelson and Laskov, "Support Vector Machines Under Adversarial Label Noise", 2011. If every label
is flipped independently with probability mu, then E[Q_ij] = y_i y_j K_ij (1 - 4 mu (1 - mu)) for i != j and
E[Q_ii] = K_ii. Training uses that matrix; prediction uses the plain kernel.
"""

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from floral_learn.base.estimator import Estimator, query_input, training_input, whole_fit
from floral_learn.game.gram import format_bytes, machine_bytes
from floral_learn.game.kernels import resolve_gamma


def correct_gram(gram: np.ndarray, noise: float) -> np.ndarray:
    """Expected label-flipped Gram (n, n): off the diagonal times 1 - 4 noise (1 - noise)."""
    expected = gram * (1.0 - 4.0 * noise * (1.0 - noise))
    np.fill_diagonal(expected, np.diagonal(gram))
    return expected


class LabelNoiseSVC(ClassifierMixin, Estimator):
    """SVM that assumes each label was flipped independently with probability ``noise``.

    Parameters
    ----------
    noise : float in [0, 0.5), default=0.05
        mu of the paper: the expected share of flipped labels.
    kernel, degree, gamma, coef0, C, tol, cache_size
        As in :class:`sklearn.svm.SVC`. Several classes are trained one-vs-rest on the same corrected Gram, which must
        fit in memory.

    Attributes
    ----------
    classes_ : ndarray of shape (M,)
        The labels.
    support_ : ndarray of shape (n_sv,)
        Training rows with a dual weight in any of the problems.
    support_vectors_ : ndarray of shape (n_sv, d)
        Absent for a precomputed kernel.
    dual_coef_ : ndarray of shape (1, n_sv) or (M, n_sv)
        Signed dual weights; one row for two classes.
    intercept_ : ndarray of shape (1,) or (M,)
        One a problem.
    n_iter_ : int
        Solver iterations, the most that any of the problems took.

    Examples
    --------
    >>> from floral_learn import load_moon, poison
    >>> from floral_learn.paper import LabelNoiseSVC
    >>> moon = load_moon()
    >>> bad = poison(moon.X_train, moon.y_train, attack="random", budget=0.1, random_state=0).y
    >>> clf = LabelNoiseSVC(noise=0.1, gamma=1.0).fit(moon.X_train, bad)
    >>> bool(clf.score(moon.X_test, moon.y_test) > 0.93)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "noise": [Interval(Real, 0.0, 0.5, closed="left")],
        "kernel": [StrOptions({"linear", "poly", "rbf", "sigmoid", "precomputed"}), callable],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "cache_size": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        noise: float = 0.05,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        C: float = 1.0,
        tol: float = 0.001,
        cache_size: float = 200,
    ) -> None:
        self.noise = noise
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.C = C
        self.tol = tol
        self.cache_size = cache_size

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows X (n, d), or a Gram matrix (n, n), and labels y (n,)."""
        self._validate_params()
        X, codes, weight = training_input(self, X, y, sample_weight)
        if (needed := 16 * len(X) ** 2) > machine_bytes():  # the Gram matrix and the corrected one
            raise MemoryError(f"two Gram matrices of {len(X):,} rows take {format_bytes(needed)}: use fewer rows")
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(f"kernel='precomputed' needs a square Gram matrix, got shape {X.shape}.")
        self.gamma_ = resolve_gamma(self.gamma, X) if self.kernel != "precomputed" else None
        gram = correct_gram(self._kernel(X, X), self.noise)
        n_classes = len(self.classes_)
        sides = range(1, 2) if n_classes == 2 else range(n_classes)
        dual = np.zeros((len(sides), len(X)))
        self.intercept_ = np.empty(len(sides))
        self.n_iter_ = 0
        for row, code in enumerate(sides):
            side = codes == code
            svm = SVC(kernel="precomputed", C=self.C, tol=self.tol, cache_size=self.cache_size)
            # an ordinary SVM on the expected matrix Q; predictions take the plain kernel
            svm.fit(gram, np.where(side, 1, -1), sample_weight=weight)
            dual[row, svm.support_] = np.ravel(svm.dual_coef_)
            self.intercept_[row] = np.ravel(svm.intercept_)[0]
            self.n_iter_ = max(self.n_iter_, int(np.max(svm.n_iter_)))
        self.support_ = np.flatnonzero((dual != 0).any(axis=0))
        self.dual_coef_ = dual[:, self.support_]
        if self.kernel != "precomputed":
            self.support_vectors_ = X[self.support_]
        return self

    def _kernel(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        if self.kernel == "precomputed":
            return A
        if callable(self.kernel):
            return np.asarray(self.kernel(A, B), dtype=np.float64)
        numbers = {"gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}
        return pairwise_kernels(A, B, metric=self.kernel, filter_params=True, **numbers)

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed scores (m,) for two classes, (m, M) one-vs-rest scores for more."""
        check_is_fitted(self)
        X = query_input(self, X)
        gram = X[:, self.support_] if self.kernel == "precomputed" else self._kernel(X, self.support_vectors_)
        scores = gram @ self.dual_coef_.T + self.intercept_
        return scores.ravel() if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Class of each row of X (m, d)."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
