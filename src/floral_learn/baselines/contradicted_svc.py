"""An SVM behind :class:`ContradictedLabels`: told nothing, it is a plain SVC unless held-out labels say otherwise."""

from typing import Any, ClassVar

from floral_learn.baselines.svm import FEATURE_SVM_CONSTRAINTS, svm_parameters
from floral_learn.sanitizers import ContradictedLabels
from floral_learn.sanitizers.sanitized import SanitizedSVC


class ContradictedLabelsSVC(SanitizedSVC):
    """SVM without the labels that :class:`ContradictedLabels` finds contradicted, or a plain SVM where it finds none.

    It is ``SanitizedClassifier(ContradictedLabels(...), PlainSVC(...))`` with one flat list of parameters.

    Parameters
    ----------
    judge, n_folds, n_neighbors, n_jobs, verbose, random_state
        As in :class:`ContradictedLabels`.
    C : float, default=1.0
        Cap on each dual weight, SVC's own default: a smaller cap is itself the best protection.
    kernel, degree, gamma, coef0, class_weight
        As in :class:`PlainSVC`; "precomputed" is not possible, since the nearest rows are needed.
    solver, tol, cache_size, max_iter, n_rounds, learning_rate, decay, average
        How the SVM is trained, as in :class:`PlainSVC`.

    Attributes
    ----------
    sanitizer_, estimator_ : ContradictedLabels, PlainSVC
        Fitted; ``sanitizer_.summary_`` says what was done and why.
    kept_ : bool ndarray of shape (n,)
        The training rows that were used.

    Examples
    --------
    >>> from floral_learn import ContradictedLabelsSVC, load_moon, poison
    >>> moon = load_moon()
    >>> bad = poison(moon.X_train, moon.y_train, attack="class-biased", budget=0.3, random_state=0)
    >>> clf = ContradictedLabelsSVC().fit(moon.X_train, bad.y)
    >>> bool(clf.score(moon.X_test, moon.y_test) > 0.9)
    True
    """

    _sanitizer_class = ContradictedLabels
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ContradictedLabels._parameter_constraints,
        **FEATURE_SVM_CONSTRAINTS,
    }

    @svm_parameters
    def __init__(
        self,
        judge: Any = None,
        *,
        n_folds: int = 4,
        n_neighbors: int = 30,
        n_jobs: int | None = None,
        verbose: int = 0,
        C: float = 1.0,
        random_state: Any = 0,
    ) -> None:
        pass  # every parameter is assigned by the decorator
