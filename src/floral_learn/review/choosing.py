"""Choose among fitted settings by answers about rows on which they disagree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from floral_learn.base.shown import Shown
from floral_learn.review.guarantee import wrong_bounds

if TYPE_CHECKING:
    from floral_learn.review.label_review import LabelReview


class Choice(Shown):
    """Candidates compared with the first of them, on rows where they disagree, drawn uniformly.

    Made by `LabelReview.choose`. Each candidate is cross-fitted on the labels as they were read then, so that no row is
    judged by a model that saw it.

    Attributes
    ----------
    predictions_ : dict of str to ndarray of shape (n,)
        Cross-fitted predictions of every candidate.
    disagreements_ : ndarray
        Rows on which any candidate differs from the first, in the random order in which they are asked.
    """

    def __init__(
        self, review: LabelReview, candidates: Mapping[str, Any], folds: int, rng: np.random.Generator, alpha: float
    ) -> None:
        self.review, self.candidates, self.alpha = review, dict(candidates), alpha
        n = len(review.labels_)
        parts = list(KFold(min(folds, n), shuffle=True, random_state=int(rng.integers(2**31))).split(np.arange(n)))
        self.predictions_ = {name: self._crossfit(model, parts) for name, model in self.candidates.items()}
        default = next(iter(self.predictions_.values()))
        differ = np.any([p != default for p in self.predictions_.values()], axis=0)
        self.disagreements_ = rng.permutation(np.flatnonzero(differ))

    def _facts(self) -> dict[str, str]:
        asked = sum(row in self.review._asked() for row in self.disagreements_.tolist())
        return {
            "candidates": ", ".join(self.candidates),
            "rows on which they differ": f"{len(self.disagreements_):,}, {asked:,} answered",
            "choice so far": self.name_,
        }

    def ask(self, n: int = 1) -> np.ndarray:
        """The next `n` rows to answer through ``review.answer``; fewer where no more disagree."""
        done = self.review._asked()
        return np.array([r for r in self.disagreements_ if r not in done][:n], dtype=np.intp)

    @property
    def name_(self) -> str:
        """The first candidate, unless another is significantly more often right where the two differ."""
        names = list(self.candidates)
        best, lead = names[0], 0
        for name in names[1:]:
            ahead, low = self._lead(name)
            if low > 0 and ahead > lead:
                best, lead = name, ahead
        return best

    @property
    def estimator_(self) -> Any:
        """The candidate that `name_` names, not fitted."""
        return self.candidates[self.name_]

    def _lead(self, name: str) -> tuple[int, int]:
        """Answers for less answers against the candidate, and the lower bound of that over all rows in dispute."""
        first, other = next(iter(self.predictions_.values())), self.predictions_[name]
        verdicts = self.review._verdicts()
        walk = [r for r in self.disagreements_ if first[r] != other[r]]
        better, unsure = [], []
        for row in walk:
            if row not in verdicts:
                break
            label = verdicts[row]
            better.append(label is not None and label == other[row])
            # a row on which both are wrong favours neither: the worst case counts against the challenger
            unsure.append(False)
        if not better:
            return 0, 0
        alpha = self.alpha / max(1, len(self.candidates) - 1)
        low, _ = wrong_bounds(len(walk), np.array(better), alpha)
        return 2 * sum(better) - len(better), 2 * low - len(walk)

    def _crossfit(self, model: Any, parts: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        found = self.review.labels_.copy()
        for train, test in parts:
            fitted = self.review._fit_on(clone(model), train)
            found[test] = fitted.predict(self.review._given_rows(test))
        return found
