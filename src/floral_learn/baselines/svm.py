"""Plain support vector machine: min_w,b 1/2 |w|^2 + sum_i C_i hinge(y_i f(x_i)), no defense at all.

Two solvers train it. ``libsvm`` goes to the optimum and is what a user wants. ``pgd`` is the projected
gradient game of FLORAL with the attacker off, stopped after a fixed number of rounds: it is the plain
SVM of the paper's tables, whose step sizes leave it far from the optimum.
"""

import functools
import inspect
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import SVC
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from floral_learn.base.classifier_input import query_input, training_input
from floral_learn.base.whole_fit import whole_fit

_KERNELS = {"linear", "poly", "rbf", "sigmoid"}


class PlainSVC(ClassifierMixin, BaseEstimator):
    """Support vector machine without a defense, trained by libsvm or by projected gradient rounds.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        As in :class:`sklearn.svm.SVC`.
    degree, gamma, coef0 : int, float or str, float
        Kernel parameters, as in :class:`sklearn.svm.SVC`.
    C : float, default=10.0
        Cap on each dual weight (times the row's sample weight).
    class_weight : dict, "balanced" or None
        Multiplies the sample weights.
    solver : {"libsvm", "pgd"}, default="libsvm"
        ``"libsvm"`` solves to optimality (several classes: one-vs-one, as SVC does); ``"pgd"`` runs
        ``PaperFloralClassifier`` with the attacker off (several classes: one-vs-rest).
    tol, cache_size, max_iter : float, float, int
        libsvm only.
    n_rounds, learning_rate, decay, average : int, float or str, tuple or None, bool
        pgd only, see ``PaperFloralClassifier``.
    random_state : int, Generator-like or None
        pgd only.

    Attributes
    ----------
    classes_ : ndarray of shape (M,)
        The labels.
    n_iter_ : int or ndarray
        Solver iterations, as the solver counts them.
    estimator_ : estimator
        The fitted ``SVC`` or ``PaperFloralClassifier``.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import PlainSVC
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> bool(PlainSVC(gamma=1.0).fit(X, y).score(X, y) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [StrOptions({*_KERNELS, "precomputed"}), callable],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "solver": [StrOptions({"libsvm", "pgd"})],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "cache_size": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="neither")],
        "decay": [tuple, list, None],
        "average": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        C: float = 10.0,
        class_weight: Any = None,
        solver: str = "libsvm",
        tol: float = 0.001,
        cache_size: int = 200,
        max_iter: Any = -1,
        n_rounds: int = 500,
        learning_rate: Any = "auto",
        decay: Any = None,
        average: bool = True,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.C = C
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.n_rounds = n_rounds
        self.learning_rate = learning_rate
        self.decay = decay
        self.average = average
        self.random_state = random_state

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows X (n, d) and labels y (n,); ``sample_weight`` (n,) scales C row by row."""
        self._validate_params()
        X, codes, weight = training_input(self, X, y, sample_weight)
        self.estimator_ = build_svm(self).fit(X, self.classes_[codes], sample_weight=weight)
        self.n_iter_ = self.estimator_.n_iter_
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Class of each row of X (m, d)."""
        check_is_fitted(self)
        return self.estimator_.predict(query_input(self, X))

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distance (m,) for two classes, (m, M) one-vs-rest scores for more."""
        check_is_fitted(self)
        return self.estimator_.decision_function(query_input(self, X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


#: What a classifier must own to train its SVM through :func:`build_svm`, with the allowed values.
SVM_CONSTRAINTS: dict[str, Any] = PlainSVC._parameter_constraints
#: The same for classifiers that need the features themselves, so no precomputed Gram.
FEATURE_SVM_CONSTRAINTS: dict[str, Any] = {**SVM_CONSTRAINTS, "kernel": [StrOptions(_KERNELS), callable]}


def svm_parameters(own_init: Callable[..., None]) -> Callable[..., None]:
    """Give an ``__init__`` the parameters of :class:`PlainSVC` as keywords after its own.

    They are written down once, in PlainSVC. A parameter that the decorated ``__init__`` has itself keeps its own
    default. The signature is a real one, so that ``get_params``, ``clone`` and the documentation see it.
    """
    own = inspect.signature(own_init).parameters
    added = [p for name, p in inspect.signature(PlainSVC).parameters.items() if name not in own]
    signature = inspect.Signature([*own.values(), *added])

    @functools.wraps(own_init)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        for name in bound.arguments:
            if name != "self":
                setattr(self, name, bound.arguments[name])

    init.__signature__ = signature  # type: ignore[attr-defined]
    return init


def build_svm(owner: Any, **override: Any) -> Any:
    """The unfitted SVC or attacker-free PaperFloralClassifier that ``owner``'s parameters describe."""
    shared = {name: getattr(owner, name) for name in ("kernel", "degree", "gamma", "coef0", "C", "class_weight")}
    shared.update(override)
    if owner.solver == "libsvm":
        return SVC(**shared, tol=owner.tol, cache_size=owner.cache_size, max_iter=owner.max_iter)
    from floral_learn.floral.paper import PaperFloralClassifier  # only this solver pays for its import

    return PaperFloralClassifier(
        **shared,
        budget=0,  # plain projected gradient rounds, however many: the paper's SVM is early-stopped by them
        projection="exact",
        n_rounds=owner.n_rounds,
        learning_rate=owner.learning_rate,
        decay=owner.decay,
        average=owner.average,
        random_state=owner.random_state,
    )
