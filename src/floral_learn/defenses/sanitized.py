"""Sanitise, then train: any label sanitiser in front of any classifier."""

import inspect
from typing import Any, ClassVar

from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from floral_learn.defenses.labels import query_input, training_input
from floral_learn.defenses.svm import PlainSVC


def _inner_has(method: str) -> Any:
    def check(self: Any) -> bool:
        getattr(self._parts()[1] if not hasattr(self, "estimator_") else self.estimator_, method)
        return True

    return available_if(check)


class SanitizedClassifier(ClassifierMixin, BaseEstimator):
    """Train ``estimator`` on what ``sanitizer`` makes of the untrusted labels.

    Parameters
    ----------
    sanitizer : object
        Has ``fit_sanitize(X, y) -> SanitizeResult``.
    estimator : classifier
        It must accept ``sample_weight`` if the sanitiser (or the caller) gives weights.

    Attributes
    ----------
    classes_ : ndarray of shape (M,)
        The given labels.
    sanitizer_, estimator_ : object, classifier
        The fitted parts.
    kept_, relabeled_ : bool ndarray of shape (n,)
        Masks over the training rows.
    sample_weight_ : ndarray of shape (m,) or None
        Weights of the kept rows.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.linear_model import LogisticRegression
    >>> from floral_learn import KNNRelabel, SanitizedClassifier
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> clf = SanitizedClassifier(KNNRelabel(threshold=0.8), LogisticRegression()).fit(X, y)
    >>> clf.predict(X[:2]).shape
    (2,)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "sanitizer": [HasMethods("fit_sanitize")],
        "estimator": [HasMethods(["fit", "predict"])],
    }

    def __init__(self, sanitizer, estimator):
        self.sanitizer = sanitizer
        self.estimator = estimator

    def _parts(self) -> tuple[Any, Any]:
        return self.sanitizer, self.estimator

    def fit(self, X, y, sample_weight=None, **sanitize_params):
        """Sanitise rows X (n, d) and labels y (n,), then train.

        ``sample_weight`` (n,) goes to the classifier, times the sanitiser's own weights; the sanitiser
        itself counts every row once. Other keywords go to ``fit_sanitize`` (such as ``graph``).
        """
        self._validate_params()
        X, codes, weight = training_input(self, X, y, sample_weight)
        sanitizer, estimator = self._parts()
        self._check_keywords(sanitizer, sanitize_params)
        self.sanitizer_ = clone(sanitizer)
        result = self.sanitizer_.fit_sanitize(X, self.classes_[codes], **sanitize_params)
        self.kept_, self.relabeled_ = result.kept, result.relabeled
        self.sample_weight_ = result.sample_weight
        if weight is not None:
            given = weight[result.kept]
            self.sample_weight_ = given if result.sample_weight is None else given * result.sample_weight
        arguments = {}
        if self.sample_weight_ is not None:
            if not has_fit_parameter(estimator, "sample_weight"):
                source = "the sanitizer" if weight is None else "sample_weight"
                raise ValueError(
                    f"estimator={type(estimator).__name__} cannot train with the weights of {source}: its "
                    "fit takes no sample_weight."
                )
            arguments["sample_weight"] = self.sample_weight_
        self.estimator_ = clone(estimator).fit(result.X, result.y, **arguments)
        return self

    def _check_keywords(self, sanitizer: Any, given: dict[str, Any]) -> None:
        allowed = [name for name in inspect.signature(sanitizer.fit_sanitize).parameters if name not in ("X", "y")]
        unknown = [name for name in given if name not in allowed]
        if unknown:
            raise TypeError(
                f"fit() got an unexpected keyword {unknown[0]!r}; {type(sanitizer).__name__} takes "
                f"{', '.join(allowed) or 'no further keywords'}."
            )

    def predict(self, X):
        """Class of each row of X (m, d)."""
        check_is_fitted(self)
        return self.estimator_.predict(query_input(self, X))

    @_inner_has("decision_function")
    def decision_function(self, X):
        """Scores of the classifier behind the sanitiser."""
        check_is_fitted(self)
        return self.estimator_.decision_function(query_input(self, X))

    @_inner_has("predict_proba")
    def predict_proba(self, X):
        """Probabilities of the classifier behind the sanitiser, only where it has real ones."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(query_input(self, X))


class SanitizedSVC(SanitizedClassifier):
    """Base of the named presets: one sanitiser class in front of :class:`PlainSVC`."""

    _sanitizer_class: ClassVar[type[Any]]

    def _parts(self) -> tuple[Any, Any]:
        own = self.get_params(deep=False)
        return tuple(
            part(**{name: own[name] for name in part._get_param_names()}) for part in (self._sanitizer_class, PlainSVC)
        )  # type: ignore[return-value]

    @property
    def n_iter_(self) -> Any:
        """Solver iterations of the SVM behind the sanitiser."""
        return self.estimator_.n_iter_
