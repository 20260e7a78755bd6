"""Sanitise, then train: any label sanitiser in front of any classifier."""

import inspect
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, clone, is_regressor
from sklearn.utils import get_tags
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_method_params,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
    validate_data,
)

from floral_learn.base.alignment import align
from floral_learn.base.estimator import Estimator, checked_weight, query_input, training_input, whole_fit
from floral_learn.base.frames import is_frame
from floral_learn.base.rows import explain_refusal
from floral_learn.base.validation import encode_labels, refuse_several_labels


def _inner_has(method: str) -> Any:
    def check(self: Any) -> bool:
        getattr(self.estimator_ if hasattr(self, "estimator_") else self.estimator, method)
        return True

    return available_if(check)


class SanitizedClassifier(ClassifierMixin, Estimator):
    """Train ``estimator`` on what ``sanitizer`` makes of the untrusted labels.

    Parameters
    ----------
    sanitizer : object
        Has ``fit_resample(X, y) -> X, y`` and sets ``sample_indices_``, or only weighs: ``fit(X, y)`` sets
        ``sample_weight_``.
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
    >>> from floral_learn import SanitizedClassifier
    >>> from floral_learn.paper import KNNRelabel
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> clf = SanitizedClassifier(KNNRelabel(threshold=0.8), LogisticRegression()).fit(X, y)
    >>> clf.predict(X[:2]).shape
    (2,)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "sanitizer": [HasMethods("fit_resample"), HasMethods("fit")],
        "estimator": [HasMethods(["fit", "predict"])],
    }

    def __init__(self, sanitizer: Any, estimator: Any) -> None:
        self.sanitizer = sanitizer
        self.estimator = estimator

    # Keywords of the sanitisers that a user may request under metadata routing.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"graph": None, "pred_probs": None}

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Sanitise rows X (n, d) and labels y (n,), then train.

        ``sample_weight`` (n,) goes to the classifier, times the sanitiser's own weights; the sanitiser counts every row
        once. Further keywords that the sanitiser knows (``graph``, ``pred_probs``) go there; with scikit-learn's
        metadata routing switched on, the rest goes to the classifier, if it requested it.
        """
        self._validate_params()
        y, sample_weight = align(X, y), align(X, sample_weight, ("X", "sample_weight"))
        sanitizer, estimator = self.sanitizer, self.estimator
        for name, part in (("sanitizer", sanitizer), ("estimator", estimator)):
            if isinstance(part, type):
                raise TypeError(f"{name}={part.__name__} is a class; give an instance, {part.__name__}().")
        if is_regressor(estimator):
            raise ValueError(f"estimator={type(estimator).__name__} is a regressor; a classifier is needed.")
        verb = sanitizer.fit_resample if hasattr(sanitizer, "fit_resample") else sanitizer.fit
        known = inspect.signature(verb).parameters
        for_sanitizer = {name: value for name, value in params.items() if name in known and value is not None}
        for_estimator = self._route(sanitizer, estimator, known, params)
        X, codes, weight = self._training_rows(X, y, sample_weight)
        if weight is not None:
            self._takes_weights(estimator, "sample_weight")
        self.sanitizer_ = clone(sanitizer)
        labels = self.classes_[codes]
        if hasattr(sanitizer, "fit_resample"):
            rows, labels = self.sanitizer_.fit_resample(X, labels, **for_sanitizer)
            kept, own = self.sanitizer_.sample_indices_, None
            self.relabeled_ = getattr(self.sanitizer_, "relabeled_", np.zeros(len(codes), dtype=bool))
        else:
            own = self.sanitizer_.fit(X, labels, **for_sanitizer).sample_weight_
            rows, kept = X, np.arange(len(codes))
            self.relabeled_ = np.zeros(len(codes), dtype=bool)
        self.kept_ = np.isin(np.arange(len(codes)), kept)
        self.sample_weight_ = own
        if weight is not None:
            self.sample_weight_ = weight[kept] if own is None else weight[kept] * own
        arguments = _check_method_params(X, for_estimator, indices=kept)
        if self.sample_weight_ is not None:
            self._takes_weights(estimator, "the sanitizer")
            arguments["sample_weight"] = self.sample_weight_
        try:
            self.estimator_ = clone(estimator).fit(rows, labels, **arguments)
        except (TypeError, ValueError) as error:
            raise explain_refusal(error, X, estimator) from error
        return self

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """Rows for sanitiser and classifier, a frame as it is; codes into `classes_`; weights or None."""
        if not is_frame(X):
            return training_input(self, X, y, sample_weight, **self._checks())
        refuse_several_labels(y)
        X, y = validate_data(self, X, y, skip_check_array=True)
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        self.classes_, codes = encode_labels(y, type(self).__name__)
        weight = None if sample_weight is None else checked_weight(sample_weight, X, codes, self.classes_)
        return X, codes, weight

    def _checks(self) -> dict[str, Any]:
        """What arrays may be, as both parts take them."""
        finite = "allow-nan" if get_tags(self).input_tags.allow_nan else True
        # a classifier refuses itself: 1.6 has no tag for it
        sparse = get_tags(self.sanitizer).input_tags.sparse
        return {"accept_sparse": "csr" if sparse else False, "ensure_all_finite": finite}

    @staticmethod
    def _takes_weights(estimator: Any, source: str) -> None:
        if not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(
                f"estimator={type(estimator).__name__} cannot train with the weights of {source}: its "
                "fit takes no sample_weight."
            )

    def _route(self, sanitizer: Any, estimator: Any, known: Any, params: dict[str, Any]) -> dict[str, Any]:
        """The keywords for the classifier's fit; without metadata routing there can be none."""
        rest = {name: value for name, value in params.items() if name not in known}
        if rest and _routing_enabled():
            return dict(process_routing(self, "fit", **rest).estimator.fit)
        if rest:
            allowed = [name for name in known if name not in ("X", "y", "params")]
            raise TypeError(
                f"fit() got an unexpected keyword {next(iter(rest))!r}; {type(sanitizer).__name__} takes "
                f"{', '.join(allowed) or 'no further keywords'}."
            )
        return {}

    def get_metadata_routing(self) -> Any:
        """What this classifier consumes (``sample_weight``, the sanitiser's keywords) and hands on."""
        estimator = self.estimator
        mapping = MethodMapping()
        for method in ("fit", "predict", "predict_proba", "decision_function"):
            mapping.add(caller=method, callee=method)
        return MetadataRouter(owner=self).add_self_request(self).add(estimator=estimator, method_mapping=mapping)

    def _ask(self, method: str, X: Any, params: dict[str, Any]) -> Any:
        check_is_fitted(self)
        routed = {}
        if params:
            if not _routing_enabled():
                raise TypeError(f"{method}() got an unexpected keyword {next(iter(params))!r}.")
            routed = dict(getattr(process_routing(self, method, **params).estimator, method))
        if is_frame(X):
            X = validate_data(self, X, reset=False, skip_check_array=True)
        else:
            X = query_input(self, X, **self._checks())
        return getattr(self.estimator_, method)(X, **routed)

    def predict(self, X: Any, **params: Any) -> np.ndarray:
        """Class of each row of X (m, d)."""
        return self._ask("predict", X, params)

    @_inner_has("decision_function")
    def decision_function(self, X: Any, **params: Any) -> np.ndarray:
        """Scores of the classifier behind the sanitiser."""
        return self._ask("decision_function", X, params)

    @_inner_has("predict_proba")
    def predict_proba(self, X: Any, **params: Any) -> np.ndarray:
        """Probabilities of the classifier behind the sanitiser, only where it has real ones."""
        return self._ask("predict_proba", X, params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        sanitizer, estimator = self.sanitizer, self.estimator
        # The sanitisers of other papers count on dense rows without holes.
        before, behind = (get_tags(part).input_tags for part in (sanitizer, estimator))
        tags.input_tags.sparse = before.sparse and behind.sparse
        tags.input_tags.allow_nan = before.allow_nan and behind.allow_nan
        return tags
