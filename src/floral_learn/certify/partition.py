"""Partition and vote: one classifier per disjoint part of the data, so that a flipped label spoils one vote.

Levine and Feizi, "Deep Partition Aggregation", 2021, in its form for label flips: rows are sorted by their
features alone and dealt to m parts, so no label can move a row to another part. A rival d overtakes the winner c
once the votes that change take off n_c - n_d - 1[d < c] + 1 of its lead: two for each voter that leaves c for d, one
for each that leaves another class for d. What a change costs is one flip for a voter that is a black box, and one
more than its certified flips for one that knows them; the cheapest set of votes is a knapsack with gains 1 and 2,
solved by two sorts. A voter's certificate is about the classes that its part holds: flips that bring another class
into the part, or take one away, are priced apart. Such white-box certificates of ensembles are those of EnsembleCert
(arXiv 2604.11416, 2026), which has a gain per class; here each voter has one price for any change, a lower bound with
several classes.
"""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import ClassifierMixin, clone, is_classifier
from sklearn.svm import SVC
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import _check_method_params, check_is_fitted, has_fit_parameter

from floral_learn.base.estimator import Estimator, query_input, training_input, whole_fit

from .certificate import Certificate, CertifiedPredictions
from .cheapest_flips import possible_changes


def deal_by_features(X: np.ndarray, n_parts: int) -> list[np.ndarray]:
    """Row indices of each part: rows in lexicographic order of their features, dealt in turn."""
    order = np.lexsort(X.T[::-1])
    return [order[part::n_parts] for part in range(n_parts)]


def count_votes(ballots: np.ndarray, n_classes: int) -> np.ndarray:
    """Votes (m, M) for each class from ballots (m, voters)."""
    place = np.arange(len(ballots))[:, None] * n_classes + ballots
    return np.bincount(place.ravel(), minlength=len(ballots) * n_classes).reshape(-1, n_classes)


