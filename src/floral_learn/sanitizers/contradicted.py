"""Leave out the labels that an audit flags."""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import HasMethods

from floral_learn.base.alignment import align
from floral_learn.base.estimator import Estimator
from floral_learn.base.rows import read_rows
from floral_learn.labels.evidence import judge_labels
from floral_learn.sanitizers.inputs import keep_rows, spare_one_of_each_class


class ContradictedLabels(Estimator):
    """Leave out the labels that an audit flags: the set with the largest expected F1.

    The evidence and the flags are those of :func:`floral_learn.labels.judge_labels`. The classifier behind is trained
    once, on the rest; where the rows do not predict the labels, on all rows.

    Parameters
    ----------
    model : classifier, optional
        Judges in place of the library's own judges, cross-validated.
    n_jobs : int or None
        joblib workers over the trees and folds of the judges.
    random_state : int, RandomState, Generator or None
        Draws folds and landmarks.

    Attributes
    ----------
    sample_indices_ : int ndarray of shape (m,)
        The rows that are kept.
    relabeled_ : bool ndarray of shape (n,)
        No row is: all False.
    wrong_probability_ : ndarray of shape (n,)
        How probable it is that each label is wrong.
    acted_ : bool
        Whether any row was left out.
    summary_ : str
        What was done and why, in a sentence.

    Notes
    -----
    Labels alone do not say which of two regions was flipped. Poison that is the majority where it lies looks like a
    class of its own, and this sanitiser leaves it alone. See "How much can be done blind" in the documentation.

    Examples
    --------
    >>> from floral_learn import ContradictedLabels, load_moon, poison
    >>> moon = load_moon()
    >>> bad = poison(moon.X_train, moon.y_train, attack="class-biased", budget=0.15, random_state=0)
    >>> rule = ContradictedLabels(random_state=0)
    >>> X, y = rule.fit_resample(moon.X_train, bad.y)
    >>> bool((y != moon.y_train[rule.sample_indices_]).mean() < 0.07)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "model": [None, HasMethods(["fit", "predict"])],
        "n_jobs": [int, None],
        "random_state": ["random_state"],
    }
    wrong_probability_: np.ndarray

    def __init__(self, *, model: Any = None, n_jobs: int | None = None, random_state: Any = None) -> None:
        self.model = model
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit_resample(self, X: Any, y: Any, *, pred_probs: Any = None) -> tuple[Any, np.ndarray]:
        """Return the rows X (n, d), dense, sparse or a frame, and labels y (n,) that are kept.

        ``pred_probs`` (n, M) are held-out class probabilities of anyone's model, columns in the order of the sorted
        labels; no judge is trained then.
        """
        self._validate_params()
        y, pred_probs = align(X, y), align(X, pred_probs, ("X", "pred_probs"))
        rows = read_rows(X, allow_nan=True, min_rows=2)
        given = {"model": self.model, "pred_probs": pred_probs}
        evidence = judge_labels(rows, y, n_jobs=self.n_jobs, random_state=self.random_state, **given)
        flags = evidence.flags()
        self.wrong_probability_ = flags.score
        # a class keeps its most plausible row: without any, it could not be predicted any more
        doubted = spare_one_of_each_class(flags.flagged, evidence.codes, flags.score)
        self.acted_ = bool(doubted.any())
        if self.acted_:
            share = f"about {100 * flags.wrong_share:.1f} % of the labels are estimated wrong"
            self.summary_ = f"{doubted.sum():,} of {len(doubted):,} labels were left out; {share}."
        elif flags.informative:
            self.summary_ = "Nothing was done: no label stands out as wrong."
        else:
            self.summary_ = "Nothing was done: the rows do not predict the labels."
        return keep_rows(self, X, evidence.classes[evidence.codes], ~doubted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags
