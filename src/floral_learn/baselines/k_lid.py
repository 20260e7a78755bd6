"""K-LID: weigh rows by local intrinsic dimensionality, then train an SVM (Weerasinghe et al., 2021)."""

from typing import Any, ClassVar

from floral_learn.baselines.svm import FEATURE_SVM_CONSTRAINTS, svm_parameters
from floral_learn.sanitizers import KLIDWeights
from floral_learn.sanitizers.sanitized import SanitizedSVC


class KLIDWeightedSVC(SanitizedSVC):
    """SVM with C_i = C w_i, the weights w from :class:`KLIDWeights`.

    It is ``SanitizedClassifier(KLIDWeights(...), PlainSVC(...))`` with one flat list of parameters.

    Parameters
    ----------
    n_neighbors, lid_gamma, batch_size, planted, n_plantings
        As in :class:`KLIDWeights`.
    kernel, degree, gamma, coef0, C, class_weight
        As in :class:`PlainSVC`; the kernel needs features, so "precomputed" is not possible.
    solver, tol, cache_size, max_iter, n_rounds, learning_rate, decay, average
        How the SVM is trained, as in :class:`PlainSVC`.
    random_state : int, Generator-like or None
        Batches, planted flips and the ``pgd`` solver.

    Attributes
    ----------
    sample_weight_ : ndarray of shape (n,)
        The weight of each training row.
    sanitizer_, estimator_ : KLIDWeights, PlainSVC
        Fitted.

    Examples
    --------
    >>> from floral_learn import KLIDWeightedSVC, load_moon, poison
    >>> moon = load_moon()
    >>> bad = poison(moon.X_train, moon.y_train, attack="random", budget=0.1, random_state=0)
    >>> clf = KLIDWeightedSVC(gamma=1.0, random_state=0).fit(moon.X_train, bad.y)
    >>> bool(clf.sample_weight_[bad.mask].mean() < clf.sample_weight_[~bad.mask].mean())
    True
    """

    _sanitizer_class = KLIDWeights
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KLIDWeights._parameter_constraints,
        **FEATURE_SVM_CONSTRAINTS,
    }

    @svm_parameters
    def __init__(
        self,
        n_neighbors: int = 10,
        lid_gamma: str | float = "tuned",
        batch_size: Any = 100,
        planted: float = 0.1,
        n_plantings: int = 3,
    ) -> None:
        pass  # every parameter is assigned by the decorator
