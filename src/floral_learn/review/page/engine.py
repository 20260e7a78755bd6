"""A `LabelReview` that follows the store: answers are applied in their order, undone ones are taken back."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from floral_learn.review.label_review import LabelReview
from floral_learn.review.page.store import Answer, AnswerStore


class Engine:
    """The review behind the page; only one thread may use it.

    Parameters
    ----------
    review : LabelReview
        A review without answers, or with those that `catch_up` will not be told again.
    """

    def __init__(self, review: Any) -> None:
        self.review = review
        self._applied: list[Answer] = []

    def catch_up(self, answers: Sequence[Answer], names: Mapping[str, Any]) -> None:
        """Bring the review to `answers`: what was undone since is undone, what is new is answered."""
        wanted = [answer for answer in answers if answer.kind != "skip"]
        same = 0
        while same < min(len(wanted), len(self._applied)) and wanted[same].id == self._applied[same].id:
            same += 1
        for _ in self._applied[same:]:
            self.review.undo()
        for answer in wanted[same:]:
            label = None if answer.label is None else names[answer.label]
            self.review.answer([answer.row], [label], reviewer=answer.reviewer)
        self._applied = wanted

    def next_row(self, closed: Collection[int]) -> int | None:
        """The row whose answer would settle most, outside of `closed`; None where none is left."""
        answered = {answer.row for answer in self._applied}
        count = len(set(closed) - answered) + 1
        rows = [int(row) for row in self.review.ask(count)]
        return next((row for row in rows if row not in closed), None)


def open_review(
    X: Any, labels: np.ndarray, store: AnswerStore, *, groups: Any = None, trusted: Any = None, seed: int | None = None
) -> Any:
    """A `LabelReview` of these rows; its secret order of rows is drawn once, kept in `store`, and found again later.

    Rows are not stored: they are in the table. Answers are not in the review yet; `Engine.catch_up` brings them.
    """
    kept = store.get("secret")
    secret = None if kept is None else json.loads(kept)
    if secret is not None and seed not in (None, secret["random_state"]):
        raise ValueError(f"--seed {seed} is not that of the review in {store.path.parent}; leave it out to go on")
    chosen = seed if secret is None else secret["random_state"]
    review = LabelReview(X, labels, groups=groups, trusted=trusted, random_state=chosen)
    if secret is None:
        secret = {"walk": review._walk.tolist(), "seed": review._seed, "random_state": review.random_state}
        store.put("secret", json.dumps(secret).encode())
    else:
        # A new order would be drawn after the first answers were seen, and would void the guarantee.
        review._walk, review._seed = np.array(secret["walk"], dtype=np.intp), secret["seed"]
    return review
