"""What a classifier is trained on after a review: labels, weights, a fitted clone, and a choice between settings."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline

from floral_learn.base import Shown
from floral_learn.base.rows import explain_refusal
from floral_learn.review.beliefs import Beliefs, read_classes
from floral_learn.review.guarantee import wrong_bounds
from floral_learn.review.rules import RULES

if TYPE_CHECKING:
    from floral_learn.review.label_review import LabelReview

_IN_FULL = 1.25  # rows that are read right with 90 % and more count in full
_MOST_SHIFT = 4.0  # how much more, or less, a class may weigh than the rows that are read as it


def training_set(beliefs: Beliefs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Class numbers and weights to train with, and P(wrong) of these labels, three arrays (n,).

    No more is done than answers bear out: as long as none contradicts a label, labels stay and count alike; rows that
    nobody was asked about are corrected only where that would have been right on those that were (`corrections_hold`).
    """
    codes, belief = beliefs.data.codes, beliefs.label_probability
    weights, rows = np.ones(len(codes)), np.arange(len(codes))
    if _speaks(beliefs):
        read = _trained_with(beliefs, belief, rows)
        weights = training_weights(belief, read, codes, len(beliefs.answers))
        codes = read
    return codes, weights, 1.0 - belief[rows, codes]


def misread_among(beliefs: Beliefs, rows: np.ndarray) -> np.ndarray:
    """P(the label that `training_set` gives a row is wrong) of `rows` in ascending order, (len(rows),).

    Of a sample of the rows the same rule on the sample: how many labels of a class stay is counted in it.
    """
    belief, codes = beliefs.of(rows), beliefs.data.codes[rows]
    if _speaks(beliefs):
        codes = _trained_with(beliefs, belief, rows)
    return 1.0 - belief[np.arange(len(rows)), codes]


def _speaks(beliefs: Beliefs) -> bool:
    """Whether anything speaks against a label: an answer, or who gave it."""
    return beliefs.data.groups is not None or bool(beliefs.contradicted.any())


