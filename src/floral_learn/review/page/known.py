"""What a review knows so far: how many labels are wrong and where, what was bought back, what more would bring."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from floral_learn.review.page import words
from floral_learn.review.page.regions import Region, regions

CONFIDENCE = 0.95
TEN = 10
_DRAWS, _FEW_DRAWS, _MANY_ROWS = 8, 3, 3000  # imagined runs of the next ten answers; fewer on many rows
_FOLDS = 5
_MOST_ROWS = 3000  # rows of the models that are compared
_NOTABLE = 1.25  # times the overall share from which a part of the data is named


def describe(
    review: Any, rows: Any, groups: np.ndarray | None = None, hurry: Callable[[], bool] = lambda: False
) -> Iterator[dict[str, Any]]:
    """Yield what is known as parts of one dict, the quick ones first.

    Parameters
    ----------
    review : LabelReview
        The review; it is left as it was.
    rows : ShownRows
        The table as people read it.
    groups : ndarray of shape (n,), optional
        Where each label comes from.
    hurry : callable() -> bool
        Asked now and then; where it says yes, the rest is left untold.
    """
    share, sure = review.wrong_share_, review.guarantee(confidence=CONFIDENCE)
    misread = misread_labels(review)
    yield {
        "estimate": {
            "share": float(share.estimate),
            "low": float(share.low),
            "high": float(share.high),
            "words": words.estimate(share),
        },
        "guarantee": {"low": sure.low, "high": sure.high, "checked": sure.checked, "words": words.guarantee(sure)},
        "misread": {"labels": misread, "changed": int((review.labels_ != review.given).sum())},
    }
    yield {"where": where(review, rows, groups)}
    gain = ten_more(review, hurry)
    if gain is None:
        return
    yield {"ten": {"labels": gain, "words": words.ten_more(misread, gain, len(rows.labels))}}
    yield {"stop": words.stop(bool(review.should_stop_), len(review.history_), gain, len(rows.labels))}
    compared = accuracy(review, rows.X, hurry)
    if compared is None:
        return
    before, after, checked = compared
    yield {"accuracy": {"before": before, "after": after, "words": words.accuracy(before, after, checked)}}


def misread_labels(review: Any) -> float:
    """Expected number of rows whose label is still read wrongly."""
    return float((1.0 - review.label_probability_.max(axis=1)).sum())


def where(review: Any, rows: Any, groups: np.ndarray | None) -> list[dict[str, Any]]:
    """The classes, sources and regions with clearly more wrong labels than the whole, most wrong first."""
    wrong = review.wrong_probability_
    overall = float(wrong.mean())
    parts: list[Region] = []
    for name in rows.classes.tolist():
        inside = rows.labels == name
        parts.append(Region("class", f"labelled “{name}”", int(inside.sum()), float(wrong[inside].mean())))
    for name in [] if groups is None else np.unique(groups).tolist():
        inside = groups == name
        # Few rows say little: their share is drawn towards that of all.
        drawn = (float(wrong[inside].sum()) + 10 * overall) / (int(inside.sum()) + 10)
        parts.append(Region("source", f"from “{name}”", int(inside.sum()), drawn))
    parts += regions(rows, wrong)
    notable = [part for part in parts if part.share > max(_NOTABLE * overall, overall + 0.02)]
    notable.sort(key=lambda part: -(part.share - overall) * np.sqrt(part.rows))
    return [
        {"kind": part.kind, "name": part.name, "rows": part.rows, "share": part.share, "words": words.region(part)}
        for part in notable[:5]
    ]


def ten_more(review: Any, hurry: Callable[[], bool] = lambda: False, count: int = TEN) -> float | None:
    """How many labels the next answers would set right, expected: answers are imagined as the review expects them.

    None where `hurry` broke it off.
    """
    rows = review.ask(count)
    if not len(rows):
        return 0.0
    before, rng = misread_labels(review), np.random.default_rng(len(review.history_))
    chance = review.label_probability_[rows]
    who = review.history_[-1]["reviewer"] if review.history_ else "reviewer"
    after = []
    for _ in range(_DRAWS if len(review.given) <= _MANY_ROWS else _FEW_DRAWS):
        if hurry():
            return None
        codes = (chance.cumsum(axis=1) > rng.random((len(rows), 1))).argmax(axis=1)
        review.answer(rows, review.classes_[codes].tolist(), reviewer=who)
        try:
            after.append(misread_labels(review))
        finally:
            review.undo()
    # The rows that are asked become known: at least what is misread among them is set right.
    own = float((1.0 - chance.max(axis=1)).sum())
    return max(own, before - float(np.mean(after)))


def accuracy(
    review: Any, X: Any, hurry: Callable[[], bool] = lambda: False
) -> tuple[float, float, tuple[int, int, int]] | None:
    """Accuracy on rows like these of a plain model: trained on the labels as given, and as read now.

    Both are cross-fitted; rows count by the review's probabilities of their true classes. The last value counts, on the
    rows drawn at random that were answered, how many each model gets right: (rows, before, after).
    None where `hurry` broke it off.
    """
    from sklearn.model_selection import KFold
    from sklearn.svm import SVC

    rng = np.random.default_rng(0)
    n = len(review.given)
    some = np.arange(n) if n <= _MOST_ROWS else np.sort(rng.choice(n, _MOST_ROWS, replace=False))
    walk = drawn_rows(review)
    some = np.union1d(some, np.fromiter(walk, dtype=np.intp, count=len(walk)))
    belief = review.label_probability_[some]
    place = {row: k for k, row in enumerate(some.tolist())}
    result, right = [], []
    for labels in (review.given[some], review.labels_[some]):
        codes = np.searchsorted(review.classes_, labels)
        counts = np.bincount(codes, minlength=len(review.classes_))
        predicted = np.full(len(some), counts.argmax())
        for train, test in KFold(min(_FOLDS, len(some)), shuffle=True, random_state=0).split(codes):
            if hurry():
                return None
            if len(np.unique(codes[train])) > 1:
                predicted[test] = SVC().fit(X[some[train]], codes[train]).predict(X[some[test]])
        result.append(float(belief[np.arange(len(some)), predicted].mean()))
        right.append(sum(review.classes_[predicted[place[row]]] == label for row, label in walk.items()))
    return result[0], result[1], (len(walk), right[0], right[1])


def drawn_rows(review: Any) -> dict[int, Any]:
    """The rows drawn at random that have one clear answer, with it."""
    votes: dict[int, set[Any]] = {}
    latest = {(entry["row"], entry["reviewer"]): entry["label"] for entry in review.history_}
    for (row, _), label in latest.items():
        if label is not None:
            votes.setdefault(row, set()).add(label)
    drawn = {entry["row"] for entry in review.history_ if entry["walk"]}
    return {row: next(iter(said)) for row, said in votes.items() if row in drawn and len(said) == 1}
