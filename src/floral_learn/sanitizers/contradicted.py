"""Labels that held-out models and the nearest rows contradict, and what to do about them without doing harm."""

import sys
import time
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from floral_learn.labels.held_out import HeldOut, deal_folds, held_out, neighbor_shares, one_scale
from floral_learn.sanitizers.check import compare
from floral_learn.sanitizers.result import SanitizeResult, sanitizer_input, sanitizer_weight
from floral_learn.sanitizers.rule import RULE_MEMORISING, Rule, rule_for
from floral_learn.sanitizers.suspects import find_suspects
from floral_learn.tables.frames import is_frame
from floral_learn.tables.rows import explain_refusal

#: Cheap judges by name, for a model whose own folds would take too long.
JUDGES: dict[str, Any] = {
    "linear": make_pipeline(StandardScaler(with_mean=False), LogisticRegression(max_iter=1000)),
    "neighbors": make_pipeline(StandardScaler(with_mean=False), KNeighborsClassifier(15)),
    "trees": HistGradientBoostingClassifier(max_iter=50, max_leaf_nodes=15, random_state=0),
}


class ContradictedLabels(BaseEstimator):
    """Leave out labels that evidence contradicts, only where held-out rows say that it helps.

    Two judges who have not seen a label speak about it: the very model that is to be trained, cross-validated, and
    the nearest other rows. Two patterns are looked for: a class that has lost labels to others at random (the foreign
    labels where it lies are left out), and labels that both judges contradict with one voice and that lie scattered
    at random (they are left out, too). The model is then cross-validated again without them. Unless it predicts
    held-out labels better, nothing is done, and the model behind is trained exactly as if this sanitiser were not
    there.

    Parameters
    ----------
    judge : None, {"linear", "neighbors", "trees"} or classifier, default=None
        Who is cross-validated. None is the model behind (:class:`SanitizedClassifier` hands it over; alone,
        ``"linear"``). A name is a cheap judge for a model that takes long to train.
    n_folds : int, default=4
        Folds. All in all a fit costs at most ``2 (n_folds - 1) + 1`` fits of the model: seven by default.
    n_neighbors : int, default=30
        Nearest rows that vote, on standardised features.
    n_jobs : int or None
        joblib workers over folds.
    verbose : int, default=0
        1 tells on standard error what is being done.
    random_state : int, Generator-like or None, default=0
        Deals the folds.

    Attributes
    ----------
    support_ : ndarray of shape (n,)
        Mean share that the judges give the label minus the largest share of another class: -1 (contradicted) to 1; NaN
        for rows of weight zero.
    suggested_ : ndarray of shape (n,)
        The class with the largest mean share.
    suspects_ : bool ndarray of shape (n,)
        Labels that the evidence is against, whether or not something was done about them.
    weights_ : ndarray of shape (n,)
        0 for rows left out, 1 for the others.
    acted_ : bool
        Whether any weight differs from 1.
    memorised_ : float
        Of the labels that held-out models contradict, the share that the model repeats once it has seen them: near 0
        for logistic regression, near 1 for a forest. From one half on, less evidence is asked for, since each wrong
        label hurts such a model. NaN where it was not measured (``pred_probs`` without a suspect).
    check_ : dict
        Held-out ``accuracy`` and ``recall`` (mean over classes) on the given labels, pairs (plain, sanitised).
    summary_ : str
        What was done and why, in a sentence.

    Notes
    -----
    Labels alone do not say which of two regions was flipped. Poison that is the majority where it lies looks like a
    class of its own, and this sanitiser leaves it alone. See "How much can be done blind" in the documentation.

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from floral_learn import ContradictedLabels, SanitizedClassifier, load_moon, poison
    >>> moon = load_moon()
    >>> bad = poison(moon.X_train, moon.y_train, attack="class-biased", budget=0.3, random_state=0).y
    >>> trees = HistGradientBoostingClassifier(max_iter=30, random_state=0)
    >>> safe = SanitizedClassifier(ContradictedLabels(), trees).fit(moon.X_train, bad)
    >>> bool(safe.score(moon.X_test, moon.y_test) > trees.fit(moon.X_train, bad).score(moon.X_test, moon.y_test) + 0.2)
    True
    >>> "taken from class 1 at random; they were left out" in safe.sanitizer_.summary_
    True
    """

    support_: NDArray[np.float64]
    suggested_: NDArray[Any]
    suspects_: NDArray[np.bool_]
    weights_: NDArray[np.float64]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "judge": [None, StrOptions(set(JUDGES)), HasMethods(["fit", "predict"])],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        judge: Any = None,
        *,
        n_folds: int = 4,
        n_neighbors: int = 30,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.judge = judge
        self.n_folds = n_folds
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit_sanitize(
        self, X: Any, y: Any, sample_weight: Any = None, *, estimator: Any = None, pred_probs: Any = None
    ) -> SanitizeResult:
        """Weigh rows X (n, d), an array, sparse matrix or frame, with labels y (n,).

        ``sample_weight`` (n,) says how much each row counts; ``estimator`` is the model behind; ``pred_probs`` (n, M)
        are held-out class probabilities of anyone's model, columns in the order of the sorted labels, and replace the
        first cross-validation.
        """
        judge = self._judge(estimator)
        # A model of the caller's own gets a frame's rows untouched; judges by name get the numbers made of them.
        own = is_frame(X) and not isinstance(self.judge, str) and (self.judge is not None or estimator is not None)
        features, classes, codes = sanitizer_input(
            self, X, y, accept_sparse="csr", allow_nan=get_tags(judge).input_tags.allow_nan
        )
        if get_tags(judge).input_tags.pairwise:
            raise ValueError(
                f"ContradictedLabels needs features, and {type(judge).__name__} takes a precomputed kernel; "
                "give it a model with a kernel of its own."
            )
        given = sanitizer_weight(sample_weight, features, codes, classes)
        shares = None if pred_probs is None else checked_shares(pred_probs, len(codes), classes)
        if given is not None and (given == 0).any():  # a row without weight is no evidence: as if it were not there
            rows = np.flatnonzero(given > 0)
            shares = None if shares is None else shares[rows]
            seen = _safe_indexing(X, rows) if own else features[rows]
            self._judge_rows(judge, seen, features[rows], codes[rows], classes, given[rows], shares)
            self._spread(rows, classes[codes])
        else:
            self._judge_rows(judge, X if own else features, features, codes, classes, given, shares)
        self.acted_ = bool((self.weights_ != 1).any())
        self._say(self.summary_)
        return _weighed(X, classes[codes], self.weights_)

    def _judge_rows(self, judge: Any, seen: Any, X: Any, codes: Any, classes: Any, given: Any, shares: Any) -> Any:
        """Set every fitted attribute; all rows have weight. `seen` are the rows for the judge, `X` their numbers."""
        self._started = time.perf_counter()
        weight = np.ones(len(codes)) if given is None else given
        folds = deal_folds(codes, min(self.n_folds, len(codes)), _generator(self.random_state))
        plain = None
        if shares is None:
            plain = self._held_out(judge, seen, codes, classes, folds, given, "plain")
            shares = plain.shares
        self._say("nearest rows")
        near = neighbor_shares(X, codes, len(classes), self.n_neighbors, given, self.n_jobs)
        self._describe((shares + near) / 2, codes, classes)
        self.weights_ = np.ones(len(codes))
        self.check_: dict[str, Any] = {}
        scaled = one_scale(X)
        if plain is None and find_suspects(scaled, shares, near, codes, weight, RULE_MEMORISING)[1].any():
            plain = self._held_out(judge, seen, codes, classes, folds, given, "plain")
        self.memorised_ = np.nan if plain is None else plain.memorised(codes)
        rule = rule_for(self.memorised_)
        self.suspects_, tried, pattern = find_suspects(scaled, shares, near, codes, weight, rule)
        if plain is None or not tried.any():
            self.summary_ = "Nothing was done: no pattern of contradicted labels that could be mended was found."
            return
        self.weights_ = self._check(judge, seen, codes, classes, folds, weight, tried, plain.predicted, pattern, rule)

    def _spread(self, rows: NDArray[np.intp], labels: NDArray[Any]) -> None:
        """Put what was found for `rows` back among all rows; the others are not judged."""
        support, suspects = np.full(len(labels), np.nan), np.zeros(len(labels), bool)
        weights, suggested = np.ones(len(labels)), labels.copy()
        support[rows], suspects[rows], weights[rows] = self.support_, self.suspects_, self.weights_
        suggested[rows] = self.suggested_
        self.support_, self.suspects_, self.weights_, self.suggested_ = support, suspects, weights, suggested

    def _judge(self, estimator: Any) -> Any:
        self._validate_params()
        if isinstance(self.judge, str):
            return clone(JUDGES[self.judge])
        return clone(self.judge if self.judge is not None else JUDGES["linear"] if estimator is None else estimator)

    def _held_out(self, model: Any, X: Any, codes: Any, classes: Any, folds: Any, weight: Any, what: Any) -> HeldOut:
        def say(text: str) -> None:
            self._say(f"{what} model, {text}")

        try:
            return held_out(model, X, codes, classes, folds, weight, self.n_jobs, say, ask_again=what == "plain")
        except (TypeError, ValueError) as error:
            raise explain_refusal(error, X, model) from error

    def _describe(self, shares: NDArray[np.float64], codes: NDArray[np.intp], classes: NDArray[Any]) -> None:
        rows = np.arange(len(codes))
        rivals = shares.copy()
        rivals[rows, codes] = -np.inf
        self.support_ = shares[rows, codes] - rivals.max(axis=1)
        self.suggested_ = classes[np.where(self.support_ >= 0, codes, rivals.argmax(axis=1))]

    def _check(
        self,
        judge: Any,
        X: Any,
        codes: Any,
        classes: Any,
        folds: Any,
        weight: Any,
        tried: Any,
        plain: Any,
        pattern: Any,
        rule: Rule,
    ) -> NDArray[np.float64]:
        """Cross-validate the model without the rows in `tried`; zeros for them, or ones where that did not help."""
        weights = np.where(tried, 0.0, 1.0)
        mended = self._held_out(judge, X, codes, classes, folds, weight * weights, "sanitised").predicted
        told = compare(plain, mended, codes, weight)
        accuracy, recall = told.accuracy, told.recall
        self.check_ = {"accuracy": accuracy, "recall": recall}
        count = int(tried.sum())
        if pattern is not None:
            helps = told.recall_rise >= rule.one_way_gain and told.recall_errors >= rule.one_way_errors
            name = classes.tolist()[pattern.code]
            found = f"{count} labels look as if they had been taken from class {name!r} at random"
            measured = f"the mean recall on held-out labels goes from {recall[0]:.3f} to {recall[1]:.3f}"
        else:
            helps = told.accuracy_errors >= rule.scattered_errors and told.recall_errors >= rule.recall_errors
            found = (
                f"{count} labels, scattered at random, are contradicted by held-out models and by their nearest rows"
            )
            measured = (
                f"the accuracy on held-out labels goes from {accuracy[0]:.3f} to {accuracy[1]:.3f} and their mean "
                f"recall from {recall[0]:.3f} to {recall[1]:.3f}"
            )
        if not helps:
            self.summary_ = f"Nothing was done: {found}, but without them {measured}, which is not enough."
            return np.ones(len(codes))
        self.summary_ = f"{found[0].upper()}{found[1:]}; they were left out, since {measured}."
        return weights

    def _say(self, text: str) -> None:
        if self.verbose:
            seconds = time.perf_counter() - self._started
            sys.stderr.write(f"[ContradictedLabels] {seconds:6.1f} s  {text}\n")


