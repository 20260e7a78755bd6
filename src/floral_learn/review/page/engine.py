"""A `LabelReview` that follows the store: answers are applied in their order, undone ones are taken back."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

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

    def row_after(self, row: int, label: Any, reviewer: str, closed: Collection[int]) -> int | None:
        """The row to come next if `reviewer` called `row` `label` (None: not sure); the review stays as it was."""
        self.review.answer([row], [label], reviewer=reviewer)
        try:
            return self.next_row(closed)
        finally:
            self.review.undo()


def seed_of(store: AnswerStore, seed: int | None) -> int | None:
    """The seed with which the review in `store` was begun; another one now is an error."""
    kept = store.get("secret")
    if kept is None:
        return seed
    begun = json.loads(kept)["random_state"]
    if seed not in (None, begun):
        raise ValueError(f"--seed {seed} is not that of the review in {store.path.parent}; leave it out to go on")
    return begun


def keep_order(review: Any, store: AnswerStore) -> Any:
    """`review` with the secret order of rows that `store` holds; a new store gets that of the review.

    An order drawn again after the first answers were seen would void the guarantee. Rows are not stored: they are in
    the table.
    """
    kept = store.get("secret")
    if kept is None:
        secret = {"order": review._order.tolist(), "seed": review._seed, "random_state": review.random_state}
        store.put("secret", json.dumps(secret).encode())
    else:
        secret = json.loads(kept)
        review._order, review._seed = np.array(secret["order"], dtype=np.intp), secret["seed"]
    return review