def _trained_with(beliefs: Beliefs, belief: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Class numbers that `rows` are trained with, (len(rows),), by the `belief` about them."""
    codes, free = beliefs.data.codes[rows], beliefs.free[rows]
    read = read_classes(belief, codes, free)
    return read if beliefs.corrections_hold else np.where(free, codes, read)


def training_weights(belief: np.ndarray, read: np.ndarray, codes: np.ndarray, answers: int) -> np.ndarray:
    """Weights of rows that are read as `read`: less in doubt, and each class as much as it is expected to have rows.

    A class may be expected to be larger or smaller than the rows read as it, by labels that were turned over but cannot
    be told apart. With few answers, most of the doubt about labels that stay is what was there before any answer: it
    counts in part.

    Parameters
    ----------
    belief : ndarray of shape (n, M)
        P(true class).
    read, codes : int ndarrays of shape (n,)
        Class numbers that rows are trained with, and those that were given.
    answers : int
        Number of answers.

    Returns
    -------
    ndarray of shape (n,)
        1 per row on average.
    """
    M, counts = belief.shape[1], answers / (answers + RULES.few_answers)
    certainty = np.clip(_IN_FULL * (2 * belief[np.arange(len(belief)), read] - 1), RULES.least_weight, 1.0)
    certainty = np.where(read == codes, 1 - counts * (1 - certainty), certainty)
    total = np.maximum(np.bincount(read, certainty, minlength=M), 1e-9)
    size = np.maximum(np.bincount(read, minlength=M), 1)
    expected = np.clip(belief.sum(axis=0) / size, 1 / _MOST_SHIFT, _MOST_SHIFT)
    weights = certainty * (size * expected**counts / total)[read]
    return weights / weights.mean()


def fit_reviewed(
    estimator: Any, X: Any, labels: np.ndarray, weights: np.ndarray, trusted: np.ndarray, wrong: float
) -> Any:
    """A fitted clone of `estimator`: `weights` and `trusted` go where its fit takes them.

    A `budget` (FLORAL's) that still has its default becomes `wrong`, the expected share of wrong labels, where that is
    less: an attacker with more flips than there are wrong labels costs accuracy.
    """
    model = clone(estimator)
    step = model.steps[-1] if isinstance(model, Pipeline) else None
    last, prefix = (step[1], f"{step[0]}__") if step else (model, "")
    if _keeps_default(last, "budget"):
        last.set_params(budget=float(min(wrong, last.budget)))
    takes = inspect.signature(last.fit).parameters
    extra: dict[str, Any] = {}
    if "sample_weight" in takes:
        extra[prefix + "sample_weight"] = weights
    if "trusted" in takes:
        extra[prefix + "trusted"] = trusted
    return fit_or_constant(model, X, labels, **extra)


def fit_or_constant(model: Any, X: Any, labels: np.ndarray, **extra: Any) -> Any:
    """`model` fitted; where all labels are alike, as may be where rows are held out, a model that always says so."""
    if len(np.unique(labels)) < 2:
        return DummyClassifier(strategy="most_frequent").fit(X, labels)
    try:
        return model.fit(X, labels, **extra)
    except (ValueError, TypeError) as error:
        raise explain_refusal(error, X, model) from error


def _keeps_default(estimator: Any, name: str) -> bool:
    parameter = inspect.signature(type(estimator).__init__).parameters.get(name)
    return parameter is not None and getattr(estimator, name, None) == parameter.default


def checked_model(model: Any, name: str) -> Any:
    """`model`, if it can be cloned and fitted."""
    if isinstance(model, type) or not all(hasattr(model, part) for part in ("fit", "predict", "get_params")):
        raise ValueError(f"{name} holds {model!r}, which is not a scikit-learn classifier such as SVC()")
    return model


class Choice(Shown):
    """Candidates compared with the first of them, on rows where they disagree, drawn uniformly.

    Made by `LabelReview.choose`. Each candidate is cross-fitted on the labels as they were read then, so that no row is
    judged by a model that saw it.

    Attributes
    ----------
    predictions : dict of str to ndarray of shape (n,)
        Cross-fitted predictions of every candidate.
    disagreements : ndarray
        Rows on which any candidate differs from the first, in the random order in which they are asked.
    """

    def __init__(
        self, review: LabelReview, candidates: Mapping[str, Any], folds: int, rng: np.random.Generator, alpha: float
    ) -> None:
        self.review, self.candidates, self.alpha = review, dict(candidates), alpha
        n = len(review.labels)
        parts = list(KFold(min(folds, n), shuffle=True, random_state=int(rng.integers(2**31))).split(np.arange(n)))
        self.predictions = {name: self._crossfit(model, parts) for name, model in self.candidates.items()}
        default = next(iter(self.predictions.values()))
        differ = np.any([p != default for p in self.predictions.values()], axis=0)
        self.disagreements = rng.permutation(np.flatnonzero(differ))

    def _facts(self) -> dict[str, str]:
        asked = sum(row in self.review._answers.votes for row in self.disagreements.tolist())
        return {
            "candidates": ", ".join(self.candidates),
            "rows on which they differ": f"{len(self.disagreements):,}, {asked:,} answered",
            "choice so far": self.name,
        }

    def ask(self, n: int = 1) -> np.ndarray:
        """The next `n` rows to answer through ``review.answer``; fewer where no more disagree."""
        done = self.review._answers.votes
        return np.array([r for r in self.disagreements.tolist() if r not in done][:n], dtype=np.intp)

    @property
    def name(self) -> str:
        """The first candidate, unless another is significantly more often right where the two differ."""
        names = list(self.candidates)
        best, lead = names[0], 0
        for name in names[1:]:
            ahead, low = self._lead(name)
            if low > 0 and ahead > lead:
                best, lead = name, ahead
        return best

    @property
    def estimator(self) -> Any:
        """The candidate that `name` names, not fitted."""
        return self.candidates[self.name]

    def _lead(self, name: str) -> tuple[int, int]:
        """Answers for less answers against the candidate, and the lower bound of that over all rows in dispute."""
        first, other = next(iter(self.predictions.values())), self.predictions[name]
        agreed, classes = self.review._answers.agreed, self.review.classes
        disputed = [r for r in self.disagreements.tolist() if first[r] != other[r]]
        better = []
        for row in disputed:
            if row not in agreed:
                break
            code = agreed[row]
            # a row on which both are wrong, or nobody is sure, favours neither: it counts against the challenger
            better.append(code is not None and classes[code] == other[row])
        if not better:
            return 0, 0
        alpha = self.alpha / max(1, len(self.candidates) - 1)
        low, _ = wrong_bounds(len(disputed), np.array(better), alpha)
        return 2 * sum(better) - len(better), 2 * low - len(disputed)

    def _crossfit(self, model: Any, parts: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        predicted = self.review.labels.copy()
        for train, test in parts:
            predicted[test] = self.review._train_on(clone(model), train).predict(self.review._rows.take(test))
        return predicted