def checked_shares(pred_probs: Any, n: int, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Probabilities (n, M) as given by the caller, or an error that says what is wrong with them."""
    try:
        shares = np.asarray(pred_probs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"pred_probs must be numbers, held-out probabilities of each class: {error}.") from error
    if shares.shape != (n, len(classes)):
        raise ValueError(
            f"pred_probs must have shape ({n}, {len(classes)}), one row for each row of X and one column for each of "
            f"the labels {classes.tolist()}, got {shares.shape}."
        )
    bad = ~np.isfinite(shares) | (shares < 0)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"pred_probs must be finite and not negative, held-out probabilities of each class; row {row} has "
            f"{shares[row, column]:.4g} for label {classes.tolist()[column]!r}."
        )
    if not np.allclose(shares.sum(axis=1), 1.0, atol=1e-3):
        row = int(np.argmax(np.abs(shares.sum(axis=1) - 1.0)))
        raise ValueError(f"pred_probs must sum to 1 in each row; row {row} sums to {shares[row].sum():.4g}.")
    return shares


def _weighed(X: Any, y: NDArray[Any], weights: NDArray[np.float64]) -> SanitizeResult:
    kept = weights > 0
    left = weights[kept]
    rows = X if kept.all() else _safe_indexing(X, np.flatnonzero(kept))
    return SanitizeResult(rows, y[kept], None if (left == 1).all() else left, kept, np.zeros(len(kept), bool))


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(np.iinfo(np.int32).max))
