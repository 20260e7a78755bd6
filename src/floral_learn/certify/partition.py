"""Partition and vote: one classifier per disjoint part of the data, so that a flipped label spoils one vote.

Levine and Feizi, "Deep Partition Aggregation", 2021, in its form for label flips: rows are sorted by their
features alone and dealt to m parts, so no label can move a row to another part. With votes n_c and ties
to the lower class, floor((n_c - max_{c' != c} (n_c' + 1[c' < c])) / 2) flips cannot change the winner.
"""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.svm import SVC
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import _check_method_params, check_is_fitted, has_fit_parameter

from floral_learn.base.classifier_input import query_input, training_input
from floral_learn.base.whole_fit import whole_fit

from .certificate import Certificate, CertifiedPredictions


def deal_by_features(X: NDArray[np.float64], n_parts: int) -> list[NDArray[np.intp]]:
    """Row indices of each part: rows in lexicographic order of their features, dealt in turn."""
    order = np.lexsort(X.T[::-1])
    return [order[part::n_parts] for part in range(n_parts)]


def certified_votes(votes: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Winner (m,) and certified flips (m,) of vote counts (m, M)."""
    rows = np.arange(len(votes))
    winner = votes.argmax(axis=1)  # the first maximum: ties to the lower class
    rival = votes + (np.arange(votes.shape[1]) < winner[:, None])
    rival[rows, winner] = -1
    return winner, (votes[rows, winner] - rival.max(axis=1)) // 2


class PartitionAggregationClassifier(CertifiedPredictions, ClassifierMixin, BaseEstimator):
    """Majority vote of classifiers trained on disjoint parts of the data, with certified label flips.

    Parameters
    ----------
    estimator : classifier or None
        Cloned for every part; None is :class:`sklearn.svm.SVC`. Its fit must be deterministic; a free
        ``random_state`` is set to a fixed seed.
    n_partitions : int, default=10
        Parts and votes (at most n are used). More parts certify more flips, each part learns from fewer rows.
    n_jobs : int or None
        joblib workers.
    random_state : int, default=0
        Seed handed to base estimators that have a free one. It is a number, not None, because the certificate asks that
        the same rows and labels always give the same vote.

    Attributes
    ----------
    classes_ : ndarray of shape (M,)
        The labels.
    n_partitions_ : int
        Parts that were used.
    estimators_ : list
        Fitted base estimators; None where a part holds one class only.
    partition_ : ndarray of shape (n,)
        The part of each training row.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import PartitionAggregationClassifier
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> int(PartitionAggregationClassifier(n_partitions=20).fit(X, y).certified_flips(X).max())
    10
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_partitions": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": [Integral],
    }

    def __init__(
        self, estimator: Any = None, n_partitions: int = 10, *, n_jobs: int | None = None, random_state: Any = 0
    ) -> None:
        self.estimator = estimator
        self.n_partitions = n_partitions
        self.n_jobs = n_jobs
        self.random_state = random_state

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Train one base estimator per part on rows X (n, d) and labels y (n,).

        ``sample_weight`` (n,) is passed on; an error where the base estimator takes none. With scikit-learn's metadata
        routing switched on, other keywords go to base estimators that requested them, each part its own rows.
        """
        self._validate_params()
        if params and not _routing_enabled():
            raise TypeError(f"fit() got an unexpected keyword {next(iter(params))!r}.")
        routed = dict(process_routing(self, "fit", **params).estimator.fit) if params else {}
        X, codes, weight = training_input(self, X, y, sample_weight)
        base = self._base()
        if not is_classifier(base):
            raise ValueError(f"estimator={type(base).__name__} must be a classifier: its predictions are the votes.")
        if weight is not None and not has_fit_parameter(base, "sample_weight"):
            raise ValueError(f"sample_weight was given, but estimator={type(base).__name__} cannot train with weights.")
        self.n_partitions_ = min(self.n_partitions, len(X))
        parts = deal_by_features(X, self.n_partitions_)
        self.partition_ = np.empty(len(X), dtype=np.intp)
        for number, rows in enumerate(parts):
            self.partition_[rows] = number
        fits = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_part)(base, X, codes, weight, rows, routed, self.random_state) for rows in parts
        )
        self.estimators_ = [fitted for fitted, _ in fits]
        self._single_class = [code for _, code in fits]
        return self

    def _base(self) -> Any:
        return SVC() if self.estimator is None else self.estimator

    def get_metadata_routing(self) -> Any:
        """What this classifier consumes (``sample_weight``) and what it hands on to the base estimators' fit."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add_self_request(self).add(estimator=self._base(), method_mapping=mapping)

    def vote_counts(self, X: Any) -> Any:
        """Votes (m, M) of the parts for each class."""
        check_is_fitted(self)
        X = query_input(self, X)
        columns = np.arange(len(self.classes_))
        votes = np.zeros((len(X), len(self.classes_)), dtype=np.intp)
        for fitted, code in zip(self.estimators_, self._single_class, strict=True):
            ballots = np.full(len(X), code) if fitted is None else fitted.predict(X)
            votes += ballots[:, None] == columns
        return votes

    def predict(self, X: Any) -> np.ndarray:
        """Class with the most votes, ties to the lower class."""
        votes = self.vote_counts(X)
        return self.classes_[votes.argmax(axis=1)]

    def certified_flips(self, X: Any) -> np.ndarray:
        """How many flipped training labels each prediction survives, (m,), whatever a flip does to its part's vote."""
        return certified_votes(self.vote_counts(X))[1]

    def certificate(self, X: Any) -> Certificate:
        """Certified flips of each prediction; which labels would do it is not known of voters that are black boxes."""
        winner, flips = certified_votes(self.vote_counts(X))
        unknown: list[None] = [None] * len(flips)
        n = len(self.partition_)
        assumed = {"features": self.n_features_in_, "estimator": self._base(), "n_partitions": self.n_partitions_}
        return Certificate(self.classes_[winner], flips, unknown, unknown, False, n, n, assumed)

    def decision_function(self, X: Any) -> np.ndarray:
        """Share of the votes (m, M), or the lead of the second class (m,) where there are two."""
        share = self.vote_counts(X) / self.n_partitions_
        return share[:, 1] - share[:, 0] if len(self.classes_) == 2 else share


def _fit_part(
    base: Any,
    X: NDArray[np.float64],
    codes: NDArray[np.intp],
    weight: Any,
    rows: NDArray[np.intp],
    routed: dict[str, Any],
    seed: int,
) -> tuple[Any, int]:
    if weight is not None and (weight[rows] > 0).any():
        # A part may consist of weightless rows of one class; a row without weight is no evidence.
        rows = rows[weight[rows] > 0]
    if len(np.unique(codes[rows])) == 1:
        return None, int(codes[rows[0]])
    model = clone(base)
    free = [name for name, value in model.get_params().items() if _is_free_seed(name, value)]
    model.set_params(**dict.fromkeys(free, seed))
    arguments = _check_method_params(X, routed, indices=rows)
    if weight is not None:
        arguments["sample_weight"] = weight[rows]
    return model.fit(X[rows], codes[rows], **arguments), -1


def _is_free_seed(name: str, value: Any) -> bool:
    # Nested seeds too: the certificate asks that a part's vote depends on nothing but its rows.
    return (name == "random_state" or name.endswith("__random_state")) and not isinstance(value, Integral)
