"""`CrowdClassifier`: a classifier from rows and the votes of people who may lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from floral_learn.base.alignment import refuse_repeated_columns
from floral_learn.base.estimator import Estimator, whole_fit
from floral_learn.base.frames import is_frame, without_columns
from floral_learn.base.rows import explain_refusal, read_rows, take_rows
from floral_learn.base.validation import generator

from .aggregate import aggregate_votes
from .features import MOST_ROWS, PENALTY, linear_steps
from .readings import ERROR_RATE


class CrowdClassifier(ClassifierMixin, Estimator):
    """Learn from votes of people who may be careless or may lie, alone or together.

    The labels behind the votes and the people's confusion matrices are found together, by an EM whose classifier never
    judges a task it learned from. A model is then fitted on the soft labels.

    Parameters
    ----------
    estimator : classifier, optional
        What predicts in the end. By default a logistic regression on the tasks' main directions. It is fitted with
        sample weights where it takes them.
    random_state : int, Generator or None
        Source of the folds.

    Attributes
    ----------
    classes_ : array (K,)
    aggregation_ : VoteAggregation
        What `aggregate_votes` says of the training tasks: ``labels``, ``probability``, ``decided``, ``annotators``, ...
    estimator_ : fitted classifier

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from floral_learn import CrowdClassifier, poison_votes
    >>> X, y = load_iris(return_X_y=True)
    >>> votes = np.where(np.random.default_rng(0).random((150, 10)) < 0.3, y[:, None], -1)
    >>> untrusted = poison_votes(votes, X, y, attack="pair", budget=0.3, missing=-1, random_state=0).votes
    >>> crowd = CrowdClassifier(random_state=0).fit(X, untrusted, missing=-1)
    >>> bool(crowd.score(X, y) > 0.9)
    True
    """

    def __init__(self, *, estimator: Any = None, random_state: Any = None) -> None:
        self.estimator = estimator
        self.random_state = random_state

    @whole_fit
    def fit(self, X: Any, votes: Any, **options: Any) -> CrowdClassifier:
        """Fit from rows and votes.

        Parameters
        ----------
        X : array, frame or sparse matrix (n, d)
        votes : array or frame (n, annotators), long frame with columns task, worker, label, or array (n,)
            A long frame's tasks are matched to X's column `task`, or to its index; a 1-D array is one label per item.
        **options
            `groups`, `gold`, `classes`, `missing`, `task`, `worker` and `label`, as of `aggregate_votes`.
        """
        rng = generator(self.random_state)
        self.aggregation_ = aggregate_votes(votes, X, random_state=rng, **options)
        self.task_ = options.get("task", "task")
        self.classes_ = self.aggregation_.classes
        if len(self.classes_) < 2:
            raise ValueError(f"votes: everybody voted {self.classes_.tolist()[0]!r}; a classifier needs two classes")
        given, numbers = self._items(X, reset=True)
        gold, per_item = self.aggregation_.gold, self.aggregation_.votes.per_item
        told = (per_item > 0) if gold is None else (per_item > 0) | (gold >= 0)
        try:
            self.estimator_ = self._fit_final(numbers if self.estimator is None else given, np.flatnonzero(told), rng)
        except (TypeError, ValueError) as error:
            raise explain_refusal(error, given, self.estimator) from error
        return self

    def _items(self, X: Any, reset: bool) -> tuple[Any, Any]:
        """The rows for an estimator of the caller's own (a frame untouched), and as numbers."""
        X = without_columns(X, self.task_)
        if not is_frame(X):
            X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset)
            return X, X
        refuse_repeated_columns(X)
        X = validate_data(self, X, skip_check_array=True, reset=reset)
        if reset:
            rows = read_rows(X)
            self.encoder_ = rows.encoder
            return X, rows.numbers
        return X, read_rows(X).numbers if self.encoder_ is None else self.encoder_.transform(X)

    def _asked(self, X: Any) -> Any:
        """New rows as the estimator takes them."""
        given, numbers = self._items(X, reset=False)
        return numbers if self.estimator is None else given

    @property
    def labels_(self) -> np.ndarray:
        """The most probable class of each training task."""
        return self.aggregation_.labels

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row."""
        check_is_fitted(self)
        return self.estimator_.predict(self._asked(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, K), in the order of ``classes_``."""
        check_is_fitted(self)
        found = self.estimator_.predict_proba(self._asked(X))
        full = np.zeros((len(found), len(self.classes_)))
        full[:, np.searchsorted(self.classes_, self.estimator_.classes_)] = found
        return full

    def _fit_final(self, X: Any, told: np.ndarray, rng: np.random.Generator) -> Any:
        if len(told) > MOST_ROWS and self.estimator is None:
            told = np.sort(rng.choice(told, MOST_ROWS, replace=False))
        # a mistake that all people share is nobody's to unlearn
        probability = self.aggregation_.solution.held
        model = self._default(X, rng) if self.estimator is None else clone(self.estimator)
        if self.estimator is not None and not has_fit_parameter(model, "sample_weight"):
            return model.fit(take_rows(X, told), self.aggregation_.labels[told])
        # less is not learned from
        row, code = np.nonzero(probability[told] >= ERROR_RATE / len(self.classes_))
        weight = probability[told][row, code]
        name = "sample_weight" if self.estimator is not None else "logisticregression__sample_weight"
        return model.fit(take_rows(X, told[row]), self.classes_[code], **{name: weight})

    def _default(self, X: Any, rng: np.random.Generator) -> Any:
        """The model that served in the EM, as a scikit-learn pipeline."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        seed = int(rng.integers(2**31 - 1))
        steps = linear_steps(X.shape, sp.issparse(X), seed)
        made = make_pipeline(*steps).fit_transform(X[:MOST_ROWS])
        # The EM's columns have variance 1 on average, unless they are constant.
        penalty = PENALTY * (float(made.var(axis=0).mean()) or 1.0)
        return make_pipeline(*steps, LogisticRegression(C=1.0 / penalty, max_iter=300))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