def certified_votes(
    ballots: np.ndarray, n_classes: int, prices: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Winner (m,) and certified flips (m,) of ballots (m, voters), each the number of a class.

    ``prices`` (m, voters) are flips that it takes to change a ballot, at least; 1 by default.
    """
    prices = np.ones_like(ballots) if prices is None else prices
    m, voters = ballots.shape
    rows = np.arange(m)
    votes = count_votes(ballots, n_classes)
    winner = votes.argmax(axis=1)  # the first maximum: ties to the lower class
    never = np.iinfo(np.int64).max // 4
    cheapest = np.full(m, never)
    twice = _cheapest_sums(np.where(ballots == winner[:, None], prices, never), never)
    for step in range(1, n_classes):
        rival = (winner + step) % n_classes
        need = votes[rows, winner] - votes[rows, rival] - (rival < winner) + 1
        other = (ballots != winner[:, None]) & (ballots != rival[:, None])
        once = _cheapest_sums(np.where(other, prices, never), never)
        for turned in range(voters + 1):  # so many leave the winner, the others come from elsewhere
            rest = np.clip(need - 2 * turned, 0, voters)
            enough = need - 2 * turned <= voters
            price = twice[:, turned] + once[rows, rest]
            cheapest = np.where(enough, np.minimum(cheapest, price), cheapest)
    return winner, (cheapest - 1).astype(np.intp)


def _cheapest_sums(prices: np.ndarray, never: int) -> np.ndarray:
    """Sums (m, voters + 1) of the 0, 1, 2, ... smallest prices; `never` where a voter with no price would be needed."""
    ordered = np.sort(prices, axis=1)
    sums = np.cumsum(np.where(ordered == never, 0, ordered), axis=1)
    sums = np.where(ordered == never, never, sums)
    return np.concatenate([np.zeros((len(prices), 1), dtype=np.int64), sums], axis=1)


class PartitionAggregationClassifier(CertifiedPredictions, ClassifierMixin, Estimator):
    """Majority vote of classifiers trained on disjoint parts of the data, with certified label flips.

    Parameters
    ----------
    estimator : classifier or None
        Cloned for every part; None is :class:`sklearn.svm.SVC`. Its fit must be deterministic; a free
        ``random_state`` is set to a fixed seed. Its ``possible_flips``, if it has some, name labels as `fit` gets them.
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
        self, estimator: Any = None, *, n_partitions: int = 10, n_jobs: int | None = None, random_state: Any = 0
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
        # a row without weight is no evidence, but a part may consist of such rows
        if weight is not None:
            parts = [rows[weight[rows] > 0] if weight[rows].any() else rows for rows in parts]
        possible = _possible_changes(base, self.classes_)
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_part)(base, X, codes, weight, rows, routed, self.random_state, possible) for rows in parts
        )
        self._first_class = [int(codes[rows[0]]) for rows in parts]
        anything = ~np.eye(len(self.classes_), dtype=bool)
        changes = np.any(list(possible.values()), axis=0) if possible else anything
        self._flips_to_other_classes = [_flips_to_other_classes(codes[rows], changes) for rows in parts]
        return self

    def _base(self) -> Any:
        return SVC() if self.estimator is None else self.estimator

    def get_metadata_routing(self) -> Any:
        """What this classifier consumes (``sample_weight``) and what it hands on to the base estimators' fit."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add_self_request(self).add(estimator=self._base(), method_mapping=mapping)

    def vote_counts(self, X: Any) -> Any:
        """Votes (m, M) of the parts for each class."""
        return count_votes(self._ballots(X), len(self.classes_))

    def _ballots(self, X: Any) -> np.ndarray:
        """The class (m, parts) that each part votes for."""
        check_is_fitted(self)
        X = query_input(self, X)
        voters = zip(self.estimators_, self._first_class, strict=True)
        return np.stack(
            [np.full(len(X), code) if fitted is None else fitted.predict(X) for fitted, code in voters], axis=1
        ).astype(np.intp)

    def _certified(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        ballots, X = self._ballots(X), query_input(self, X)
        prices = np.ones_like(ballots)
        for part, fitted in enumerate(self.estimators_):
            # A voter knows its vote under flips among the classes that it was fitted on. A flip that brings another
            # class into its part, or flips that empty one, make it another model: any of them may change the vote.
            if fitted is None:
                prices[:, part] = self._flips_to_other_classes[part]
            elif hasattr(fitted, "certified_flips"):
                prices[:, part] = np.minimum(fitted.certified_flips(X) + 1, self._flips_to_other_classes[part])
        winner, flips = certified_votes(ballots, len(self.classes_), prices)
        return winner, np.minimum(flips, len(self.partition_))

    def predict(self, X: Any) -> np.ndarray:
        """Class with the most votes, ties to the lower class."""
        votes = self.vote_counts(X)
        return self.classes_[votes.argmax(axis=1)]

    def certified_flips(self, X: Any) -> np.ndarray:
        """How many flipped training labels each prediction survives, (m,), at least.

        A flip counts as a changed vote of its part, whatever it does there; a base estimator with ``certified_flips``
        of its own, such as :class:`CertifiedKernelClassifier`, has its votes changed only by more flips than it
        survives.
        """
        return self._certified(X)[1]

    def certificate(self, X: Any) -> Certificate:
        """Certified flips of each prediction; which labels would do it is not told."""
        winner, flips = self._certified(X)
        unknown: list[None] = [None] * len(flips)
        n = len(self.partition_)
        assumed = {"features": self.n_features_in_, "estimator": self._base()}
        assumed["n_partitions"] = self.n_partitions_
        return Certificate(self.classes_[winner], flips, unknown, unknown, False, n, n, assumed)

    def decision_function(self, X: Any) -> np.ndarray:
        """Share of the votes (m, M), or the lead of the second class (m,) where there are two."""
        share = self.vote_counts(X) / self.n_partitions_
        return share[:, 1] - share[:, 0] if len(self.classes_) == 2 else share


def _fit_part(
    base: Any,
    X: np.ndarray,
    codes: np.ndarray,
    weight: Any,
    rows: np.ndarray,
    routed: dict[str, Any],
    seed: int,
    possible: dict[str, np.ndarray],
) -> Any:
    """The fitted voter, or None for a part of one class."""
    present = np.unique(codes[rows])
    if len(present) == 1:
        return None
    model = clone(base)
    free = [name for name, value in model.get_params().items() if _is_free_seed(name, value)]
    model.set_params(**dict.fromkeys(free, seed))
    for name, changes in possible.items():  # the voter sees class numbers in place of labels
        numbers = {code: present[changes[code, present]].tolist() for code in present.tolist()}
        model.set_params(**{name: numbers})
    arguments = _check_method_params(X, routed, indices=rows)
    if weight is not None:
        arguments["sample_weight"] = weight[rows]
    return model.fit(X[rows], codes[rows], **arguments)


def _possible_changes(base: Any, classes: np.ndarray) -> dict[str, np.ndarray]:
    """Parameter -> which class can become which (M, M), for each ``possible_flips`` of `base`, nested ones too."""
    return {
        name: possible_changes(value, classes)
        for name, value in base.get_params().items()
        if name.split("__")[-1] == "possible_flips" and value is not None
    }


def _flips_to_other_classes(codes: np.ndarray, possible: np.ndarray) -> int:
    """Fewest flips that bring a new class among `codes` or take one away; more than there are codes where none do."""
    counts = np.bincount(codes, minlength=len(possible))
    present = counts > 0
    if possible[present][:, ~present].any():
        return 1
    return int(counts[present & possible.any(axis=1)].min(initial=len(codes) + 1))


def _is_free_seed(name: str, value: Any) -> bool:
    # Nested seeds too: the certificate asks that a part's vote depends on nothing but its rows.
    seed = name == "random_state" or name.endswith("__random_state")
    return seed and not isinstance(value, Integral)
