"""Leave out labels that are more probably wrong than right, where that can be known to help."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods

from floral_learn.base.estimator import Estimator
from floral_learn.base.rows import InputRows, read_rows, take_rows
from floral_learn.labels.evidence import LabelEvidence, judge_labels
from floral_learn.labels.flagging import Flags
from floral_learn.labels.judges import SETTINGS, deal_folds
from floral_learn.sanitizers.inputs import keep_rows, spare_one_of_each_class

STANDARD_ERRORS = 1.0  # by which held-out agreement must rise; chosen by `benchmarks/arena.py run --rules`


class ContradictedLabels(Estimator):
    """Leave out labels that are more probably wrong than right, where that can be known to help.

    The evidence is that of :func:`floral_learn.judge_labels`. Rows whose label is wrong with a probability above one
    half are left out in two cases: where labels went wrong at random, in one class or in all, and the classes hardly
    overlap (an audit would replace the same ones in a cleaned copy); and where the classifier that is to be trained
    repeats more of the given labels that it has not seen, if such rows are left out of what it has. Elsewhere nothing
    is done: the model behind is trained exactly as if this sanitiser were not there.

    Parameters
    ----------
    model : classifier, optional
        Judges in place of the library's own judges, cross-validated.
    n_jobs : int or None
        joblib workers over the folds of `model` and of the classifier behind.
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
    wrong_probability_: NDArray[np.float64]

    def __init__(self, *, model: Any = None, n_jobs: int | None = None, random_state: Any = None) -> None:
        self.model = model
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit_resample(
        self, X: Any, y: Any, *, pred_probs: Any = None, estimator: Any = None
    ) -> tuple[Any, NDArray[Any]]:
        """Return the rows X (n, d), dense, sparse or a frame, and labels y (n,) that are kept.

        ``pred_probs`` (n, M) are held-out class probabilities of anyone's model, columns in the order of the sorted
        labels; no judge is trained then. ``estimator`` is the classifier that will be trained on the kept rows, to be
        cross-validated with and without the others; `SanitizedClassifier` gives its own. Without it, or with
        ``pred_probs``, only the first of the two cases can be recognised.
        """
        self._validate_params()
        rows = read_rows(X, allow_nan=True, min_rows=2)
        evidence, flags, doubted = self._judge(rows, y, pred_probs)
        self.wrong_probability_ = flags.wrong_probability
        if doubted.any() and not flags.replaceable:
            doubted &= estimator is not None and pred_probs is None and self._helps(estimator, rows, evidence)
        self.acted_ = bool(doubted.any())
        share = f"about {100 * flags.wrong_share:.1f} % of the labels are estimated wrong"
        if self.acted_:
            left_out = f"{doubted.sum():,} of {len(doubted):,} labels were left out"
            why = "errors are scattered" if flags.replaceable else "held-out predictions of the classifier improve"
            self.summary_ = f"{left_out}: {why}, {share}."
        elif flags.replaceable:
            self.summary_ = "Nothing was done: no label is more probably wrong than right."
        else:
            why = "contradicted labels can be overlap" if flags.informative else "the rows do not predict the labels"
            self.summary_ = f"Nothing was done: {why}."
        return keep_rows(self, X, evidence.classes[evidence.codes], ~doubted)

    def _judge(self, rows: InputRows, y: Any, pred_probs: Any = None) -> tuple[LabelEvidence, Flags, NDArray[np.bool_]]:
        """The evidence, its flags, and the labels that are more probably wrong than right, (n,)."""
        given = {"model": self.model, "pred_probs": pred_probs}
        evidence = judge_labels(rows, y, n_jobs=self.n_jobs, random_state=self.random_state, **given)
        flags = evidence.flags()
        doubted = (flags.wrong_probability > 0.5) & flags.informative
        return evidence, flags, spare_one_of_each_class(doubted, evidence.codes, flags.wrong_probability)

    def _helps(self, estimator: Any, rows: InputRows, evidence: LabelEvidence) -> bool:
        """Whether `estimator` behind this rule repeats more of the given labels that neither has seen than without it.

        The labels to leave out are found anew in every fold, from its training rows alone. Changed predictions are
        compared by a sign test (McNemar's), so that chance alone does not decide.
        """
        codes, gain, changed = evidence.codes, 0, 0
        folds = deal_folds(codes, min(SETTINGS.folds, len(codes)), np.random.default_rng(0))
        for fold in range(folds.max() + 1):
            seen, unseen = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            labels, others = evidence.classes[codes[seen]], evidence.classes[codes[unseen]]
            if len(np.unique(labels)) < 2:
                return False
            part = InputRows(take_rows(rows.numbers, seen), take_rows(rows.given, seen))
            *_, doubted = self._judge(part, labels)
            if not doubted.any():
                continue
            try:
                models = [
                    clone(estimator).fit(take_rows(part.given, kept), labels[kept])
                    for kept in (np.flatnonzero(~doubted), np.arange(len(seen)))
                ]
                right, plain = (model.predict(take_rows(rows.given, unseen)) == others for model in models)
            except (TypeError, ValueError):  # rows that the classifier refuses: its own fit says so in full
                return False
            gain += int(right.sum() - plain.sum())
            changed += int((right != plain).sum())
        return gain > STANDARD_ERRORS * changed**0.5

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags
