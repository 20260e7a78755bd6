"""LS-SVM: relabel by nearest neighbours, then train an SVM (Paudice, Munoz-Gonzalez and Lupu, 2018)."""

from typing import Any, ClassVar

from floral_learn.baselines.svm import FEATURE_SVM_CONSTRAINTS, svm_parameters
from floral_learn.sanitizers import KNNRelabel
from floral_learn.sanitizers.sanitized import SanitizedSVC


class LabelSanitizedSVC(SanitizedSVC):
    """SVM on labels that :class:`KNNRelabel` cleaned.

    It is ``SanitizedClassifier(KNNRelabel(...), PlainSVC(...))`` with one flat list of parameters.
    ``fit(X, y, graph=G)`` takes a precomputed sparse neighbour graph in place of the search.

    Parameters
    ----------
    n_neighbors, threshold
        As in :class:`KNNRelabel`. The paper sets ``threshold`` to one minus the share of poisoned labels.
    kernel, degree, gamma, coef0, C, class_weight
        As in :class:`PlainSVC`; the kernel needs features, so "precomputed" is not possible.
    solver, tol, cache_size, max_iter, n_rounds, learning_rate, decay, average, random_state
        How the SVM is trained, as in :class:`PlainSVC`.

    Attributes
    ----------
    relabeled_ : bool ndarray of shape (n,)
        The training rows whose label was replaced.
    sanitizer_, estimator_ : KNNRelabel, PlainSVC
        Fitted.

    Examples
    --------
    >>> from floral_learn import LabelSanitizedSVC, load_moon, poison
    >>> moon = load_moon()
    >>> bad = poison(moon.X_train, moon.y_train, attack="random", budget=0.1, random_state=0)
    >>> clf = LabelSanitizedSVC(threshold=0.7, gamma=1.0).fit(moon.X_train, bad.y)
    >>> bool(clf.relabeled_[bad.indices].mean() > 0.8)
    True
    """

    _sanitizer_class = KNNRelabel
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KNNRelabel._parameter_constraints,
        **FEATURE_SVM_CONSTRAINTS,
    }

    @svm_parameters
    def __init__(self, n_neighbors: int = 20, threshold: float = 0.95) -> None:
        pass  # every parameter is assigned by the decorator
