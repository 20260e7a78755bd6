"""Curie: filter rows by clusters of features and labels, then train an SVM (Laishram and Phoha, 2016)."""

from typing import Any, ClassVar

from floral_learn.baselines.svm import FEATURE_SVM_CONSTRAINTS, svm_parameters
from floral_learn.sanitizers import CurieFilter
from floral_learn.sanitizers.sanitized import SanitizedSVC


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

    @svm_parameters
    def __init__(
        self,
        confidence: float = 0.95,
        n_neighbors: int = 20,
        compare: str = "nearest",
        label_weight: float = 1.0,
        eps: str | float = "auto",
        min_samples: int = 5,
        n_components: Any = "auto",
    ) -> None:
        pass  # every parameter is assigned by the decorator
