"""Curie: filter rows by clusters of features and labels, then train an SVM (Laishram and Phoha, 2016)."""

from typing import Any, ClassVar

from floral_learn.defenses.sanitized import SanitizedSVC
from floral_learn.defenses.sanitizers import CurieFilter
from floral_learn.defenses.svm import FEATURE_SVM_CONSTRAINTS


class CurieSVC(SanitizedSVC):
    """SVM on the rows that :class:`CurieFilter` keeps.

    It is ``SanitizedClassifier(CurieFilter(...), PlainSVC(...))`` with one flat list of parameters.

    Parameters
    ----------
    confidence, n_neighbors, compare, label_weight, eps, min_samples, n_components
        As in :class:`CurieFilter`. The paper sets ``confidence`` to one minus the share of poisoned labels.
    kernel, degree, gamma, coef0, C, class_weight
        As in :class:`PlainSVC`; the kernel needs features, so "precomputed" is not possible.
    solver, tol, cache_size, max_iter, n_rounds, learning_rate, decay, average
        How the SVM is trained, as in :class:`PlainSVC`.
    random_state : int, Generator-like or None
        Random comparisons of the filter and the ``pgd`` solver.

    Attributes
    ----------
    kept_ : bool ndarray of shape (n,)
        The training rows that were used.
    sanitizer_, estimator_ : CurieFilter, PlainSVC
        Fitted.

    Examples
    --------
    >>> from floral_learn import CurieSVC, load_moon, poison
    >>> moon = load_moon()
    >>> bad = poison(moon.X_train, moon.y_train, attack="random", budget=0.1, random_state=0)
    >>> clf = CurieSVC(confidence=0.9, gamma=1.0).fit(moon.X_train, bad.y)
    >>> bool((~clf.kept_[bad.indices]).mean() > 0.8)  # most of the flipped rows are left out
    True
    """

    _sanitizer_class = CurieFilter
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CurieFilter._parameter_constraints,
        **FEATURE_SVM_CONSTRAINTS,
    }

    def __init__(
        self,
        confidence=0.95,
        n_neighbors=20,
        compare="nearest",
        label_weight=1.0,
        eps="auto",
        min_samples=5,
        n_components="auto",
        *,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        C=10.0,
        class_weight=None,
        solver="libsvm",
        tol=1e-3,
        cache_size=200,
        max_iter=-1,
        n_rounds=500,
        learning_rate="auto",
        decay=None,
        average=True,
        random_state=None,
    ):
        self.confidence = confidence
        self.n_neighbors = n_neighbors
        self.compare = compare
        self.label_weight = label_weight
        self.eps = eps
        self.min_samples = min_samples
        self.n_components = n_components
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
